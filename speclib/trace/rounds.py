"""What a trace tells of its rounds.

Where their time goes, what each round tests and leaves to the next, and how several
drafted sequences fared. Knows no method, model or clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from speclib.core.sampling import Tokens
from speclib.errors import BadValue
from speclib.operations.draft_sequences import DraftedSequences
from speclib.operations.draft_tree import DraftedTree
from speclib.operations.fork import DraftedBranches

from .events import COMMIT, CONTROLLER, Event, Trace


# -- where the time goes ---------------------------------------------------------------
@dataclass(frozen=True)
class StepTimes:
    """Counts and seconds from the end of the first round to the end of the last.

    ``steps``: the rounds. ``step_seconds``: of all of them. Of these any device was
    busy for ``step_busy``, the draft's for ``step_draft``, the target's for
    ``step_target``; ``step_verify`` went to verifying.
    """

    steps: int = 0
    step_seconds: float = 0.0
    step_busy: float = 0.0
    step_draft: float = 0.0
    step_target: float = 0.0
    step_verify: float = 0.0


def step_times(trace: Trace) -> StepTimes:
    """Where the time of the rounds after the first goes; that one alone prefills."""
    round_ends = [commit.end for commit in trace.commits]
    if len(round_ends) < 2:
        return StepTimes()

    later = [event for event in trace.events if event.round > 0]

    def seconds(belongs: Callable[[Event], bool]) -> float:
        return sum(event.dur for event in later if belongs(event))

    return StepTimes(
        steps=len(round_ends) - 1,
        step_seconds=round_ends[-1] - round_ends[0],
        step_busy=_busy_seconds(later, round_ends[0], round_ends[-1]),
        step_draft=seconds(lambda event: event.is_drafting),
        step_target=seconds(lambda event: event.is_scoring),
        step_verify=seconds(lambda event: event.op == COMMIT),
    )


def _busy_seconds(events: list[Event], start: float, end: float) -> float:
    """Seconds between ``start`` and ``end`` in which at least one device works."""
    busy, covered_until = 0.0, start
    on_devices = [event for event in events if event.device != CONTROLLER]
    for event in sorted(on_devices, key=lambda event: event.ts):
        busy += max(0.0, min(event.end, end) - max(event.ts, covered_until))
        covered_until = max(covered_until, event.end)
    return busy


# -- the published accounting ----------------------------------------------------------
class TokensInTime(NamedTuple):
    """So many tokens, counted at so many seconds."""

    tokens: int
    seconds: float


def with_tail(trace: Trace) -> TokensInTime:
    """What the published code of PEARL and DuoDecoding counts, and when.

    It stops at the first commit after which the committed tokens, together with drafted
    ones that still await the target, reach the limit. Where there is no such commit: at
    the last one that has tokens.

    That code drafts beyond the limit and counts what it drafts there. Our devices draft
    no further than a request goes. To see the same tail, ask for ``longest_tail`` more
    tokens and count what ``cut_at`` gives.
    """
    limit = trace.meta.get("limit", float("inf"))
    committed, at = 0, 0.0
    tails = _unverified_after_each_commit(trace, limit)
    for commit, tail in zip(trace.commits, tails, strict=True):
        if commit.tokens:
            committed += len(commit.tokens)
            at = commit.end
        if committed + tail >= limit:
            return TokensInTime(committed + tail, commit.end)
    return TokensInTime(committed, at)


def longest_tail(gamma: int) -> int:
    """How far drafts of PEARL and DuoDecoding may go beyond a limit.

    One window may await the target while the next is being drafted.
    """
    return 2 * gamma


def cut_at(trace: Trace, limit: int) -> Trace:
    """The first ``limit`` tokens of a longer request, as a request of their own.

    Its drafts go beyond the limit. Of the last round only the committed tokens are cut:
    drafts that it accepted beyond the limit stay accepted.
    """
    meta = trace.meta | {"limit": limit}
    committed = 0
    for last in trace.commits:
        if committed + len(last.tokens) >= limit:
            break
        committed += len(last.tokens)
    else:
        return Trace(trace.events, meta)

    cut = last._replace(tokens=last.tokens[: limit - committed])
    kept = [event for event in trace.events if event.round <= last.round]
    return Trace([cut if event is last else event for event in kept], meta)


def _unverified_after_each_commit(trace: Trace, limit: float) -> list[int]:
    """How many drafted tokens still await the target after each commit.

    They are those that the next round's first pass scores, unless they were drafted in
    that round. After a last commit that the limit ended there is no next round: then
    they are the drafts made during the last pass, after a first token that is accepted.
    """
    if not trace.commits:
        return []

    rounds: list[list[Event]] = [[] for _ in range(len(trace.commits) + 1)]
    for event in trace.operations:
        rounds[min(event.round, len(rounds) - 1)].append(event)

    tails = []
    for number in range(len(trace.commits) - 1):
        tails.append(_left_to_the_next(rounds[number], rounds[number + 1]))

    committed = sum(len(commit.tokens) for commit in trace.commits)
    last_round = rounds[-2]
    tails.append(_drafted_beside(last_round) if committed == limit else 0)
    return tails


def _left_to_the_next(this_round: list[Event], next_round: list[Event]) -> int:
    """Drafts of this round that the next round's pass tests.

    An operation's id tells what was asked for first. So no clock is needed to tell what
    was drafted before a pass, which it scores, from what is drafted beside it.
    """
    target_pass = _first_pass(next_round)
    if target_pass is None:
        return 0
    has_drafted = any(event.is_drafting for event in this_round)
    is_of_next_round = any(
        event.is_drafting and event.id < target_pass.id for event in next_round
    )
    return target_pass.candidates if has_drafted and not is_of_next_round else 0


def _drafted_beside(last_round: list[Event]) -> int:
    """Drafts beside the last round's pass that go on from an accepted token."""
    target_pass = _first_pass(last_round)
    if target_pass is None:
        return 0
    tail = 0
    for event in last_round:
        is_beside = event.is_drafting and event.id > target_pass.id
        if is_beside and "accepted" in _first_outcomes(event):
            tail += len(event.sequences[0]) - 1
    return tail


