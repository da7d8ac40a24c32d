"""The exact enumerator: a method's output distribution, with no sampling error.

Every coin of a run is held not as a number but as an interval of [0, 1), which each ``choose``
narrows to the part that gives the outcome taken. Walking every combination of outcomes and adding
the products of interval lengths gives the exact distribution of the output, on a vocabulary small
enough to walk. A coin read twice is narrowed twice, so a method that reuses one for two decisions
is seen; an enumerator that branches afresh at each call would miss it.
"""

from __future__ import annotations

from math import prod

import numpy as np

from speclib.core.sampling import Sampler
from speclib.data.latency import Latency

from .virtual import Virtual

SLIVER = 1e-15  # an interval this short is rounding, not an outcome


class Intervals:
    """Coins as intervals; ``path`` says which of the possible outcomes each open choice takes.

    Choices beyond the path take the first outcome; ``taken`` and ``open`` record the walk.
    """

    def __init__(self, path: list[int]):
        self.path, self.taken, self.open, self.held = path, [], [], {}

    def choose(self, dist: np.ndarray, position: int, role: str, index: int = 0) -> int:
        key = (position, role, index)
        low, high = self.held.get(key, (0.0, 1.0))
        edges = np.cumsum(dist, dtype=np.float64).tolist()
        scale, start, parts = edges[-1], 0.0, []
        for token, edge in enumerate(edges):
            end = edge / scale
            cut = max(low, start), min(high, end)
            if cut[1] - cut[0] > SLIVER:
                parts.append((token, cut))
            start = end
        choice = 0
        if len(parts) > 1:
            depth = len(self.taken)
            choice = self.path[depth] if depth < len(self.path) else 0
            self.taken.append(choice)
            self.open.append(len(parts))
        token, self.held[key] = parts[choice]
        return token

    @property
    def mass(self) -> float:
        return prod(high - low for low, high in self.held.values())

    def following(self) -> list[int] | None:
        """The next path in depth-first order, or None after the last."""
        path, options = list(self.taken), list(self.open)
        while path and path[-1] + 1 == options[-1]:
            path.pop()
            options.pop()
        return [*path[:-1], path[-1] + 1] if path else None


def outcomes(
    method,
    models: dict,
    tokens: int,
    *,
    sampler: Sampler | None = None,
    c: float = 2.0,
    prompt=(0,),
    eos=frozenset(),
    **settings,
) -> dict[tuple[int, ...], float]:
    """The exact distribution of ``method``'s output of ``tokens`` tokens: output -> probability.

    ``models``: device name -> model with a small vocabulary; ``settings`` go to the method.
    """
    world = Virtual(models, Latency.ratio(c))
    sampler, found, path = sampler or Sampler(temperature=1.0), {}, []
    while path is not None:
        coins = Intervals(path)
        world.begin(prompt, sampler=sampler, coins=coins, limit=tokens, eos=eos)
        method(world, **settings)
        world.end()
        output = world.text[len(prompt) :]
        found[output] = found.get(output, 0.0) + coins.mass
        path = coins.following()
    return found


def truth(
    model, tokens: int, *, sampler: Sampler | None = None, prompt=(0,), eos=frozenset()
) -> dict[tuple[int, ...], float]:
    """The target's own distribution over outputs, by multiplying its rows: no method involved."""
    sampler, done, live = sampler or Sampler(temperature=1.0), {}, {(): 1.0}
    for _ in range(tokens):
        grown = {}
        for text, mass in live.items():
            row = model.rows((*prompt, *text), 0, sampler)[0]
            for token in np.flatnonzero(row):
                ended = done if int(token) in eos else grown
                ended[(*text, int(token))] = mass * float(row[token])
        live = grown
    return done | live


def distance(a: dict, b: dict) -> float:
    """The largest difference of probability over all outputs of either."""
    return max(abs(a.get(k, 0.0) - b.get(k, 0.0)) for k in a.keys() | b.keys())
