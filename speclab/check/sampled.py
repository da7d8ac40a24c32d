"""An answer by chance, where not every outcome can be walked.

That is so for a rule that draws its own random numbers, and for large vocabularies and
long drafts. Then the rule is run many times, and what it commits is counted. At each
position each token should come as often as the target's rows say, which follow what was
committed before it in the same run. So should all tokens together that the target
finds likelier than the draft does: a wrong rule of a large vocabulary is off there, and
hardly at any token alone. The sum of the differences is a martingale: it stays near 0,
and how near is known for every number of runs (Freedman's inequality).

So a difference that is found is no chance, but for 1 check in 10,000. And where none is
found, it is known how large an error would have been found.
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

FALSE_ALARMS = 1e-4  # of all checks of a lossless rule
FOUND = 0.95  # of all checks of a rule with an error of the size that is named
SIDE = 1.645  # standard deviations that FOUND of a normal distribution stay above
RUNS = 20_000
LEAST_RUNS = 200  # of fewer nothing is said
AT_ONCE = 100  # runs between two looks at the clock

# [longest, V + 1]: of each position the tokens, and the event "likelier to the target".
Counts = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sampled:
    """What many runs of a rule show.

    runs         how many there were
    difference   what differs more than chance allows, in a sentence; None: nothing does
    error        the largest difference between a share and what it should be
    would_find   the size of an error that is found with probability 0.95: in a token's
                 probability, or in that of all that are likelier to the target
    tokens       committed in a pass, in the mean
    tokens_off   how far this mean is from the true one, at most, with probability 0.95
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
    """What ``runs`` runs of a rule show, or as many as fit in ``seconds``.

    Raises Failed where the rule gives what are no tokens.
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
    """The target's row after a text, and which tokens it finds likelier than the draft.

    Where the draft has no row, no token is.
    """
    row = case.target[text]
    draft_row = case.draft.get(text)
    if draft_row is None:
        return row, np.zeros(len(row), bool)
    return row, row > draft_row


def _allowed(variance: Counts) -> Counts:
    """How far each count may be off by chance.

    By Freedman's inequality a martingale of steps of at most 1, whose steps' variances
    sum to V, exceeds t with probability exp(-t^2 / (2 (V + t / 3))) at most.
    """
    chance = FALSE_ALARMS / (2 * variance.size)  # both sides of every count
    bound = -log(chance)
    allowed: Counts = bound / 3 + np.sqrt((bound / 3) ** 2 + 2 * bound * variance)
    return np.where(variance > 0, allowed, 0.5)  # what is certain is never off


def _would_find(variance: Counts, count: int) -> float:
    """The error of a token's probability that is found with probability FOUND."""
    first = variance[0]  # every run commits a first token
    return float((_allowed(variance)[0] + SIDE * np.sqrt(first)).max()) / count


def _difference(
    seen: Counts, expected: Counts, is_off: npt.NDArray[np.bool_], count: int
) -> str | None:
    """The first token that comes too often or too seldom, in a sentence."""
    if not is_off.any():
        return None
    position = int(is_off.any(axis=1).argmax())
    off = np.where(is_off[position], np.abs(seen - expected)[position], 0)
    token = int(off.argmax())
    is_event = token == seen.shape[1] - 1
    which = "one that the target finds likelier than the draft" if is_event else token
    name = ORDINALS[position] if position < len(ORDINALS) else f"{position + 1}th"
    return (
        f"In {count:,} runs the {name} token is {which} in a share of "
        f"{seen[position, token] / count:.4f}; the target model says "
        f"{expected[position, token] / count:.4f}. Chance does not explain that."
    )