def _first_pass(events: list[Event]) -> Event | None:
    """The target pass that was asked for first."""
    passes = [event for event in events if event.is_scoring]
    return min(passes, key=lambda event: event.id, default=None)


def _first_outcomes(event: Event) -> tuple[str, ...]:
    """What became of the first token of each drafted sequence."""
    if not event.tokens:
        return ()
    return event.outcome[:: len(event.sequences[0])]


# -- windows ---------------------------------------------------------------------------
class WindowRound(NamedTuple):
    """A round, and what its target pass tests: the window, and what is new.

    ::

        window          new drafts
        d2  d3  d4      d5  d6  d7  d8      in the order of the text
        r1  r2  r3      r4                  rows of the pass: each tests the draft above

    ``window`` are the drafts that earlier rounds left to this one, ``drafted`` its own.
    ``outcomes``: what each of them is when the round ends: accepted, rejected,
    discarded, or waiting, which is to be in the next window. ``rows``: distributions
    that the pass gives; 0 without a pass. ``own``: the target's own token, if it wrote
    one. ``drafting``, ``target_pass``: the events of both; None where there is none.
    """

    number: int
    before: Tokens
    window: Tokens
    drafted: Tokens
    outcomes: tuple[str, ...]
    rows: int
    committed: Tokens
    own: int | None
    drafting: Event | None
    target_pass: Event | None

    @property
    def drafts(self) -> Tokens:
        """All drafts that are there when the round ends, in the order of the text."""
        return self.window + self.drafted

    @property
    def is_at_once(self) -> bool:
        """Whether drafts are written while the target makes its pass."""
        if self.drafting is None or self.target_pass is None:
            return False
        return self.drafting.id > self.target_pass.id

    @property
    def early(self) -> int | None:
        """Which draft is tested while it is being written: its place in ``drafts``."""
        place = len(self.window)
        if self.is_at_once and self.drafted and self.rows > place:
            return place
        return None


