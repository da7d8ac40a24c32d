"""Which cells are to be measured further: those that open claims ask for.

A claim is open where the interval of its numbers does not settle it. Measuring what no
claim needs any more would take time from what one does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from speclab.experiment.spec import Profile, Spec
from speclab.papers.fill import cells_of, collect_all
from speclab.papers.paper_schema import Paper, Table
from speclab.papers.table_cells import TableCell
from speclab.papers.table_result import TIMED_KINDS, TableResult

Place = tuple[str, str, str]  # of a number: its row, its column and its kind


def open_specs(
    papers: Iterable[Paper],
    profile: Profile,
    kinds: Iterable[str],
    errors: Mapping[Spec, Exception],
) -> set[Spec]:
    """The timed cells that open claims ask for, and what these are compared with.

    ``errors``: of the cells that failed. Runs nothing.
    """
    timed = [kind for kind in kinds if kind in TIMED_KINDS]
    specs: set[Spec] = set()
    for paper in papers:
        results = collect_all(paper, profile, errors, kinds=timed)
        for item, cells in cells_of(paper, profile, kinds=timed).items():
            specs |= open_specs_of(results[item], cells)
    return specs


def open_specs_of(result: TableResult, cells: Iterable[TableCell]) -> set[Spec]:
    """The same of one table; ``cells`` are its own."""
    wanted: set[Place] = set()
    for place in result.open_cells:
        wanted.update(_sources(result.table, place))
    specs: set[Spec] = set()
    for cell in cells:
        if cell.key in wanted:
            specs.update(cell.specs)
    return specs


def _sources(table: Table, place: Place) -> Iterator[Place]:
    """The place itself, and those of the numbers that it may be computed from."""
    row, column, kind = place
    yield place
    if table.column.get(column, {}).get("mean_of"):
        for other in table.column_labels:
            yield row, other, kind
    quotient_of = table.row.get(row, {}).get("quotient_of")
    if isinstance(quotient_of, tuple):
        for other_row in quotient_of:
            yield str(other_row), column, kind
