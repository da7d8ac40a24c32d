"""Everything that is known of one table, gathered for a page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from speclab.papers.ledger import LedgerLine
from speclab.papers.paper_schema import Erratum, Table
from speclab.papers.table_result import TableResult

from .failed_cells import Failure, group_by_reason
from .grid import Grid, build_grid
from .sources import list_sources
from .verdicts import ClaimTable, list_claims


class ErratumText(NamedTuple):
    """What is wrong in the print: its kind, the cells as words, and a note."""

    kind: str
    cells: str
    note: str


@dataclass(frozen=True)
class Section:
    """What a page says of one table, in this order.

    ``look`` is a sentence on what to look at first. ``opening`` and ``background`` are
    Markdown: the first paragraph on what the item shows and claims, and all others, ""
    where there are none. ``sources`` are lines by kind of number. ``claims`` is None
    where no claim was judged.
    """

    table: Table
    look: str
    opening: str
    grid: Grid
    failures: list[Failure]
    claims: ClaimTable | None
    background: str
    errata: list[ErratumText]
    sources: dict[str, list[str]]


def gather_section(result: TableResult, others: Iterable[LedgerLine] = ()) -> Section:
    """All of a table's result; ``others`` are ledger lines of other machines."""
    others = list(others)
    table = result.table
    opening, _, background = table.about.strip().partition("\n\n")
    return Section(
        table=table,
        look=table.look,
        opening=opening,
        grid=build_grid(result, others),
        failures=group_by_reason(result.errors),
        claims=list_claims(result),
        background=background,
        errata=[_describe_erratum(erratum) for erratum in table.errata],
        sources=list_sources(result, others),
    )


def _describe_erratum(erratum: Erratum) -> ErratumText:
    cells = [_name_cell(row, column) for row, column in erratum.cells]
    note = " ".join(erratum.note.split())
    return ErratumText(erratum.kind, "; ".join(cells), note)


def _name_cell(row: str, column: str) -> str:
    """A cell as "row, column"; "all" where that is every one."""
    labels = dict.fromkeys((row, column))  # once, where both are the same
    return ", ".join("all" if label == "*" else label for label in labels)