def window_rounds(trace: Trace) -> list[WindowRound]:
    """The rounds of a run, each with the window that the one before has left to it.

    Raises BadValue for a round with several drafts or passes at once, or with a tree.
    """
    rounds = []
    text: Tokens = ()
    waiting: list[tuple[int, str]] = []  # drafts with what becomes of them in the end
    for commit in trace.commits:
        events = [e for e in trace.operations if e.round == commit.round]
        drafting = _only([e for e in events if e.is_drafting], commit.round)
        target_pass = _only([e for e in events if e.is_scoring], commit.round)
        window = tuple(token for token, _ in waiting)
        if drafting is not None:
            waiting += zip(drafting.tokens, drafting.outcome, strict=True)
        rows = target_pass.candidates + 1 if target_pass is not None else 0
        _check_candidates(target_pass, [token for token, _ in waiting])

        tested = [outcome for _, outcome in waiting[:rows]]
        accepted = tested.count("accepted")
        has_own = len(commit.tokens) > accepted
        is_last = commit is trace.commits[-1]
        rest = "discarded" if has_own or is_last else "waiting"
        outcomes = tuple(tested) + (rest,) * len(waiting[rows:])
        rounds.append(
            WindowRound(
                number=commit.round + 1,
                before=text,
                window=window,
                drafted=drafting.tokens if drafting is not None else (),
                outcomes=outcomes,
                rows=rows,
                committed=commit.tokens,
                own=commit.tokens[-1] if has_own else None,
                drafting=drafting,
                target_pass=target_pass,
            )
        )
        text += commit.tokens
        waiting = [] if has_own else waiting[rows:]
    return rounds


def _check_candidates(target_pass: Event | None, drafts: list[int]) -> None:
    """Raises BadValue where a pass tests others than the first of these drafts."""
    if target_pass is None:
        return
    candidates = target_pass.tokens[len(target_pass.tokens) - target_pass.candidates :]
    if list(candidates) != drafts[: len(candidates)]:
        raise BadValue(
            f"round {target_pass.round + 1} tests {list(candidates)} of the drafts "
            f"{drafts}: a window is shown of runs of pearl, speculative and "
            "autoregressive"
        )


def _only(events: list[Event], number: int) -> Event | None:
    """The only event of a round, drafting a line or a pass; None where there is none.

    Raises BadValue where there are several, or several sequences.
    """
    with_tokens = [event for event in events if event.tokens]
    is_line = all(
        event.is_scoring or event.depths == tuple(range(len(event.tokens)))
        for event in with_tokens
    )
    if len(with_tokens) > 1 or not is_line:
        raise BadValue(
            f"round {number + 1} has several drafts or passes at once: a window is "
            "shown of runs of pearl, speculative and autoregressive"
        )
    return with_tokens[0] if with_tokens else None


# -- several sequences, and trees ------------------------------------------------------
def sequence_draftings(trace: Trace) -> list[Event]:
    """The draftings of several sequences from which anything came."""
    return [
        event
        for event in trace.operations
        if isinstance(event.payload, DraftedSequences) and event.tokens
    ]


def tree_draftings(trace: Trace) -> list[Event]:
    """The draftings of a tree from which anything came."""
    return [
        event
        for event in trace.operations
        if isinstance(event.payload, DraftedTree) and event.tokens
    ]


def fork_draftings(trace: Trace) -> list[Event]:
    """The draftings for several outcomes of a test from which anything came."""
    return [
        event
        for event in trace.operations
        if isinstance(event.payload, DraftedBranches) and event.tokens
    ]
