"""Answers to the exercises on PEARL."""

from __future__ import annotations

import numpy as np

from speclib.core.sampling import ids
from speclib.core.verification import verify


# -- the time of a round ---------------------------------------------------------------
def round_by_algebra(gamma, draft, target):
    return (gamma * draft + target + abs(gamma * draft - target)) / 2


def round_in_an_array(gamma, draft, target):
    return np.array([gamma * draft, target]).max()


def round_by_recursion(gamma, draft, target):
    if gamma == 0:
        return target
    return draft + round_by_recursion(gamma - 1, draft, max(0, target - draft))


def one_draft_pass_less(gamma, draft, target):
    return max((gamma - 1) * draft, target)


def draft_pass_on_top(gamma, draft, target):
    return max(gamma * draft, target) + draft


def how_long_one_waits(gamma, draft, target):
    return abs(gamma * draft - target)


# -- the speed of a run ----------------------------------------------------------------
def speed_by_popping(rounds, seconds):
    tokens = 0
    while rounds:
        tokens += rounds.pop()[2]
    return tokens / seconds


def speed_by_recursion(rounds, seconds):
    if not rounds:
        return 0.0
    first, *others = rounds
    return first[-1] / seconds + speed_by_recursion(others, seconds)


def speed_by_unpacking(rounds, seconds):
    tokens = 0
    for _drafted, _accepted, committed in rounds:
        tokens += committed
    return tokens / seconds


def last_round_left_out(rounds, seconds):
    return sum(committed for _, _, committed in rounds[:-1]) / seconds


def mean_of_the_rounds(rounds, seconds):
    tokens = sum(committed for _, _, committed in rounds)
    return tokens / len(rounds) / seconds if rounds else 0.0


def at_most_what_was_drafted(rounds, seconds):
    return sum(min(drafted, own) for drafted, _, own in rounds) / seconds


# -- a round of PEARL ------------------------------------------------------------------
def ask_both(world, window, gamma, after=None):
    """The rows of the window and one more, and gamma drafts."""
    text = world.text + ids(window)
    scoring = world.target.score(text, last=len(window))
    return world.all(
        scoring, world.draft.propose(text if after is None else after, gamma)
    )


