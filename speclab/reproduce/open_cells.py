"""Which cells are to be measured further: those that open claims ask for.

A claim is open where the interval of its numbers does not settle it. Measuring what no
claim needs any more would take time from what one does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from speclab.experiment.spec import Profile, Spec
from speclab.papers.fill import cells_of, collect_all
from speclab.papers.paper_schema import Paper, Table
from speclab.papers.table_cells import TableCell
from speclab.papers.table_result import TableResult

Key = tuple[str, str, str]  # of a number: its row, its column and its kind


def specs_of_open_claims(
    papers: Iterable[Paper],
    profile: Profile,
    kinds: Iterable[str],
    errors: Mapping[Spec, Exception],
) -> list[set[Spec]]:
    """Of each open claim the cells that it asks for, and what they are compared with.

    ``kinds``: of the cells. ``errors``: of those that failed. Runs nothing.
    """
    kinds = tuple(kinds)
    by_claim = []
    for paper in papers:
        results = collect_all(paper, profile, errors, kinds=kinds)
        for item, cells in cells_of(paper, profile, kinds=kinds).items():
            by_claim += specs_by_open_claim(results[item], cells)
    return by_claim


def specs_by_open_claim(
    result: TableResult, cells: Iterable[TableCell]
) -> list[set[Spec]]:
    """The same of one table; ``cells`` are its own."""
    specs_at: dict[Key, list[Spec]] = defaultdict(list)
    for cell in cells:
        specs_at[cell.key] += cell.specs

    by_claim = []
    for keys in result.cells_of_open_claims:
        specs: set[Spec] = set()
        for key in keys:
            for source in _sources(result.table, key):
                specs.update(specs_at[source])
        by_claim.append(specs)
    return by_claim


def open_specs_of(result: TableResult, cells: Iterable[TableCell]) -> set[Spec]:
    """All that the open claims of one table ask for."""
    return set().union(*specs_by_open_claim(result, cells))


def _sources(table: Table, place: Key) -> Iterator[Key]:
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
