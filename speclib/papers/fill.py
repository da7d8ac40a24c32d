"""Tables filled: cells run together, numbers and verdicts put beside the print.

    paper = load_paper("pearl")
    result = fill(paper.table("table-5"), FULL)
    result.frame(), result.rows, result.claims

Knows no file format.
"""

from __future__ import annotations

from collections.abc import Iterable

from speclib.experiment.run_cells import CellsFailed, run_all
from speclib.experiment.spec import Profile
from speclib.progress import Progress

from .rows import add_rows_and_verdicts
from .schema import ENGINE_KINDS, Paper, Table
from .table_cells import cells_to_run
from .table_result import TableResult


def fill(
    table: Table,
    profile: Profile,
    progress: Progress | None = None,
    kinds: Iterable[str] = ENGINE_KINDS,
) -> TableResult:
    """Everything known of one table, from the cache where it has it."""
    return fill_all(table.paper, profile, [table.item], progress, kinds)[table.item]


def fill_all(
    paper: Paper,
    profile: Profile,
    only: Iterable[str] | None = None,
    progress: Progress | None = None,
    kinds: Iterable[str] = ENGINE_KINDS,
) -> dict[str, TableResult]:
    """Everything known of all tables of a paper, or ``only`` some: the results by item.

    Their cells are run together, so that two tables which ask for the same run share
    it. A cell that fails leaves the rest standing and is named in its table's
    ``errors``.
    """
    kinds = tuple(kinds)
    tables = [paper.table(item) for item in (only or paper.tables)]
    cells = {}
    specs = []
    for table in tables:
        cells[table.item] = cells_to_run(table, profile, kinds)
        specs += [cell.spec for cell in cells[table.item]]

    try:
        cell_results, errors = run_all(specs, progress), {}
    except CellsFailed as failure:
        cell_results, errors = failure.results, failure.errors

    results = {}
    for table in tables:
        result = TableResult(table, profile)
        own_cells = cells[table.item]
        add_rows_and_verdicts(result, own_cells, cell_results, errors, kinds)
        results[table.item] = result
    return results
