"""What 95 % intervals settle, and how many requests would settle the rest.

A claim asks one question or several of the same form: does this number lie in that
range? An interval that lies inside the range answers yes, one that lies outside
answers no, and one that reaches across a limit leaves the question open::

    limits of the claim       |-------------|
    yes                          |---o--|
    no                                        |-o--|
    open                                |---o----|

Whether one number is above another is a question about their quotient, and 1 is its
limit. Two numbers may be as good as equal, and then no run ever leaves 1 out. So there
is a fourth answer, a tie: the interval contains 1, and ends before the quotient would
make a difference (see ``tie_factor``)::

    1 and a tie's limits         |-----:-----|
    yes                                  |-o---|
    tie                             |--o---|
    open                              |----o----|

A claim that asks several questions holds if all are answered yes, and does not hold if
one is answered no. It is a tie if none is no or open, and one of them a tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, sqrt
from typing import NamedTuple

from speclab.experiment.spec import MOST_REPLAYS

from .estimates import Estimate
from .reach import MOST_REQUESTS, Reach
from .verdict import NO_CELLS, Answer, Cells, Lack, Verdict, join_reasons

# The first of these that any of a claim's questions has is the claim's answer.
DECISIVE: tuple[Answer, ...] = ("no", "open", "tie")

# What the requests behind a number of a kind are called; of others they are "requests".
REQUESTS_IN_WORDS = {"measured": "prompt"}

TIE = 1.05  # two numbers whose quotient is nearer to 1 than this differ by too little


@dataclass(frozen=True)
class Finding:
    """The answer to one question, as far as the interval of its number settles it.

    ``seems`` is what the number alone says; ``limits`` are those of the range.
    Between ``limits_of_tie`` the number says that two others are as good as equal;
    empty where the question is none of two numbers.
    """

    answer: Answer
    seems: bool
    estimate: Estimate
    limits: tuple[float, ...]
    limits_of_tie: tuple[float, ...] = ()

    @property
    def would_be_no(self) -> bool:
        """Whether an open question would be answered no, if the number stayed."""
        would_be_tie = self._nearest_limits != self.limits
        return not self.seems and not would_be_tie

    @property
    def requests_needed(self) -> int | None:
        """How many requests would settle an open question; None: too many to count."""
        return _most([reach.requests_needed for reach in self._reaches])

    @property
    def requests_at_last(self) -> int | None:
        """The same, once as many are replayed as there can be."""
        return _most([reach.requests_at_last for reach in self._reaches])

    @property
    def lacks_replays(self) -> bool:
        """Whether more replays would help to settle an open question."""
        return any(reach.lacks_replays for reach in self._reaches)

    @property
    def is_out_of_reach(self) -> bool:
        """Whether an open question will stay open, however much is run."""
        return any(reach.is_impossible for reach in self._reaches)

    @property
    def _reaches(self) -> list[Reach]:
        return [Reach(self.estimate, limit) for limit in self._nearest_limits]

    @cached_property
    def _nearest_limits(self) -> tuple[float, ...]:
        """The limits that an interval leaves out first as it becomes narrower."""
        if not self.limits_of_tie:
            return self.limits
        low, high = self.limits_of_tie
        if not low < self.estimate.value < high:
            return self.limits
        room_for_tie = self._distance_to(self.limits_of_tie)
        room_for_order = self._distance_to(self.limits)
        return self.limits_of_tie if room_for_tie > room_for_order else self.limits

    def _distance_to(self, limits: tuple[float, ...]) -> float:
        """How far the number is from the nearest of ``limits``."""
        return min(self.estimate.distance_to(limit) for limit in limits)


def _most(counts: Sequence[int | None]) -> int | None:
    """The largest; None if one of them is not known."""
    known = [count for count in counts if count is not None]
    return max(known, default=0) if len(known) == len(counts) else None


class Part(NamedTuple):
    """One question of a claim with its answer; ``reason`` says why it is not yes."""

    finding: Finding
    reason: str = ""


# -- one question ----------------------------------------------------------------------
def settle_within(estimate: Estimate, low: float, high: float) -> Finding:
    """Whether the number lies in low .. high, the ends included."""
    interval = estimate.interval
    answer: Answer = "open"
    if low <= interval.low and interval.high <= high:
        answer = "yes"
    elif interval.high < low or interval.low > high:
        answer = "no"
    seems = low <= estimate.value <= high
    return Finding(answer, seems, estimate, (low, high))


def settle_above(
    estimate: Estimate, limit: float, limits_of_tie: tuple[float, ...] = ()
) -> Finding:
    """Whether the number is above ``limit``; an exact one that equals it is not."""
    interval = estimate.interval
    answer: Answer = "open"
    if interval.low > limit:
        answer = "yes"
    elif interval.high <= limit:
        answer = "no"
    seems = estimate.value > limit
    finding = Finding(answer, seems, estimate, (limit,), limits_of_tie)
    return _or_tie(finding)


def settle_not_below(
    estimate: Estimate, limit: float, limits_of_tie: tuple[float, ...] = ()
) -> Finding:
    """Whether the number is at least ``limit``; an exact one that equals it is."""
    finding = settle_within(estimate, limit, inf)
    return _or_tie(replace(finding, limits_of_tie=limits_of_tie))


def _or_tie(finding: Finding) -> Finding:
    """A tie if it is open and its interval lies between the limits of one."""
    if finding.answer != "open" or not finding.limits_of_tie:
        return finding
    interval = finding.estimate.interval
    low, high = finding.limits_of_tie
    is_tie = low < interval.low and interval.high < high
    return replace(finding, answer="tie") if is_tie else finding


def tie_factor(printed_quotient: float | None, are_shares: bool = False) -> float:
    """How far from 1 a quotient of two numbers may be for them to be as good as equal.

    1.05, or half of what the paper prints if that is less, on the scale of logarithms:
    a difference of 4 % in print may not be called a tie for being under 5 %. Where it
    prints equal numbers, ours may be a tie as if it printed none.

    ``are_shares``: both are parts of 1, such as acceptance rates. Of these 0.99 and
    0.95 differ by 4 %, and what is rejected by a factor of five. So only the print says
    what is little, and without it they are never a tie.
    """
    if printed_quotient is None or printed_quotient == 1:
        return 1.0 if are_shares else TIE
    half_of_print = sqrt(max(printed_quotient, 1 / printed_quotient))
    return min(TIE, half_of_print)


# -- a claim ---------------------------------------------------------------------------
def conclude(
    parts: Sequence[Part],
    *,
    kind: str,
    value: str,
    expected: str,
    remarks: Sequence[str] = (),
) -> Verdict:
    """The verdict on a claim from the answers to all its questions.

    ``kind`` is that of the numbers. ``remarks`` stand in the note before all reasons.
    """
    answer = _join_answers([part.finding.answer for part in parts])
    reasons = []
    for part in parts:
        if part.finding.answer == answer != "yes" and part.reason:
            reasons.append(part.reason)

    if answer == "tie":
        all_of_them = f" in {len(reasons)} of {len(parts)} comparisons"
        count = all_of_them if len(parts) > 1 else ""
        reasons = [f"as good as equal{count}: {join_reasons(reasons)}"]
    if answer != "open":
        note = join_reasons([*remarks, *reasons])
        return Verdict(answer, value, expected, note)

    notes = [join_reasons(remarks)] if remarks else []
    notes.append(f"not settled: {join_reasons(reasons)}")
    notes.append(_say_what_would_settle(parts, kind))
    return Verdict(answer, value, expected, "; ".join(notes), _what_is_lacking(parts))


def _what_is_lacking(parts: Sequence[Part]) -> tuple[Lack, ...]:
    """What would help to settle the open questions of an open claim.

    Where one "no" is enough, what would help with any of them, the nearest first.
    """
    to_settle = _to_settle(parts)
    if not to_settle:
        return ()
    if not to_settle[0].would_be_no:
        return (_lack_of(to_settle),)
    return tuple(_lack_of([finding]) for finding in to_settle)


def _lack_of(findings: Sequence[Finding]) -> Lack:
    """What would settle all of these questions."""
    timed, replayed = _cells_of(findings), _cells_short_of_replays(findings)
    if any(finding.estimate.is_measured_once for finding in findings):
        return Lack(timed, replayed)
    needed = [finding.requests_needed for finding in findings]
    replays_come_first = replayed and _most(needed) is None
    if replays_come_first:
        timed = NO_CELLS
    return Lack(timed, replayed, max(map(_at_last, findings)))


def _at_last(finding: Finding) -> float:
    """How many timed requests it needs at last; infinity: too many to count."""
    if finding.estimate.is_measured_once:
        return 0
    count = finding.requests_at_last
    return inf if count is None else count


def _cells_short_of_replays(findings: Sequence[Finding]) -> Cells:
    return _cells_of([finding for finding in findings if finding.lacks_replays])


def _cells_of(findings: Sequence[Finding]) -> Cells:
    return NO_CELLS.union(*[finding.estimate.cells for finding in findings])


def _join_answers(answers: Sequence[Answer]) -> Answer:
    for answer in DECISIVE:
        if answer in answers:
            return answer
    return "yes"


def _say_what_would_settle(parts: Sequence[Part], kind: str) -> str:
    request = REQUESTS_IN_WORDS.get(kind, "request")
    to_settle = _to_settle(parts)
    if not to_settle:
        return (
            f"too close to the limit: {MOST_REPLAYS} replayed {request}s would leave "
            "it open"
        )
    all_are_needed = not to_settle[0].would_be_no
    decisive = to_settle if all_are_needed else to_settle[:1]
    if any(finding.estimate.is_measured_once for finding in decisive):
        return f"one {request} settles nothing; at least 2 are needed"

    count = _most([finding.requests_needed for finding in decisive])
    rests_on_replays = any(finding.estimate.correction for finding in decisive)
    if count is None and rests_on_replays:
        return f"the {request}s that were replayed leave it open: it takes more of them"
    if count is None:
        return (
            "too close to the limit: no number of "
            f"{request}s up to {MOST_REQUESTS:,} would settle it"
        )
    if rests_on_replays:
        return f"about {count} timed {request}s would settle it"
    return f"about {count} {request}s would settle it"


def _to_settle(parts: Sequence[Part]) -> list[Finding]:
    """The open questions that are to be settled; none where more runs will not do.

    Where one "no" is enough, the nearest first.
    """
    decisive = _decisive([p.finding for p in parts if p.finding.answer == "open"])
    within_reach = [finding for finding in decisive if not finding.is_out_of_reach]
    all_are_needed = not decisive[0].would_be_no
    if all_are_needed and len(within_reach) < len(decisive):
        return []
    return within_reach if all_are_needed else sorted(within_reach, key=_at_last)


def _decisive(open_questions: list[Finding]) -> list[Finding]:
    """The questions that would have to be settled: one "no" is enough, if any seems so.

    Where all numbers are as claimed, or as good as equal, every question must be
    settled.
    """
    seem_broken = [finding for finding in open_questions if finding.would_be_no]
    return seem_broken or open_questions
