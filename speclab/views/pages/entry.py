"""What the index keeps of one paper, in a form that JSON can hold.

The papers are made one by one, and the index shows all of them. So what it says of a
paper outlives the run that made it, and may have been written by other code than this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from speclab.papers.claim_numbers import (
    Numbers,
    NumbersOverSameDevices,
    TableNumbers,
)
from speclab.papers.comparisons import JudgedNumber, numbers_of_claim
from speclab.papers.estimates import ledger_interval
from speclab.papers.ledger import VerdictLine
from speclab.papers.paper_schema import Claim, Paper, Table
from speclab.papers.table_result import TableResult
from speclab.views.anchors import cell_anchor, claim_anchor
from speclab.views.tables.tally import is_own
from speclib.methods import about

# Kinds of claim that are about numbers, and not about which of them is larger.
ABOUT_NUMBERS = ("ratio", "range", "equal")


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True)  # what other code has added is left out


class KindVerdict(_Stored):
    """The verdict on a claim for one kind of number.

    ``holds`` is yes, no, tie (two numbers are as good as equal), open (the 95 %
    interval does not settle it) or n/a. If the claim is about one number, that is
    ``number``, and its interval ``low`` to ``high``.
    ``trace`` is the anchor of the run behind it on the page of timelines: that of the
    cell, or of the item where several cells are judged; empty where no run was timed.
    ``over_same_devices`` is the second verdict, of a claim about speed-ups: the same
    over the best that the same devices can do with plain decoding.
    ``is_committed``: it is the committed ledger's, not this checkout's. ``committed``
    is the committed ledger's, where that settles what this one leaves open.
    """

    kind: str
    holds: str
    value: str = ""
    note: str = ""
    number: float | None = None
    low: float | None = None
    high: float | None = None
    trace: str = ""
    over_same_devices: KindVerdict | None = None
    is_committed: bool = False
    committed: KindVerdict | None = None

    @property
    def settled(self) -> KindVerdict:
        """The committed verdict where it settles more than this one; else this one."""
        return self.committed or self


class ClaimEntry(_Stored):
    """A claim with its verdicts.

    ``anchor`` is the claim's on the paper's page. ``is_own``: it is our check of the
    paper, not the paper's word. ``claimed`` is the number that it expects, if that is
    one, and ``within`` how far from it, relative to it, it still holds.
    ``is_headline``: the picture of the index shows it.
    """

    item: str
    id: str
    anchor: str
    text: str
    source: str = ""
    expected: str = ""
    is_own: bool = False
    is_headline: bool = False
    claimed: float | None = None
    within: float = 0.0
    verdicts: tuple[KindVerdict, ...] = ()

    def verdict(self, kind: str) -> KindVerdict | None:
        """The verdict for a kind of number, if there is one."""
        for verdict in self.verdicts:
            if verdict.kind == kind:
                return verdict
        return None


class PaperEntry(_Stored):
    """What the index says of one paper.

    ``made`` says when, and from which state of the repository. ``summary``,
    ``headline``, ``broken``, ``tied``, ``unsettled`` and ``failed`` are HTML.
    ``claims`` is None in an entry that was written before the index had a table of
    claims.
    ``is_committed``: nothing was run for it here; all of it is the committed ledger's.
    """

    key: str
    title: str
    authors: str = ""
    year: int | None = None
    made: str = ""
    profile: str = "full"
    summary: str = ""
    headline: str = ""
    broken: str = ""
    tied: str = ""
    unsettled: str = ""
    failed: str = ""
    claims: tuple[ClaimEntry, ...] | None = None
    is_committed: bool = False


def paper_name(paper: PaperEntry) -> str:
    """What a paper is called for short: by its method."""
    return about(paper.key).name


def read_entry(raw: Mapping[str, Any]) -> PaperEntry:
    """An entry as it was stored; what this code cannot read of it is left out."""
    try:
        return PaperEntry.model_validate(raw)
    except ValidationError as error:
        unreadable = {problem["loc"][0] for problem in error.errors()}
    readable = {name: raw[name] for name in raw if name not in unreadable}
    key = str(raw.get("key", "unknown"))
    return PaperEntry.model_validate({"key": key, "title": key} | readable)


# -- claims ----------------------------------------------------------------------------
def claim_entries(paper: Paper, results: Mapping[str, TableResult]) -> list[ClaimEntry]:
    """Every claim of a paper that was judged, in the order of its tables."""
    headlines = [tuple(headline) for headline in paper.facts.get("headlines", ())]
    entries = []
    for result in results.values():
        for claim in result.table.claims:
            is_headline = (result.table.item, claim.id) in headlines
            lines = [line for line in result.claims if line.claim == claim.id]
            if lines:
                entries.append(_describe_claim(claim, result, lines, is_headline))
    return entries


def _describe_claim(
    claim: Claim, result: TableResult, lines: Sequence[VerdictLine], is_headline: bool
) -> ClaimEntry:
    item = result.table.item
    expected = [line.expected for line in lines if line.expected]
    is_number = isinstance(claim.expected, int | float)
    return ClaimEntry(
        item=item,
        id=claim.id,
        anchor=claim_anchor(item, claim.id),
        text=claim.text,
        source=claim.source,
        expected=expected[0] if expected else "",
        is_own=is_own(claim),
        is_headline=is_headline,
        claimed=claim.expected if is_number else None,
        within=claim.within,
        verdicts=tuple(_describe_verdicts(claim, result, line) for line in lines),
    )


def _describe_verdicts(
    claim: Claim, result: TableResult, line: VerdictLine
) -> KindVerdict:
    """A verdict, and with it the second one on the same claim, where there is one."""
    verdict = _describe_verdict(claim, line, TableNumbers(result, line.kind), result)
    for other in result.claims_over_same_devices:
        if (other.claim, other.kind) == (line.claim, line.kind):
            numbers = NumbersOverSameDevices(result, line.kind)
            second = _describe_verdict(claim, other, numbers, result)
            return verdict.model_copy(update={"over_same_devices": second})
    return verdict


def _describe_verdict(
    claim: Claim, line: VerdictLine, numbers: Numbers, result: TableResult
) -> KindVerdict:
    judged = _judged_numbers(claim, result.table, numbers)
    number = judged[0] if len(judged) == 1 else None
    interval = ledger_interval(number.estimate) if number else None
    return KindVerdict(
        kind=line.kind,
        holds=line.holds,
        value=line.value,
        note=line.note,
        number=number.value if number else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        trace=_trace_of(result, line.kind, number),
    )


def _judged_numbers(
    claim: Claim, table: Table, numbers: Numbers
) -> Sequence[JudgedNumber]:
    """The numbers that a verdict is about; none of a claim about their order."""
    if claim.kind not in ABOUT_NUMBERS or numbers.kind not in claim.kinds:
        return ()
    return numbers_of_claim(claim, table, numbers)


def _trace_of(result: TableResult, kind: str, number: JudgedNumber | None) -> str:
    """The anchor of the runs behind a verdict on the page of timelines."""
    timed = [cell for cell in timed_cells(result) if cell.kind == kind]
    for cell in timed:
        if number and (cell.row, cell.column) == (number.cell.row, number.cell.column):
            return cell.anchor(result.table)
    return result.table.item if timed else ""


# -- cells whose first request was traced ----------------------------------------------
class TimedCell(NamedTuple):
    """A cell that was timed, and of whose first request there is a trace."""

    row: str
    column: str
    kind: str

    def anchor(self, table: Table) -> str:
        """Its anchor, on the paper's page and on that of the timelines."""
        return cell_anchor(table.item, self.row, self.column, self.kind)


def timed_cells(result: TableResult) -> list[TimedCell]:
    """The cells of a table whose first request was traced by the clock on the wall."""
    cells = []
    for cell, cell_result in result.cell_results.items():
        if cell_result.trace:
            cells.append(TimedCell(*cell))
    return cells
