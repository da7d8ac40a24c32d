"""The drafts and tests in every round of a trace.

This module does not depend on the method, the models or the clock.
"""

from __future__ import annotations

from typing import NamedTuple

from speclib.core.sampling import Tokens
from speclib.errors import BadValue
from speclib.operations.draft_sequences import DraftedSequences
from speclib.operations.draft_tree import DraftedTree
from speclib.operations.fork import DraftedBranches
from speclib.trace.events import Event, Trace


# -- windows ---------------------------------------------------------------------------
class WindowRound(NamedTuple):
    """A round: its window, its new drafts, and how the target pass tests them.

    ::

        window          new drafts
        d2  d3  d4      d5  d6  d7  d8      in text order
        r1  r2  r3      r4                  distributions: each tests the draft above

    ``window`` contains the drafts left over from earlier rounds, ``drafted`` this
    round's drafts. ``outcomes`` lists the state of each draft at the end of the round:
    accepted, rejected, discarded, or waiting for the next window. ``rows`` is the
    number of distributions from the target pass; 0 without a pass. ``own`` is the
    target's own token, if it wrote one. ``drafting`` and ``target_pass`` are the
    events, or None.
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
        """All drafts at the end of the round, in the order of the text."""
        return self.window + self.drafted

    @property
    def is_at_once(self) -> bool:
        """Whether drafting and the target pass run at the same time."""
        if self.drafting is None or self.target_pass is None:
            return False
        return self.drafting.id > self.target_pass.id

    @property
    def early(self) -> int | None:
        """The index in ``drafts`` of the new draft that a simultaneous pass tests."""
        first_new = len(self.window)
        if self.is_at_once and self.drafted and self.rows > first_new:
            return first_new
        return None


def window_rounds(trace: Trace) -> list[WindowRound]:
    """The rounds of a run, each with the window left over from the previous round.

    Raises BadValue for a round with several drafts or passes at once, or with a tree.
    """
    rounds = []
    text: Tokens = ()
    waiting: list[tuple[int, str]] = []  # drafts with their final outcomes
    for commit in trace.commits:
        events = [e for e in trace.operations if e.round == commit.round]
        drafting = _only([e for e in events if e.is_drafting], commit.round)
        target_pass = _only([e for e in events if e.is_scoring], commit.round)
        window = tuple(token for token, _ in waiting)
        if drafting is not None:
            waiting += zip(drafting.tokens, drafting.outcome, strict=True)
        rows = target_pass.tested + 1 if target_pass is not None else 0
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
    """Raises BadValue if a pass tests anything but the first of these drafts."""
    if target_pass is None:
        return
    candidates = target_pass.tokens[len(target_pass.tokens) - target_pass.tested :]
    if list(candidates) != drafts[: len(candidates)]:
        raise BadValue(
            f"round {target_pass.round + 1} tests {list(candidates)} of the drafts "
            f"{drafts}: windows are shown only for runs of pearl, speculative and "
            "autoregressive"
        )


def _only(events: list[Event], number: int) -> Event | None:
    """The one event with tokens among a round's draftings or passes; None if missing.

    Raises BadValue for several such events, and for drafts that are not a line.
    """
    with_tokens = [event for event in events if event.tokens]
    is_line = all(
        event.is_scoring or event.depths == tuple(range(len(event.tokens)))
        for event in with_tokens
    )
    if len(with_tokens) > 1 or not is_line:
        raise BadValue(
            f"round {number + 1} has several drafts or passes at once: windows are "
            "shown only for runs of pearl, speculative and autoregressive"
        )
    return with_tokens[0] if with_tokens else None


# -- several sequences, and trees ------------------------------------------------------
def sequence_draftings(trace: Trace) -> list[Event]:
    """The draftings of several sequences that produced tokens."""
    return [
        event
        for event in trace.operations
        if isinstance(event.payload, DraftedSequences) and event.tokens
    ]


def tree_draftings(trace: Trace) -> list[Event]:
    """The draftings of a tree that produced tokens."""
    return [
        event
        for event in trace.operations
        if isinstance(event.payload, DraftedTree) and event.tokens
    ]


def fork_draftings(trace: Trace) -> list[Event]:
    """The draftings for several outcomes of a test that produced tokens."""
    return [
        event
        for event in trace.operations
        if isinstance(event.payload, DraftedBranches) and event.tokens
    ]
