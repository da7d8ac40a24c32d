"""Mistakes in DuoDecoding, when choosing a sequence and when testing the window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from speclib.core.sampling import Drafted, Tokens, ids
from speclib.core.verification import Verified, match
from speclib.worlds.world import World

from .draft_tests import Drafts, DraftTest, Method, TargetRows

MOST = 8  # sequences, as in its published code
Draft: TypeAlias = tuple[Drafted, ...]
Sequences: TypeAlias = tuple[Draft, ...]
# choose(was_accepted, sequences, target_token) returns the next window.
Choose: TypeAlias = Callable[[bool, Sequences, Tokens], Draft]


def duodecoding_with(choose: Choose, test: DraftTest = match) -> Method:
    """DuoDecoding whose next window comes from ``choose``."""

    def run(world: World, gamma: int) -> None:
        window: Draft = ()
        while world.going:
            text = world.text + ids(window)
            rows, sequences = world.all(
                world.target.score(text, last=len(window)),
                world.draft.draft_sequences(text, gamma, None, MOST),
            )
            tested = test(world, window, rows)
            was_accepted = len(tested.accepted) == len(window)
            window = choose(was_accepted, sequences, tested.extra)
            world.commit(tested.tokens)

    return run


def chosen(was_accepted: bool, sequences: Sequences, token: Tokens) -> Draft:
    """No mistake: the rest of the sequence that begins with the target's own token."""
    for sequence in sequences:
        if was_accepted and sequence and ids(sequence[:1]) == token:
            return sequence[1:]
    return ()


def chosen_token_twice(
    was_accepted: bool, sequences: Sequences, token: Tokens
) -> Draft:
    """The whole sequence, including the token that is already committed."""
    for sequence in sequences:
        if was_accepted and sequence and ids(sequence[:1]) == token:
            return sequence
    return ()


def none_chosen(was_accepted: bool, sequences: Sequences, token: Tokens) -> Draft:
    """No sequence, whatever token is written."""
    return ()


def chosen_after_a_rejection(
    was_accepted: bool, sequences: Sequences, token: Tokens
) -> Draft:
    """A sequence, although it may follow a text that is never written."""
    return chosen(True, sequences, token)


def likeliest_always(was_accepted: bool, sequences: Sequences, token: Tokens) -> Draft:
    """The first sequence, whatever token is written."""
    return sequences[0][1:] if sequences else ()


def window_untested(world: World, window: Drafts, rows: TargetRows) -> Verified:
    """Accepts the whole window untested."""
    own = match(world, (), rows[-1:]).tokens
    return Verified(ids(window), own)
