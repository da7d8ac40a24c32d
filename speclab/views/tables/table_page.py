"""The page of one table as data, from which both Markdown and HTML are made."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

from speclab.papers.causes import CAUSES, CONTRADICTIONS
from speclab.papers.ledger import LedgerLine
from speclab.papers.paper_schema import Erratum, Table
from speclab.papers.table_result import TableResult
from speclab.traces.reconcile import Reconciled

from .answers import answer_of, question_of
from .dot_plot import DotPlot
from .main_quantity import Point, points_of
from .number_tables import (
    PipeTable,
    signs_in,
    tables_of_numbers,
    tables_of_others,
    tables_over_same_devices,
)
from .statements import MARKS, NOT_RUN, Statements, is_of_size, statements_of
from .written import write_number

ERRATA = "Errata in the paper"
MOST_STATEMENTS = 12  # shown at once; the others are folded
SEARCHED = re.compile("the fastest of [0-9]+ choices")  # in a line's note


class Fold(NamedTuple):
    """A folded part of the page: its title, and Markdown texts and tables in order.

    ``is_in_file``: whether the table's own file has the same text.
    """

    title: str
    parts: list[str | PipeTable]
    is_in_file: bool = False


@dataclass(frozen=True)
class TablePage:
    """A page, from its first line to its last.

    question, answer   whether the table reproduces, in one or two sentences
    opening            what the table shows and claims
    plot               its main quantity; None if there is nothing to compare
    statements         the paper's claims, each with its verdicts
    here               heading of the column of measured numbers
    why                the causes of the difference from print; None if not computed
    largest_steps      the largest causes in the columns of ``why``, in words
    before_you_cite    up to four facts to know before citing its numbers
    folds              everything else
    command, file      the command that makes the page, and the table's file
    """

    question: str
    answer: str
    title: str
    opening: str
    plot: DotPlot | None
    statements: Statements
    here: str
    why: PipeTable | None
    largest_steps: str
    before_you_cite: tuple[str, ...]
    folds: list[Fold]
    command: str
    file: str


def table_page(
    result: TableResult,
    others: Iterable[LedgerLine] = (),
    ways: Mapping[str, Reconciled] | None = None,
) -> TablePage:
    """The page of a table; ``others`` are ledger lines of other machines.

    ``ways``: column -> why the measurement differs from print, cause by cause.
    """
    table = result.table
    others = [line for line in others if line.item == table.item]
    points = points_of(result)
    plot = None
    if points and table.main:
        plot = DotPlot(table.main.name, 2, points)
    elif points:
        plot = DotPlot(table.shown_unit, table.decimals, points, is_main=False)
    opening, _, background = table.about.strip().partition("\n\n")
    said = statements_of(result, own=False)
    here = "small models here" if result.are_stand_ins else "measured here"
    shown = Statements(said.lines[:MOST_STATEMENTS], said.notes)
    folds = [
        _more_statements(said, here),
        Fold("What the causes mean", _meanings(table, ways) if ways else []),
        Fold("All numbers", tables_with_signs(tables_of_numbers(result))),
        Fold("Other machines", tables_with_signs(tables_of_others(result, others))),
        Fold("95 % intervals", _intervals(result, points)),
        Fold("Over the same devices", _over_same_devices(result, here)),
        _own_checks(result, here),
        Fold(ERRATA, _errata(table.errata), True),
        Fold("Settings found by a search", _found_settings(result)),
        Fold("How we read and ran it", [background] if background else [], True),
        Fold("Runs that failed", _failures(result.errors)),
    ]
    return TablePage(
        question_of(result),
        answer_of(result, points),
        table.title,
        opening,
        plot,
        shown,
        here,
        _why_it_differs(ways) if ways else None,
        _largest_steps(ways, points) if ways else "",
        table.before_you_cite,
        [fold for fold in folds if fold.parts],
        f"`PAPER={table.paper.key} make reproduce`",
        table.file,
    )


def _why_it_differs(ways: Mapping[str, Reconciled]) -> PipeTable:
    """A line per cause, with its contribution in each column."""
    rows = []
    for name in (*_longest(ways), "measured"):
        texts = []
        for way in ways.values():
            levels = {**dict(way.causes), "measured": way.measured}
            share = way.shares.get(name)
            number = write_number(levels.get(name, nan) if share is None else share, 2)
            texts.append(number if share is None or share < 0 else f"+{number}")
        is_level = name not in CAUSES
        rows.append([f"**{name}**" if is_level else name, *texts])
    return PipeTable("", ["Why our measured run differs", *ways], rows)


def _longest(ways: Mapping[str, Reconciled]) -> list[str]:
    """The causes in the column that has most of them, which include all others."""
    longest = max(ways.values(), key=lambda way: len(way.causes))
    return [cause.name for cause in longest.causes]


def _largest_steps(ways: Mapping[str, Reconciled], points: Iterable[Point]) -> str:
    """The largest causes on the way to the prediction, and from there; the losses."""
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    losses: Counter[str] = Counter()
    for way in ways.values():
        names = [cause.name for cause in way.causes]
        middle = names.index("predicted")
        printed = [name for name in names[:middle] if name in way.shares]
        if printed:
            before[max(printed, key=lambda name: abs(way.shares[name]))] += 1
        later = names[middle + 1 :]
        after[max(later, key=lambda name: abs(way.shares[name]))] += 1
        losses[min(later, key=way.shares.__getitem__)] += 1
    sentences = []
    if before:
        sentences.append(f"Largest step from print to prediction: {_counted(before)}.")
    sentences.append(f"Largest step from prediction to measurement: {_counted(after)}.")
    if losses != after:
        sentences.append(f"Largest loss on that way: {_counted(losses)}.")
    measured = sum("measured" in point.numbers for point in points)
    if len(ways) < measured:
        sentences.append(f"Shown are {len(ways)} of {measured} measured numbers.")
    return " ".join(sentences)


def _counted(causes: Counter[str]) -> str:
    """ "window in 2 of 6 columns (gamma ...), longer passes in 1"."""
    (first, count), *others = causes.most_common()
    texts = [f"*{first}* in {count} of {causes.total()} columns ({CAUSES[first]})"]
    return ", ".join([*texts, *(f"*{name}* in {count}" for name, count in others)])


def _meanings(table: Table, ways: Mapping[str, Reconciled]) -> list[str | PipeTable]:
    """What each cause in the table of causes means, and the errata behind the first."""
    lines = [f"- {name}: {CAUSES[name]}" for name in _longest(ways) if name in CAUSES]
    labels = table.main.labels if table.main else ()
    for erratum in table.errata:
        if erratum.computed is None or erratum.kind not in CONTRADICTIONS:
            continue
        for row, column in erratum.cells:
            if row in labels and column in ways:
                note = " ".join(erratum.note.split())
                lines.append(f"- its own tables, {column}: {note}")
    return ["\n".join(lines)]


def statements_table(statements: Statements, here: str, first: str) -> PipeTable:
    """A line per claim, without empty columns."""
    heads = [first, "print consistent?", "predicted", here]
    rows = []
    for line in statements.lines:
        rows.append([line.text, line.paper, line.virtual, line.measured])
    kept = [0, *(n for n in range(1, 4) if {row[n] for row in rows} - {"", NOT_RUN})]
    kept_rows = [[row[n] for n in kept] for row in rows]
    return PipeTable("", [heads[n] for n in kept], kept_rows)


def numbered(statements: Statements) -> list[str]:
    """The notes that the cells refer to, as one paragraph; [] without notes."""
    cells = " ".join(cell for line in statements.lines for cell in line)
    notes = []
    for number, note in enumerate(statements.notes, 1):
        sign = f"<sup>{number}</sup>"
        if sign in cells:
            notes.append(f"{sign} {note}")
    return ["  \n".join(notes)] if notes else []


# -- folds -----------------------------------------------------------------------------
def _more_statements(said: Statements, here: str) -> Fold:
    rest = said.lines[MOST_STATEMENTS:]
    if not rest:
        return Fold("", [])
    more = Statements(rest, said.notes)
    table = statements_table(more, here, "claim")
    return Fold(f"{len(rest)} more statements", [table, *numbered(more)])


def tables_with_signs(tables: list[PipeTable]) -> list[str | PipeTable]:
    """The tables, then a legend of the signs in their cells."""
    signs = signs_in(tables)
    return [*tables, *(["; ".join(signs)] if signs else [])]


def _intervals(result: TableResult, points: list[Point]) -> list[str | PipeTable]:
    """The 95 % intervals of the measured points."""
    rows = []
    for point in points:
        if point.interval is not None:
            low, high = (write_number(end, 2) for end in point.interval)
            number = write_number(point.numbers["measured"], 2)
            rows.append([point.label, number, f"{low} to {high}"])
    if not rows:
        return []
    text = (
        "The likely range of the number if all of the task's prompts were run on that "
        "machine. docs/reproduce.md says how far two runs differ."
    )
    heads = [result.table.columns_are, "measured", "95 % interval"]
    return [text, PipeTable("", heads, rows)]


def _over_same_devices(result: TableResult, here: str) -> list[str | PipeTable]:
    tables = tables_over_same_devices(result)
    if not tables:
        return []
    text = (
        "The speed-up over the fastest plain decoding on all the devices that the "
        "method reserves."
    )
    settings = (result.table.settings, *result.table.column.values())
    if any("over" in some for some in settings):
        text = (
            "The speed of each method is first divided by that of the fastest plain "
            "decoding on all its devices, and then one by the other."
        )
    orders = {claim.id for claim in result.table.claims if not is_of_size(claim)}
    lines = [v for v in result.claims_over_same_devices if v.claim in orders]
    verdicts = statements_of(result, False, lines)
    parts: list[str | PipeTable] = [text, *tables]
    if verdicts.lines:
        parts.append(statements_table(verdicts, here, "claim"))
    return [*parts, *numbered(verdicts)]


def _own_checks(result: TableResult, here: str) -> Fold:
    """Our expectations for our own table; for a paper's, the checks that fail."""
    checks = statements_of(result, own=True)
    lines = checks.lines
    title = "What we expected"
    if result.table.cells:
        held = [line for line in lines if line.holds]
        refuted = [line for line in lines if MARKS["no"] in "".join(line[1:])]
        title = f"Our checks: {len(held)} confirmed, {len(refuted)} not"
        if len(held) + len(refuted) < len(lines):
            title += f", {len(lines) - len(held) - len(refuted)} open"
        lines = [line for line in lines if line not in held]
    if not checks.lines:
        return Fold("", [])
    table = [statements_table(Statements(lines, []), here, "check")] if lines else []
    return Fold(title, [*table, *numbered(Statements(lines, checks.notes))])


