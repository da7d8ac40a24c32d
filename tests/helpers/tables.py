"""Papers' tables: a small profile, results made up, numbers found in a result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from speclab.experiment.run_cells import CellsFailed
from speclab.experiment.spec import CellResult, Profile, Spec
from speclab.papers.fill import fill, fill_all
from speclab.papers.ledger import LedgerLine, VerdictLine
from speclab.papers.paper_schema import Paper, Table
from speclab.papers.table_result import TableResult
from speclab.progress import Progress
from speclib import paths
from speclib.trace.metrics import Stats

SMALL = Profile(
    "small",
    virtual_tokens=2_048,
    prompts=1,
    tokens=8,
    emulated_requests=1,
    emulated_tokens=8,
)

MakeResult = Callable[[Spec], CellResult]
RunAll = Callable[[Iterable[Spec], Progress | None], dict[Spec, CellResult]]


# -- tables filled ---------------------------------------------------------------------
def instead_of_running(make_result: MakeResult) -> RunAll:
    """What takes the place of ``run_all`` where cells are not to be run.

    A cell of which ``make_result`` raises a RuntimeError has failed with it.
    """

    def run_all(
        specs: Iterable[Spec], progress: Progress | None = None
    ) -> dict[Spec, CellResult]:
        results: dict[Spec, CellResult] = {}
        errors: dict[Spec, Exception] = {}
        for spec in specs:
            try:
                results[spec] = make_result(spec)
            except RuntimeError as error:
                errors[spec] = error
        if errors:
            raise CellsFailed(results, errors)
        return results

    return run_all


def fill_with(
    make_result: MakeResult, table: Table, kind: str, profile: Profile = SMALL
) -> TableResult:
    """The table filled with made-up results of one kind."""
    with pytest.MonkeyPatch.context() as patch:
        run_all = instead_of_running(make_result)
        patch.setattr("speclab.papers.fill.run_all", run_all)
        return fill(table, profile, kinds=(kind,))


def fill_virtually(
    paper: Paper,
    cache: Path,
    profile: Profile = SMALL,
    items: Iterable[str] | None = None,
) -> dict[str, TableResult]:
    """A paper's tables, or some, filled on the virtual clock, with this cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "CACHE", cache)
        return fill_all(paper, profile, items, kinds=("virtual",))


def assert_filled_as_the_paper_says(
    paper: Paper, results: dict[str, TableResult]
) -> None:
    """No cell may have failed; those items have virtual numbers that [fill] names."""
    with_virtual = set()
    for item, result in results.items():
        assert not result.errors
        if "virtual" in result.kinds:
            with_virtual.add(item)
    assert with_virtual == set(paper.facts["fill"]["virtual"])


# -- results made up -------------------------------------------------------------------
def two_measured_requests(
    spec: Spec, request: Stats, plain: Stats, **facts: object
) -> CellResult:
    """A measured cell of two like requests at gamma 3 and c 2.9."""
    usual = {
        "differs": [None, None],
        "gap": [None, None],
        "load": 0.5,
        "contention": {"draft": 1.2, "target": 1.1},
        "draft": "torch",
    }
    return CellResult(
        spec,
        stats=[request] * 2,
        baseline=[plain] * 2,
        gamma=3,
        c=2.9,
        machine="xeon-2c-ab12cd",
        facts=usual | facts,
        created="today",
    )


# -- cells, rows and verdicts ----------------------------------------------------------
def every_cell(table: Table) -> list[tuple[str, str]]:
    """All rows of a table with all its columns."""
    cells = []
    for row in table.row_labels:
        for column in table.column_labels:
            cells.append((row, column))
    return cells


def lines_of_kind(result: TableResult, kind: str) -> list[LedgerLine]:
    return [line for line in result.lines if line.kind == kind]


def verdicts_of_kind(result: TableResult, kind: str) -> dict[str, VerdictLine]:
    """The verdicts on a table's claims, by claim."""
    return {row.claim: row for row in result.claims if row.kind == kind}
