"""Checks a rule by sampling if its outcomes cannot all be enumerated.

This is for rules that draw their own random numbers, large vocabularies and long
drafts. We run the rule many times and count what it commits. At each position, each
token should occur as often as the target's rows predict, given the tokens committed
before it in the same run. The same holds for the set of tokens that the target finds
likelier than the draft does: with a large vocabulary, a wrong rule is off for this set
but hardly for any single token. The sum of the differences is a martingale. It stays
near 0, and Freedman's inequality bounds how far it strays over any number of runs.

So a reported difference is due to chance in at most 1 check in 10,000. If none is
reported, we know how large an error we would have found.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt

from speclab.check.answers import committed_in
from speclab.check.calls import call_guarded
from speclab.check.case import ORDINALS, Array, Case, Rule
from speclib.core.sampling import Row, Tokens

FALSE_ALARMS = 1e-4  # share of lossless rules for which an error is reported
FOUND = 0.95  # share of errors of the reported size that are found
SIDE = 1.645  # mean - SIDE deviations: FOUND of a normal distribution is above it
RUNS = 20_000
LEAST_RUNS = 200  # with fewer, a rule is not judged
AT_ONCE = 100  # runs between two looks at the clock

# [longest, V + 1]: at each position, all tokens and the event "likelier to the target".
Counts = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sampled:
    """What many runs of a rule show.

    runs         number of runs
    difference   a sentence about a difference beyond chance; None: no such difference
    error        the largest difference between a frequency and its expected value
    would_find   the error that is found with probability 0.95: in a token's probability
                 or in the total probability of tokens that the target finds likelier
    tokens       mean number of tokens committed per pass
    tokens_off   half the width of the 95 % confidence interval of ``tokens``
    """

    runs: int
    difference: str | None
    error: float
    would_find: float
    tokens: float
    tokens_off: float


def sample(
    case: Case[Any],
    rule: Rule,
    array: Array = np.array,
    runs: int = RUNS,
    seconds: float = 10.0,
    seed: int = 0,
) -> Sampled:
    """Runs a rule ``runs`` times, or as often as ``seconds`` allow.

    Raises Failed if the rule returns something other than tokens.
    """
    random = np.random.default_rng(seed)
    shape = (case.longest, case.vocab + 1)
    seen, expected, variance = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    lengths: list[int] = []
    ends = process_time() + seconds
    while len(lengths) < runs:
        if len(lengths) % AT_ONCE == 0 and process_time() > ends:
            break
        proposal = case.sample(random)
        given = call_guarded(rule, *case.arguments(proposal, array), random.random)
        drafted = case.tokens_of(proposal)
        committed = committed_in(given, drafted, case.longest, case.vocab)
        lengths.append(len(committed))
        for position, token in enumerate(committed):
            row, is_likelier = _rows_after(case, committed[:position])
            chances = np.append(row, row[is_likelier].sum())
            seen[position, token] += 1
            seen[position, -1] += is_likelier[token]
            expected[position] += chances
            variance[position] += chances * (1 - chances)

    count = max(1, len(lengths))
    allowed = _allowed(variance)
    off = np.abs(seen - expected)
    return Sampled(
        runs=len(lengths),
        difference=_difference(seen, expected, off > allowed, count),
        error=float(off.max()) / count,
        would_find=_would_find(variance, count),
        tokens=float(np.mean(lengths)) if lengths else 0.0,
        tokens_off=1.96 * float(np.std(lengths)) / sqrt(count) if lengths else 0.0,
    )


def _rows_after(case: Case[Any], text: Tokens) -> tuple[Row, npt.NDArray[np.bool_]]:
    """The target's row after a text, and which tokens it makes likelier than the draft.

    If the draft has no row, there are no such tokens.
    """
    row = case.target[text]
    draft_row = case.draft.get(text)
    if draft_row is None:
        return row, np.zeros(len(row), bool)
    return row, row > draft_row


def _allowed(variance: Counts) -> Counts:
    """How far each count may be off by chance.

    Freedman's inequality: a martingale with steps of at most 1, whose variances sum to
    V, exceeds t with probability at most exp(-t^2 / (2 (V + t / 3))).
    """
    chance = FALSE_ALARMS / (2 * variance.size)  # both sides of every count
    bound = -log(chance)
    allowed: Counts = bound / 3 + np.sqrt((bound / 3) ** 2 + 2 * bound * variance)
    return np.where(variance > 0, allowed, 0.5)  # a certain count is never off


def _would_find(variance: Counts, count: int) -> float:
    """The error in a token's probability that is found with probability FOUND."""
    first = variance[0]  # every run commits a first token
    return float((_allowed(variance)[0] + SIDE * np.sqrt(first)).max()) / count


def _difference(
    seen: Counts, expected: Counts, is_off: npt.NDArray[np.bool_], count: int
) -> str | None:
    """The first token that occurs too often or too rarely, in a sentence."""
    if not is_off.any():
        return None
    position = int(is_off.any(axis=1).argmax())
    off = np.where(is_off[position], np.abs(seen - expected)[position], 0)
    token = int(off.argmax())
    is_event = token == seen.shape[1] - 1
    which = "one that the target finds likelier than the draft" if is_event else token
    name = ORDINALS[position] if position < len(ORDINALS) else f"{position + 1}th"
    return (
        f"In {count:,} runs, the {name} token is {which} with frequency "
        f"{seen[position, token] / count:.4f}; the target model says "
        f"{expected[position, token] / count:.4f}. Chance does not explain that."
    )
