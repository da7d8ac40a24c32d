"""Drafting several sequences at once: an operation like those of ``operations``.

Knows no method, and no model beyond ``rows`` and ``chances``.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from speclib.core.sampling import Sampler

from .operation import Request, Stopped

GREEDY = Sampler()


class Branch(NamedTuple):
    """Draft greedily after ``text``, ``n`` tokens in all (the budget), as several sequences where
    the draft is not sure; the result is (k sequences of n // k tokens each, their chances).

    With P_i the draft's i-th highest probability at the first position, P its highest at the
    second, all at temperature 1: the sequences begin with the first token and with every other
    whose P_i > theta = P_1 * P, at most ``most``, and so many that k divides ``n``. ``k``
    given: with the k likeliest. Chances: theta (0 where k is given), then P_i of each sequence.

    Source: DuoDecoding, section 3.2.
    """

    text: tuple[int, ...]
    n: int
    k: int | None = None
    most: int = 8
    name = "branch"

    def run(self, model, request: Request):
        try:
            return self._drafted(model) if self.n else (((),), np.zeros(2))
        except Stopped:
            return (), np.empty(0)

    def _drafted(self, model):
        model.rows(self.text, 0, GREEDY)
        chances, theta, k = model.chances(), 0.0, self.k or 1
        ranked = np.argsort(-chances, kind="stable")
        start = (int(ranked[0]),)
        if self.k is None and self.n > 1:
            model.rows(self.text + start, 0, GREEDY)
            after = model.chances()
            theta, start = (
                chances[start[0]] * after.max(),
                (*start, int(after.argmax())),
            )
            k = self._allowed((chances > theta).sum())
        k = min(k, self.n, len(ranked))
        starts = (start[: self.n // k], *((int(t),) for t in ranked[1:k]))
        sequences = continued(model, self.text, starts, self.n // k)
        return sequences, np.array([theta, *chances[ranked[:k]]])

    def _allowed(self, likely: int) -> int:
        """``likely`` sequences, as far as ``most`` and a divisor of ``n`` allow."""
        return max(
            k
            for k in range(1, self.most + 1)
            if k == 1 or k <= likely and self.n % k == 0
        )

    def result(self, value, kept: int, fed: int, drafted):
        sequences, chances = value
        tokens = tuple(chain.from_iterable(sequences))
        flat = iter(drafted(tokens, None))
        return (
            tuple(tuple(islice(flat, len(s))) for s in sequences),
            {
                "tokens": tokens,
                "sequences": len(sequences),
                "last": kept + fed - len(self.text),
                "chances": tuple(map(float, chances)),
            },
        )


def continued(model, text, starts, n: int) -> tuple[tuple[int, ...], ...]:
    """Each of ``starts`` gone on with greedily after ``text`` until it has ``n`` tokens: in the
    model's own way if it has one, else one after the other, the first last: so it stays cached."""
    if hasattr(model, "continued"):
        return model.continued(text, starts, n)
    whole = []
    for tokens in reversed(starts):
        while len(tokens) < n:
            tokens += (int(model.rows(text + tokens, 0, GREEDY)[0].argmax()),)
        whole.append(tokens)
    return tuple(reversed(whole))
