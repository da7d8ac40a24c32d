"""SSD: speculative speculative decoding, with a draft ready for every likely outcome.

PEARL's draft continues from the outcome that it hopes for, and starts over after any
other. Here the draft guesses the likeliest outcomes of the current test, and continues
from all of them at once:

    target tests      text  w1 w2                    the window, from the previous round
    draft writes      a1 a2     b1 b2     e1 e2      for the outcomes (0, a), (1, b),
                                                     (2, e): number of accepted tokens,
                                                     and the token that follows
    outcome (1, b):   b1 b2 is the next window       a hit: nothing is left to draft
    outcome (1, x):   it has no branch               a miss: the draft starts over
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from speclib.core.sampling import Drafted, ids
from speclib.core.settings import require_counts, require_one_of
from speclib.core.verification import (
    LINE_TESTS,
    Outcome,
    Verified,
    drafting_attempt,
)
from speclib.errors import BadValue
from speclib.operations.fork import Branches
from speclib.worlds.world import World

from .method_facts import GAMMA, TEST, About, shows

Fan: TypeAlias = int | Sequence[int]  # guesses after each number of accepted drafts
BACKUPS = ("draft", "random", "none")
MOST_DRAFTED = 100_000  # in a round


def ssd(
    world: World,
    gamma: int,
    fan: Fan = 2,
    fan_after_miss: Fan | None = None,
    backup: str = "draft",
    test: str = "ratio",
    scale: float = 1.0,
    scaled: int | None = None,
) -> None:
    """Drafts ``gamma`` tokens for each likely outcome of a test, *while* it runs.

    The target scores the ``window``: the drafted tokens that await it. Meanwhile the
    draft guesses, for each number of tokens that may be accepted, the ``fan`` tokens
    that are likeliest to follow, and continues from each (see ``Fork``). The target's
    outcome is then looked up among the guesses. On a hit, the next window is ready. On
    a miss, the target waits until the draft has written a window (``backup`` "draft"),
    scores tokens drawn at random ("random"), or scores the bare text ("none").

    A round after a hit takes max(t_fork, t_target), where t_fork is the time of a pass
    over the window and of gamma passes with a token for each guess. A round after a
    miss takes gamma * t_draft more. Each commits 1 to gamma + 1 tokens. So gamma="auto"
    is round(c - 1).

    ``fan``: a count, or a list of counts for 0, 1, 2 ... accepted drafts; the last
    count also applies to all larger numbers. ``fan_after_miss``: the fan of rounds
    after a miss, if it differs, as in the paper. ``allotted_fan`` computes the paper's
    allocation. ``test``: "ratio", "block" or "exact", as in ``speculative``.

    ``scale``: the paper's C. Below 1, the draft's likeliest tokens are drafted less
    often than their probability, so that the target's own token is more often among the
    guesses after a rejection. ``scaled``: how many tokens are scaled; None: the largest
    fan plus one, as in the published code; the paper's text says one fewer.

    Source: Kumar, Dao and May 2026, "Speculative Speculative Decoding" (SSD, Saguaro),
    arXiv:2603.03251.
    Differences from the paper: the first round has an empty window, so its target pass
    tests nothing, and the first token comes as early as in plain decoding. Backups are
    drafted with the draft's own q, even if ``scale`` is below 1. Random tokens are
    tested as drafts with a uniform q, which is lossless; the published code accepts
    them by another rule, which is not.
    """
    require_one_of("backup", backup, BACKUPS)
    require_one_of("test", test, tuple(LINE_TESTS))
    after_hit = checked_fan("fan", fan)
    after_miss = after_hit
    if fan_after_miss is not None:
        after_miss = checked_fan("fan_after_miss", fan_after_miss)
    widest = max(after_hit + after_miss)
    likeliest = checked_scale(scale, scaled, widest)
    check_size(gamma, widest)

    window: tuple[Drafted, ...] = ()
    was_hit = True
    while world.going:
        # A round drafts up to twice, each time with new coins if the test needs them.
        coins_of_backup = drafting_attempt(test, 2 * world.round)
        coins_of_fork = drafting_attempt(test, 2 * world.round + 1)
        if not was_hit and backup == "draft":
            window = world.wait(world.draft.propose(world.text, gamma, coins_of_backup))
        if not was_hit and backup == "random":
            window = random_window(world, gamma, coins_of_backup)
        text = world.text + ids(window)
        counts = widened(after_hit if was_hit else after_miss, len(window) + 1)
        rows, branches = world.all(
            world.target.score(text, last=len(window)),
            world.draft.fork(text, gamma, counts, coins_of_fork, scale, likeliest),
        )
        verified = LINE_TESTS[test](world, window, rows)
        world.commit(verified.tokens)
        prepared = look_up(branches, verified)
        was_hit = prepared is not None
        window = prepared or ()


def look_up(branches: Branches, verified: Verified) -> tuple[Drafted, ...] | None:
    """What was drafted for this outcome; None if it was not guessed."""
    if not verified.extra:
        return None
    outcome = Outcome(len(verified.accepted), verified.extra[0])
    return branches.get(outcome)


def random_window(world: World, gamma: int, attempt: int) -> tuple[Drafted, ...]:
    """Drafts without a model: all tokens but end tokens are equally likely.

    An end token would cut the window, whose length would then reveal a token.
    """
    row = np.ones(world.vocab)
    row[list(world.eos)] = 0
    row /= row.sum()
    tokens = []
    for place in range(min(gamma, world.left)):
        position = len(world.text) + place
        tokens.append(world.coins.choose(row, position, "draft", attempt))
    return world.guess(tokens, row)


# -- how many guesses ------------------------------------------------------------------
def widened(counts: tuple[int, ...], positions: int) -> tuple[int, ...]:
    """One count for each of the ``positions``; the last count is repeated."""
    missing = positions - len(counts)
    return (counts + counts[-1:] * missing)[:positions]


def checked_fan(name: str, fan: Fan) -> tuple[int, ...]:
    """``fan`` as counts; raises BadValue if it is neither a count nor a list of counts.

    A count may be 0: then nothing is guessed after that number of accepted drafts.
    """
    is_list = isinstance(fan, Sequence) and not isinstance(fan, str)
    counts: Sequence[Any] = fan if is_list else (fan,)  # type: ignore[assignment]
    for count in counts:
        require_counts(0, **{name: count})
    if not counts:
        raise BadValue(f"{name} is empty: give a count, or a list with at least one")
    return tuple(counts)


def check_size(gamma: int, widest: int) -> None:
    """Raises BadValue if a round would draft more than ``MOST_DRAFTED`` tokens."""
    most = widest * (gamma + 1) * gamma
    if most > MOST_DRAFTED:
        raise BadValue(
            f"gamma {gamma} and a fan of {widest} ask for up to {most:,} drafts in a "
            f"round, but the limit is {MOST_DRAFTED:,}: give a smaller gamma or fan"
        )


def checked_scale(scale: float, scaled: int | None, widest: int) -> int:
    """How many of the likeliest tokens are scaled.

    ``widest``: the largest fan. Raises BadValue for a wrong ``scale`` or ``scaled``.
    """
    is_number = isinstance(scale, int | float) and not isinstance(scale, bool)
    if not is_number or not 0 < scale <= 1:
        raise BadValue(f"scale is {scale!r}: give a number above 0, up to 1 (off)")
    require_counts(0, scaled=scaled)
    return widest + 1 if scaled is None else scaled


def allotted_fan(
    budget: int, gamma: int, alpha: float, power: float
) -> tuple[int, ...]:
    """The paper's fan: ``budget`` guesses, allotted to gamma + 1 outcomes.

    F guesses miss the token with probability F^-power (the paper's r). Then misses are
    rarest with F_k proportional to alpha^(k / (1 + power)). If all drafts are accepted,
    F_k is multiplied by (1 - alpha)^(-1 / (1 + power)), since the next token is then
    not a replacement.

    Counts are rounded down, and the rest of the budget goes to the largest fractions.
    Raises BadValue for a budget below 1, an alpha not between 0 and 1, or a power not
    above 0.

    Source: arXiv:2603.03251, theorem on the capped geometric fan-out.
    """
    require_counts(budget=budget, gamma=gamma)
    if not 0 < alpha < 1 or not power > 0:
        raise BadValue(
            f"alpha is {alpha} and power {power}: give an alpha between 0 and 1, and a "
            "power above 0"
        )
    shares = [alpha ** (k / (1 + power)) for k in range(gamma + 1)]
    shares[gamma] *= (1 - alpha) ** (-1 / (1 + power))
    whole = sum(shares)
    wanted = [budget * share / whole for share in shares]
    counts = [int(count) for count in wanted]

    fractions = [count - int(count) for count in wanted]
    by_fraction = sorted(range(gamma + 1), key=lambda k: -fractions[k])
    for k in by_fraction[: budget - sum(counts)]:
        counts[k] += 1
    return tuple(counts)


# -- facts -----------------------------------------------------------------------------
def fan_in_words(fan: Fan | None) -> str:
    """How a timeline writes ``fan``."""
    if fan is None:
        return ""
    if isinstance(fan, int):
        return f"fan {fan}"
    return "fan " + "-".join(map(str, fan))


ABOUT = About(
    name="SSD",
    passes_without_drafts=1,  # over the window
    narrow='method="pearl"',
    labels={**GAMMA, "fan": fan_in_words, "backup": shows("backup: {}"), **TEST},
    variants=(
        {},
        {"fan": 1, "backup": "none"},
        {"fan": 1, "backup": "random"},
        {"fan": [3, 1], "fan_after_miss": 1},
        {"test": "block"},
        {"test": "exact", "backup": "none"},
        {"scale": 0.5, "scaled": 1},
    ),
)