def _found_settings(result: TableResult) -> list[str | PipeTable]:
    """The settings that a search chose for predicted cells, each with its cells."""
    found: dict[str, list[str]] = {}
    for line in result.lines:
        parts = line.note.split("; ") if line.kind == "virtual" else []
        for how in parts:
            if SEARCHED.search(how):
                found.setdefault(how, []).append(_name_cell(line.row, line.column))
    lines = []
    for how, cells in found.items():
        where = (
            f"all {len(cells)} predicted cells" if len(found) == 1 else "; ".join(cells)
        )
        lines.append(f"- {how}: {where}")
    return ["\n".join(lines)] if lines else []


def _errata(errata: Iterable[Erratum]) -> list[str | PipeTable]:
    lines = []
    for erratum in errata:
        cells = "; ".join(_name_cell(row, column) for row, column in erratum.cells)
        note = " ".join(erratum.note.split())
        lines.append(f"- {erratum.kind}: {cells}: {note}")
    return ["\n".join(lines)] if lines else []


def _name_cell(row: str, column: str) -> str:
    """A cell as "row, column", with "all" for every row or column."""
    labels = dict.fromkeys((row, column))  # once if both are the same
    return ", ".join("all" if label == "*" else label for label in labels)


def _failures(errors: Mapping[str, str]) -> list[str | PipeTable]:
    """A line per reason, with the cells that failed for that reason."""
    lines = [
        f"- `{reason}`: {'; '.join(cells)}"
        for reason, cells in group_by_reason(errors).items()
    ]
    return ["\n".join(lines)] if lines else []


def group_by_reason(errors: Mapping[str, str]) -> dict[str, list[str]]:
    """The cells of each reason, from ``errors``: cell -> reason."""
    cells_by_reason: dict[str, list[str]] = {}
    for cell, reason in errors.items():
        cells_by_reason.setdefault(reason, []).append(cell)
    return cells_by_reason
