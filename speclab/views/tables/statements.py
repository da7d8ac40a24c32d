"""A paper's claims about a table, with verdicts by print, prediction and measurement.

A cell is a mark and a number; notes below give the reasons. No number judges a claim
that it cannot refute: a speed on the paper's own hardware is compared with the
prediction in per cent, and is not compared with small models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from speclab.papers.ledger import VerdictLine
from speclab.papers.paper_schema import Claim
from speclab.papers.table_result import TableResult
from speclab.papers.verdicts import OTHER_HARDWARE

from .written import MINUS, write_percent

MARKS = {"yes": "✓", "no": "✗", "open": "◇", "not judged": ""}
NOT_RUN = "not run"
COUNT = re.compile(r"\b(\d+) of (\d+)\b")
SHORT = 3  # up to this length a list is written out; a longer one as its range

# Claims about the size of one number, which only the paper's hardware can reach.
OF_SIZE = ("ratio", "equal")


class Statement(NamedTuple):
    """A claim, and a short text for each kind of number; "" if it has no verdict."""

    text: str
    paper: str
    virtual: str
    measured: str

    @property
    def holds(self) -> bool:
        """Whether no number refutes the claim or leaves it open."""
        cells = [cell for cell in self[1:] if cell]
        return all(cell.startswith(MARKS["yes"]) for cell in cells)


class Statements(NamedTuple):
    """The claims of a table, and the notes that their cells refer to by number."""

    lines: list[Statement]
    notes: list[str]


def is_own(claim: Claim) -> bool:
    """Whether a claim is our check of the paper rather than the paper's own."""
    return claim.source.startswith(("audit", "ours"))


def is_of_size(claim: Claim) -> bool:
    """Whether a claim is about the size of one number rather than a comparison."""
    return claim.kind in OF_SIZE


def statements_of(
    result: TableResult,
    own: bool,
    verdicts: Iterable[VerdictLine] | None = None,
) -> Statements:
    """The judged claims of the paper, or our judged checks if ``own``.

    ``verdicts`` replace the table's, for example by verdicts over the same devices.
    """
    by_claim: dict[tuple[str, str], VerdictLine] = {}
    for verdict in result.claims if verdicts is None else verdicts:
        by_claim[verdict.claim, verdict.kind] = verdict
    lines, notes = [], list[str]()
    for claim in result.table.claims:
        if is_own(claim) != own:
            continue
        cells = []
        for kind in ("paper", "virtual", "measured"):
            found = by_claim.get((claim.id, kind))
            cells.append(_cell(claim, found, notes) if found else "")
            if claim.kind == "argmax" and cells[-1] not in ("", NOT_RUN):
                cells[-1] += _among(claim, result, kind)
        if claim.unmeasurable and "measured" in result.kinds and verdicts is None:
            cells[-1] = f"*not judged* {_sign(claim.unmeasurable, notes)}"
        if any(cells):
            lines.append(Statement(claim.text.rstrip("."), *cells))
    return Statements(_merged(lines), notes)


def _merged(lines: Iterable[Statement]) -> list[Statement]:
    """Merges statements with the same text, and counts how often they hold."""
    by_text: dict[str, list[Statement]] = {}
    for line in lines:
        by_text.setdefault(line.text, []).append(line)
    merged = []
    for text, same in by_text.items():
        if len(same) == 1:
            merged += same
            continue
        cells = [_counted([line[place] for line in same]) for place in range(1, 4)]
        merged.append(Statement(text, *cells))
    return merged


def _counted(cells: list[str]) -> str:
    """Several cells as one: "✓", or "✗ 1 of 4" with their note numbers."""
    filled = [cell for cell in cells if cell]
    held = [cell for cell in filled if cell.startswith(MARKS["yes"])]
    if len(held) == len(filled):
        return MARKS["yes"] if held else ""
    notes = " ".join(re.findall("<sup>.*?</sup>", " ".join(filled)))
    return f"{MARKS['no']} {len(held)} of {len(filled)} {notes}".rstrip()


def _cell(claim: Claim, verdict: VerdictLine, notes: list[str]) -> str:
    """A mark, a number, and the number of the note that gives the reason."""
    value = _value(claim, verdict)
    if verdict.holds == "not judged":
        is_other = verdict.note == OTHER_HARDWARE
        return f"*not comparable: {value}*" if is_other and value else ""
    if verdict.holds == "open" and verdict.note.partition("; ")[0].endswith("run yet"):
        return NOT_RUN
    mark = MARKS[verdict.holds]
    if verdict.kind == "paper":
        text = mark
    elif is_of_size(claim):
        text = value  # its difference from print says more than a mark
    else:
        text = f"{mark} {value}".rstrip()
    reason = _reason(verdict)
    if not reason or (verdict.kind != "paper" and is_of_size(claim)):
        return text
    return f"{text} {_sign(reason, notes)}"


def _among(claim: Claim, result: TableResult, kind: str) -> str:
    """ " (4 of 6 rows)" if some of the printed labels have no number of this kind."""
    labels: dict[str, set[str]] = {"paper": set(), kind: set()}
    for row, column, of_kind in result.numbers:
        if of_kind in labels:
            labels[of_kind].add(row if claim.over == "row" else column)
    printed, own = (labels["paper"], labels[kind])
    if printed <= own:
        return ""
    name = "rows" if claim.over == "row" else "columns"
    return f" ({len(printed & own)} of {len(printed)} {name})"


def _sign(note: str, notes: list[str]) -> str:
    """The number of a note, which is added to ``notes`` if it is new."""
    if note not in notes:
        notes.append(note)
    return f"<sup>{notes.index(note) + 1}</sup>"


def _value(claim: Claim, verdict: VerdictLine) -> str:
    """The finding in short: "5 of 6", "4.14 (−7 %)", "2.39 to 4.14"."""
    count = COUNT.search(verdict.value)
    if count:
        return count.group()
    numbers = _numbers(verdict.value)
    if not numbers:
        return ""
    if claim.kind == "argmax" or len(numbers) > 1:
        is_list = " .. " not in verdict.value
        if is_list and len(numbers) <= SHORT:
            return ", ".join(_short(number) for number in numbers)
        return f"{_short(min(numbers))} to {_short(max(numbers))}"
    (number,) = numbers
    expected = _numbers(verdict.expected)
    has_size = verdict.kind == "virtual" and is_of_size(claim) and len(expected) == 1
    if has_size and expected[0]:
        return f"{_short(number)} ({write_percent(number / expected[0] - 1)})"
    return _short(number)


def _numbers(text: str) -> list[float]:
    """The numbers that a verdict lists, "1, 2" or "1 .. 2"; none if it lists labels."""
    try:
        return [float(part) for part in re.split(r", | \.\. ", text) if part]
    except ValueError:
        return []


def _short(number: float) -> str:
    digits = f"{number:.3g}" if abs(number) < 1000 else f"{number:.0f}"
    return digits.replace("-", MINUS)


def _reason(verdict: VerdictLine) -> str:
    """The first reason against a yes, and how many more there are."""
    if verdict.holds == "yes" or not verdict.note:
        return ""
    first, *more = verdict.note.removeprefix("not settled: ").split("; ")
    further = len(more)
    if more and more[-1].startswith("and "):
        further += int(more[-1].split()[1]) - 1
    text = first.replace("(95 %: ", "(95 % interval ").replace(" .. ", " to ")
    return f"{text}; and {further} more" if further else text
