"""The exact enumerator: a method's output distribution, with no sampling error.

In a run, each coin is not a number but an interval within [0, 1). Each ``choose``
narrows it to the part that leads to the chosen outcome:

    coin (position 3, "accept")   [0 ─────────────────────────────── 1)
    choose from (0.7, 0.3)        [0 ──── accepted ──── 0.7 ─ else ─ 1)
    this run takes "else"                              [0.7 ──────── 1)

We run the method once for each combination of outcomes, and add up the products of the
interval lengths. With a small vocabulary, this gives the exact distribution of the
output. A coin that is read twice is narrowed twice. So the enumerator detects a method
that reuses one coin for two decisions; an enumerator that branches independently at
each call would miss it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from speclib.core.sampling import Row, Sampler, Tokens
from speclib.core.settings import EndTokens, end_token_set
from speclib.data.latency import Latency
from speclib.errors import SpeclibError

from .virtual import Virtual

SLIVER = 1e-15  # an interval this short is a rounding error, not an outcome
ROUNDING = 1e-9  # how far the sum of all runs' probabilities may be from 1

Key = tuple[int, str, int]  # a coin's position, role and index
Distribution = dict[Tokens, float]  # output -> probability


class Interval(NamedTuple):
    """A part of [0, 1)."""

    low: float
    high: float

    @property
    def length(self) -> float:
        return self.high - self.low


WHOLE = Interval(0.0, 1.0)


ADVICE = "randomness may only come from the given coins"


class NotRepeatable(SpeclibError):
    """The method behaved differently in two runs with the same outcomes."""


class Intervals:
    """Coins as intervals, for one run of a method.

    ``path``: which outcome to take at each choice that has several; after the end of
    the path, outcome 0. ``taken`` and ``open`` record the run: the outcome taken at
    each of these choices, and how many outcomes it had.
    """

    def __init__(self, path: list[int]):
        self.path = path
        self.taken: list[int] = []
        self.open: list[int] = []
        self.held: dict[Key, Interval] = {}

    def choose(self, dist: Row, position: int, role: str, index: int = 0) -> int:
        """Chooses this run's outcome; see ``Coins.choose``."""
        key = (position, role, index)
        return self.take(key, _possible_outcomes(dist, self.held.get(key, WHOLE)))

    def take(self, key: Key, outcomes: Sequence[tuple[int, Interval]]) -> int:
        """Takes one of a coin's outcomes, and narrows the coin to it."""
        choice = self._next_choice(len(outcomes))
        outcome, self.held[key] = outcomes[choice]
        return outcome

    def _next_choice(self, options: int) -> int:
        """The path's choice among ``options`` outcomes; a single one is no choice."""
        if options < 2:
            return 0
        depth = len(self.taken)
        choice = self.path[depth] if depth < len(self.path) else 0
        if choice >= options:
            raise NotRepeatable(
                f"choice {depth + 1} of this run has {options} outcomes, but had more "
                f"before: {ADVICE}"
            )
        self.taken.append(choice)
        self.open.append(options)
        return choice

    @property
    def mass(self) -> float:
        """The probability of this run."""
        return prod(interval.length for interval in self.held.values())

    def following(self) -> list[int] | None:
        """The next path in depth-first order, or None after the last."""
        path, options = list(self.taken), list(self.open)
        while path and path[-1] + 1 == options[-1]:
            path.pop()
            options.pop()
        if not path:
            return None
        return [*path[:-1], path[-1] + 1]


def _possible_outcomes(dist: Row, held: Interval) -> list[tuple[int, Interval]]:
    """Each token that a coin in ``held`` can choose, and the part that chooses it."""
    edges = np.cumsum(dist, dtype=np.float64).tolist()
    whole = edges[-1]
    outcomes = []
    start = 0.0
    for token, edge in enumerate(edges):
        end = edge / whole
        low, high = max(held.low, start), min(held.high, end)
        if high - low > SLIVER:
            outcomes.append((token, Interval(low, high)))
        start = end
    return outcomes


def outcomes(
    method: Callable[..., None],
    models: dict[str, Any],
    tokens: int,
    *,
    sampler: Sampler | None = None,
    c: float = 2.0,
    prompt: Sequence[int] = (0,),
    eos: EndTokens = (),
    **settings: Any,
) -> Distribution:
    """Computes the exact distribution of ``method``'s output of ``tokens`` tokens.

    ``models``: device name -> model with a small vocabulary. ``c``: the target's time
    per pass divided by the draft's. ``eos``: see ``World.begin``. ``settings`` go to
    the method. Raises NotRepeatable if the method behaves differently from run to run.
    """
    world = Virtual(models, Latency.ratio(c))
    end_tokens = end_token_set(eos)
    distribution: Distribution = {}
    path: list[int] | None = []
    while path is not None:
        coins = Intervals(path)
        world.begin(
            prompt,
            sampler=sampler or Sampler(temperature=1.0),
            coins=coins,
            limit=tokens,
            eos=end_tokens,
        )
        method(world, **settings)
        world.end()
        output = world.text[len(prompt) :]
        distribution[output] = distribution.get(output, 0.0) + coins.mass
        path = coins.following()
    check_total_probability(distribution.values())
    return distribution


def check_total_probability(masses: Iterable[float]) -> None:
    """Raises NotRepeatable if the probabilities of all runs do not sum to one."""
    total = sum(masses)
    if abs(total - 1) > ROUNDING:
        raise NotRepeatable(
            f"the probabilities of all runs sum to {total:.4g}, not to 1: {ADVICE}"
        )


def truth(
    model: Any,
    tokens: int,
    *,
    sampler: Sampler | None = None,
    prompt: Sequence[int] = (0,),
    eos: EndTokens = (),
) -> Distribution:
    """Computes the target's own distribution over outputs: the product of its rows.

    No method is involved.
    """
    sampler = sampler or Sampler(temperature=1.0)
    end_tokens = end_token_set(eos)
    ended: Distribution = {}
    unfinished: Distribution = {(): 1.0}
    for _ in range(tokens):
        longer: Distribution = {}
        for text, mass in unfinished.items():
            row = model.rows((*prompt, *text), 0, sampler)[0]
            for token in np.flatnonzero(row):
                into = ended if int(token) in end_tokens else longer
                into[(*text, int(token))] = mass * float(row[token])
        unfinished = longer
    return ended | unfinished


def distance(a: Distribution, b: Distribution) -> float:
    """The largest difference in the probability of any output."""
    differences = []
    for output in a.keys() | b.keys():
        differences.append(abs(a.get(output, 0.0) - b.get(output, 0.0)))
    return max(differences)


def total_variation(a: Distribution, b: Distribution) -> float:
    """Half the sum of all differences in probability: 0 if equal, 1 if disjoint.

    This is the largest difference in the probability of any set of outputs.
    """
    differences = 0.0
    for output in a.keys() | b.keys():
        differences += abs(a.get(output, 0.0) - b.get(output, 0.0))
    return differences / 2