def pearl_as_in_the_lesson(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else (window + drafted)[len(verified.accepted) :]


def pearl_with_lists(world, window, gamma):
    """The window is one list that grows."""
    drafts = list(window)
    rows, drafted = ask_both(world, tuple(drafts), gamma)
    drafts += drafted
    verified = verify(world, drafts, rows)
    world.commit(list(verified.tokens))
    if verified.extra:
        drafts.clear()
    else:
        del drafts[: len(verified.accepted)]
    return drafts


def pearl_that_waits_twice(world, window, gamma):
    """Both operations have begun before it waits for one of them."""
    text = world.text + ids(window)
    drafting = world.draft.propose(text, gamma)
    scoring = world.target.score(text, last=len(window))
    drafted = world.wait(drafting)
    rows = world.wait(scoring)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    tested = len(rows)
    return () if len(verified.accepted) < tested else (window + drafted)[tested:]


def one_draft_less(world, window, gamma):
    return pearl_as_in_the_lesson(world, window, gamma - 1)


def at_most_two_drafts_kept(world, window, gamma):
    return pearl_as_in_the_lesson(world, window, gamma)[:2]


def early_rejection_overlooked(world, window, gamma):
    """It looks at the window alone to see whether anything was rejected."""
    rows, drafted = ask_both(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    if len(verified.accepted) < len(window):
        return ()
    return (window + drafted)[len(verified.accepted) :]


# -- a round of PEARL, with a mistake that has a name ----------------------------------
def all_drafts_kept(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else drafted


def drafted_without_the_window(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma, after=world.text)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else (window + drafted)[len(verified.accepted) :]


def all_drafts_always_kept(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma)
    world.commit(verify(world, window + drafted, rows).tokens)
    return drafted


def window_tested_alone(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma)
    verified = verify(world, window, rows)
    world.commit(verified.tokens)
    return () if verified.extra else (window + drafted)[len(verified.accepted) :]


def window_tested_alone_then_the_drafts(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma)
    verified = verify(world, window, rows)
    world.commit(verified.tokens)
    if len(verified.accepted) < len(window):
        return ()
    return drafted


def speculative_decoding(world, window, gamma):
    drafts = world.wait(world.draft.propose(world.text, gamma))
    text = world.text + ids(drafts)
    (rows,) = world.all(world.target.score(text, last=len(drafts)))
    world.commit(verify(world, drafts, rows).tokens)
    return ()


def last_forgotten(world, window, gamma):
    text = world.text + ids(window)
    scoring = world.target.score(text)
    rows, drafted = world.all(scoring, world.draft.propose(text, gamma))
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else (window + drafted)[len(verified.accepted) :]


def target_reads_no_window(world, window, gamma):
    scoring = world.target.score(world.text)
    drafting = world.draft.propose(world.text + ids(window), gamma)
    rows, drafted = world.all(scoring, drafting)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else (window + drafted)[len(verified.accepted) :]


def nobody_reads_the_window(world, window, gamma):
    scoring = world.target.score(world.text, last=len(window))
    rows, drafted = world.all(scoring, world.draft.propose(world.text, gamma))
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else (window + drafted)[len(verified.accepted) :]


def one_row_more(world, window, gamma):
    text = world.text + ids(window)
    scoring = world.target.score(text, last=len(window) + 1)
    rows, drafted = world.all(scoring, world.draft.propose(text, gamma))
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else (window + drafted)[len(verified.accepted) :]


def new_drafts_kept_whatever_happens(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return drafted[1:]


def new_drafts_kept_if_rejected(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return drafted[1:] if verified.extra else ()


def rest_kept_if_rejected(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma)
    block = window + drafted
    accepted, extra = verify(world, block, rows)
    world.commit(accepted + extra)
    if extra:
        return block[len(accepted) :]
    return ()


def commits_accepted(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.accepted)
    return () if verified.extra else (window + drafted)[len(verified.accepted) :]


def commits_extra(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.extra)
    return () if verified.extra else (window + drafted)[len(verified.accepted) :]


def window_and_drafts_kept(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else window + drafted


def drafted_tested_alone(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma)
    verified = verify(world, drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else drafted[1:]


def drafted_committed(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma)
    world.commit(ids(drafted))
    return ()


# -- a round of PEARL that ends with an error ------------------------------------------
def nothing_returned_after_a_rejection(world, window, gamma):
    rows, drafted = ask_both(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    if not verified.extra:
        return (window + drafted)[len(verified.accepted) :]
    return None  # as where nothing is written here


def tokens_returned(world, window, gamma):
    return ids(pearl_as_in_the_lesson(world, window, gamma))


def scored_without_ids(world, window, gamma):
    rows, drafted = world.all(
        world.target.score(world.text + window, last=len(window)),
        world.draft.propose(world.text + ids(window), gamma),
    )
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else (window + drafted)[len(verified.accepted) :]


def waits_for_nothing(world, window, gamma):
    text = world.text + ids(window)
    rows = world.target.score(text, last=len(window))
    drafted = world.draft.propose(text, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else (window + drafted)[len(verified.accepted) :]


RIGHT = {
    "round": [round_by_algebra, round_in_an_array, round_by_recursion],
    "speed": [speed_by_popping, speed_by_recursion, speed_by_unpacking],
    "pearl": [pearl_as_in_the_lesson, pearl_with_lists, pearl_that_waits_twice],
}
WRONG = {
    "round": [one_draft_pass_less, draft_pass_on_top, how_long_one_waits],
    "speed": [last_round_left_out, mean_of_the_rounds, at_most_what_was_drafted],
    "pearl": [one_draft_less, at_most_two_drafts_kept, early_rejection_overlooked],
}
NAMED = {
    "pearl": {
        "drafts after the text alone": [drafted_without_the_window],
        "new drafts for the window": [all_drafts_kept, all_drafts_always_kept],
        "window tested alone": [
            window_tested_alone,
            window_tested_alone_then_the_drafts,
        ],
        "speculative decoding": [speculative_decoding],
        "last forgotten": [last_forgotten],
        "window thrown away": [target_reads_no_window],
        "window in no text": [nobody_reads_the_window],
        "one row too many": [one_row_more],
        "window kept after a rejection": [new_drafts_kept_whatever_happens],
        "committed drafts kept": [window_and_drafts_kept],
        "window not tested": [drafted_tested_alone],
        "untested drafts": [drafted_committed],
        "return reversed": [new_drafts_kept_if_rejected, rest_kept_if_rejected],
        "accepted drafts alone": [commits_accepted],
        "replacement alone": [commits_extra],
    }
}


# With an error that helps: what its card says.
ENDS_WITH = {
    "Does every path through it end with a return?": [
        nothing_returned_after_a_rejection,
    ],
    "It is not a tuple of tokens": [tokens_returned],
    "`world.text + ids(window)`": [scored_without_ids],
    "an operation that has not been waited for": [
        waits_for_nothing,
    ],
}
