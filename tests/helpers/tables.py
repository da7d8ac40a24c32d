"""Papers' tables: a small profile, results made up, numbers found in a result."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from speclib.experiment.spec import CellResult, Profile, Spec
from speclib.papers.ledger import ClaimRow, LedgerRow
from speclib.papers.schema import Table
from speclib.papers.table_result import TableResult
from speclib.progress import Progress

SMALL = Profile(
    "small",
    virtual_tokens=2_048,
    prompts=1,
    tokens=8,
    sweep_prompts=1,
    emulated_requests=1,
    emulated_tokens=8,
)

RunAll = Callable[[Iterable[Spec], Progress | None], dict[Spec, CellResult]]


def instead_of_running(make_result: Callable[[Spec], CellResult]) -> RunAll:
    """What takes the place of ``run_all`` where cells are not to be run."""

    def run_all(
        specs: Iterable[Spec], progress: Progress | None = None
    ) -> dict[Spec, CellResult]:
        return {spec: make_result(spec) for spec in specs}

    return run_all


def every_cell(table: Table) -> list[tuple[str, str]]:
    """All rows of a table with all its columns."""
    cells = []
    for row in table.row_labels:
        for column in table.column_labels:
            cells.append((row, column))
    return cells


def rows_of_kind(result: TableResult, kind: str) -> list[LedgerRow]:
    return [row for row in result.rows if row.kind == kind]


def verdicts_of_kind(result: TableResult, kind: str) -> dict[str, ClaimRow]:
    """The verdicts on a table's claims, by claim."""
    return {row.claim: row for row in result.claims if row.kind == kind}
