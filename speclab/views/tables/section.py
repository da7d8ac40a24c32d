"""Everything that is known of one table, gathered for a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from speclab.papers.ledger import LedgerLine
from speclab.papers.paper_schema import Erratum, Table
from speclab.papers.table_result import TableResult

from .grid import Grid, build_grid, lines_of_cells
from .verdicts import ClaimTable, list_claims


class Failure(NamedTuple):
    """A reason, and the names of the cells that failed for it."""

    reason: str
    cells: list[str]


def group_by_reason(errors: Mapping[str, str]) -> list[Failure]:
    """``errors``, reasons by the name of the cell, as one failure per reason."""
    cells_by_reason: dict[str, list[str]] = {}
    for cell, reason in errors.items():
        cells_by_reason.setdefault(reason, []).append(cell)
    return [Failure(reason, cells) for reason, cells in cells_by_reason.items()]


def list_sources(
    result: TableResult, others: Iterable[LedgerLine] = ()
) -> dict[str, list[str]]:
    """Lines by kind: latency files and texts, or machines with the models they ran."""
    ledger_lines = lines_of_cells(result.table, result.lines)
    ledger_lines += lines_of_cells(result.table, others)

    # kind -> line -> models; dicts, since they keep the order
    models_of_lines: dict[str, dict[str, dict[str, None]]] = {}
    for ledger_line in ledger_lines:
        is_computed = "@" in ledger_line.setup and not ledger_line.source
        if ledger_line.value is None or is_computed:
            continue  # what is computed from other cells has their sources
        lines = models_of_lines.setdefault(ledger_line.kind, {})
        models = lines.setdefault(_describe_source(ledger_line), {})
        if "@" in ledger_line.setup:
            models[_models_of(ledger_line)] = None

    sources = {}
    for kind, lines in models_of_lines.items():
        sources[kind] = [_join(line, models) for line, models in lines.items()]
    return sources


def _describe_source(ledger_line: LedgerLine) -> str:
    """A file; or the machine and the day of what was timed."""
    _, at_sign, machine = ledger_line.setup.partition("@")
    if not at_sign:
        return ledger_line.source or ledger_line.setup
    return f"{machine}, {ledger_line.source.partition('T')[0]}"


def _models_of(ledger_line: LedgerLine) -> str:
    """The pair of models that was timed."""
    pair = ledger_line.setup.partition("@")[0]
    return f"{pair} (dilated)" if "dilated" in ledger_line.note else pair


def _join(line: str, models: Iterable[str]) -> str:
    names = ", ".join(models)
    return f"{line}: {names}" if names else line


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
