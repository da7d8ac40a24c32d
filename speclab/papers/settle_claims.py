"""Claims of one question or several, and how many requests would settle the open ones.

All questions of a claim have the same form (see ``findings``). It holds if all are
answered yes, and does not hold if one is answered no. It is a tie if none is no or
open, and one of them a tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from speclab.experiment.spec import MOST_REPLAYS

from .findings import Finding, most_of
from .reach import MOST_REQUESTS
from .verdict import NO_CELLS, Answer, Cells, Lack, Verdict, join_reasons

# The first of these that any of a claim's questions has is the claim's answer.
DECISIVE: tuple[Answer, ...] = ("no", "open", "tie")

# What the requests behind a number of a kind are called; of others they are "requests".
REQUESTS_IN_WORDS = {"measured": "prompt"}


class Part(NamedTuple):
    """One question of a claim with its answer; ``reason`` says why it is not yes."""

    finding: Finding
    reason: str = ""


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
        reasons = [_say_what_is_tied(reasons, of=len(parts))]
    if answer != "open":
        note = join_reasons([*remarks, *reasons])
        return Verdict(answer, value, expected, note)

    notes = [join_reasons(remarks)] if remarks else []
    notes.append(f"not settled: {join_reasons(reasons)}")
    notes.append(_say_what_would_settle(parts, kind))
    return Verdict(answer, value, expected, "; ".join(notes), _what_is_lacking(parts))


def _say_what_is_tied(reasons: Sequence[str], of: int) -> str:
    """Which of a claim's comparisons are ties, and how many they are ``of`` all."""
    where = f" in {len(reasons)} of {of} comparisons" if of > 1 else ""
    return f"as good as equal{where}: {join_reasons(reasons)}"


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
    replays_come_first = replayed and most_of(needed) is None
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

    count = most_of([finding.requests_needed for finding in decisive])
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
