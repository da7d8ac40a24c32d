"""Tables filled: cells run together, numbers and verdicts put beside the print.

    paper = load_paper("pearl")
    result = fill(paper.table("table-5"), FULL)
    result.frame(), result.lines, result.claims

Knows no file format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from speclab.experiment.run_cells import CellsFailed, run_all, stored
from speclab.experiment.spec import CellResult, Profile, Spec
from speclab.progress import Progress

from .paper_schema import ENGINE_KINDS, Paper, Table
from .table_cells import TableCell, cells_to_run
from .table_result import TableResult
from .table_rows import add_lines_and_verdicts
from .two_phase import Peers


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
    cells = cells_of(paper, profile, only, kinds)
    specs = _specs_of(cells)
    try:
        cell_results, errors = run_all(specs, progress), {}
    except CellsFailed as failure:
        cell_results, errors = failure.results, failure.errors
    return _results(paper, profile, cells, cell_results, errors, kinds)


def collect_all(
    paper: Paper,
    profile: Profile,
    errors: Mapping[Spec, Exception],
    only: Iterable[str] | None = None,
    kinds: Iterable[str] = ENGINE_KINDS,
) -> dict[str, TableResult]:
    """The same of what earlier runs left in the cache; no cell is run.

    ``errors`` says of cells why they failed. Cells that are neither in the cache nor
    among these are in their table's ``left_out``.
    """
    kinds = tuple(kinds)
    cells = cells_of(paper, profile, only, kinds)
    specs = _specs_of(cells)
    failed = dict(errors)
    cell_results: dict[Spec, CellResult] = {}
    for spec in dict.fromkeys(specs):
        if spec in failed:
            continue
        try:
            result = stored(spec)
        except Exception as error:
            failed[spec] = error
        else:
            if result is not None:
                cell_results[spec] = result
    return _results(paper, profile, cells, cell_results, failed, kinds, run=False)


def cells_of(
    paper: Paper,
    profile: Profile,
    only: Iterable[str] | None = None,
    kinds: Iterable[str] = ENGINE_KINDS,
) -> dict[str, list[TableCell]]:
    """The cells of all tables of a paper, or ``only`` some, by item."""
    kinds = tuple(kinds)
    cells = {}
    for item in only or paper.tables:
        cells[item] = cells_to_run(paper.table(item), profile, kinds)
    return cells


def _specs_of(cells: Mapping[str, list[TableCell]]) -> list[Spec]:
    """All that is to be run for cells by item."""
    specs: list[Spec] = []
    for own_cells in cells.values():
        for cell in own_cells:
            specs += cell.specs
    return specs


def _results(
    paper: Paper,
    profile: Profile,
    cells: Mapping[str, list[TableCell]],
    cell_results: dict[Spec, CellResult],
    errors: dict[Spec, Exception],
    kinds: tuple[str, ...],
    *,
    run: bool = True,
) -> dict[str, TableResult]:
    results = {}
    peers = Peers(cell_results.values())
    for item, own_cells in cells.items():
        result = TableResult(paper.table(item), profile)
        add_lines_and_verdicts(
            result, own_cells, cell_results, errors, kinds, peers, run=run
        )
        results[item] = result
    return results
