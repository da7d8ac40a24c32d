"""What the index says of one paper: its claims with their verdicts, and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from speclab.papers.fill import NumbersOverSameDevices, TableNumbers
from speclab.papers.ledger import SAME_DEVICES_SUFFIX, VerdictLine
from speclab.papers.numbers import Interval, Number
from speclab.papers.paper_schema import KINDS, Claim, Paper
from speclab.papers.table_result import TableResult
from speclab.papers.verdicts import numbers_of_claim
from speclab.views.anchors import claim_anchor
from speclab.views.tables.verdicts import in_words
from speclib.drawing.numbers import number
from speclib.methods import about

# Kinds of claim that are about numbers, and not about which of them is larger.
ABOUT_NUMBERS = ("ratio", "range", "equal")


class Judged(NamedTuple):
    """A verdict, and the number that it is about if that is one."""

    line: VerdictLine
    number: Number | None = None

    @property
    def interval(self) -> Interval | None:
        """The number's 95 % interval, if it rests on several requests."""
        if self.number is None or self.number.n < 2:
            return None
        return self.number.interval

    @property
    def sure(self) -> str:
        """How sure the number is: "95 %: 1.91 .. 1.98 (n 8)"; of one run "n 1"."""
        if self.number is None or not self.number.n:
            return ""
        requests = f"n {self.number.n}"
        if self.interval is None:
            return requests
        low, high = map(number, self.interval)
        return f"95 %: {low} .. {high} ({requests})"


@dataclass(frozen=True)
class ClaimEntry:
    """A claim with its verdicts by kind of number.

    ``over_same_devices`` are the second verdicts of a claim about speed-ups.
    ``is_headline``: the picture of the index shows it.
    """

    item: str
    claim: Claim
    verdicts: Mapping[str, Judged]
    over_same_devices: Mapping[str, Judged]
    is_headline: bool = False

    @property
    def anchor(self) -> str:
        """Its anchor on the paper's page."""
        return claim_anchor(self.item, self.claim.id)

    @property
    def claimed(self) -> float:
        """The number that it expects; nan if that is none."""
        expected = self.claim.expected
        return float(expected if isinstance(expected, int | float) else "nan")

    @property
    def expected(self) -> str:
        """What the first verdict that says so expects."""
        texts = [judged.line.expected for judged in self.verdicts.values()]
        return next(filter(None, texts), "")


@dataclass(frozen=True)
class PaperEntry:
    """What the index says of one paper; the texts are HTML.

    headline   the numbers of one of its tables
    broken     its verdicts that do not hold; ``unsettled``: those that are open
    failed     its cells that failed
    """

    paper: Paper
    claims: list[ClaimEntry]
    summary: str = ""
    headline: str = ""
    broken: str = ""
    unsettled: str = ""
    failed: str = ""

    @property
    def name(self) -> str:
        """What the paper is called for short: by its method."""
        return about(self.paper.key).name


def claim_entries(paper: Paper, judged: Iterable[Judged]) -> list[ClaimEntry]:
    """Every claim of a paper that has verdicts, in the order of its tables.

    ``judged``: as in a file of claims, second verdicts with their suffix.
    """
    by_key = {(one.line.item, one.line.claim, one.line.kind): one for one in judged}
    headlines = [tuple(headline) for headline in paper.facts.get("headlines", ())]
    entries = []
    for item, table in paper.tables.items():
        for claim in table.claims:
            verdicts = _by_kind(by_key, item, claim)
            second = _by_kind(by_key, item, claim, SAME_DEVICES_SUFFIX)
            is_headline = (item, claim.id) in headlines
            if verdicts:
                entries.append(ClaimEntry(item, claim, verdicts, second, is_headline))
    return entries


def _by_kind(
    by_key: Mapping[tuple[str, str, str], Judged],
    item: str,
    claim: Claim,
    suffix: str = "",
) -> dict[str, Judged]:
    """The verdicts on a claim by kind, as people read them."""
    found = {}
    for kind in KINDS:
        judged = by_key.get((item, claim.id + suffix, kind))
        if judged is not None:
            found[kind] = judged._replace(line=in_words(claim, judged.line))
    return found


def judged_in_results(results: Mapping[str, TableResult]) -> list[Judged]:
    """All verdicts of a paper's filled tables."""
    judged = []
    for result in results.values():
        claims = {claim.id: claim for claim in result.table.claims}
        for line in result.claims:
            numbers = TableNumbers(result, line.kind)
            judged.append(_with_number(line, claims[line.claim], result, numbers))
        for line in result.claims_over_same_devices:
            second = NumbersOverSameDevices(result, line.kind)
            one = _with_number(line, claims[line.claim], result, second)
            suffixed = line._replace(claim=line.claim + SAME_DEVICES_SUFFIX)
            judged.append(one._replace(line=suffixed))
    return judged


def _with_number(
    line: VerdictLine, claim: Claim, result: TableResult, numbers: TableNumbers
) -> Judged:
    if claim.kind not in ABOUT_NUMBERS:
        return Judged(line)
    judged = numbers_of_claim(claim, result.table, numbers)
    return Judged(line, judged[0].number if len(judged) == 1 else None)


def judged_in_file(lines: Iterable[VerdictLine]) -> list[Judged]:
    """Verdicts of a file of claims, which says of their numbers no interval."""
    judged = []
    for line in lines:
        is_number = line.value.replace(".", "", 1).isdecimal()
        judged.append(Judged(line, Number(float(line.value)) if is_number else None))
    return judged
