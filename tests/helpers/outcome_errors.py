"""The distance between the distributions of a method's texts and of the target's.

With small models and short texts, the exact enumerator tries all outcomes of all coins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from speclib.core.sampling import Rows, Sampler
from speclib.models.toy import Random
from speclib.worlds.enumerator import outcomes, total_variation, truth

VOCAB = 3
TARGET_SEED, DRAFT_SEED = 20, 10
UNRELATED, CLOSE = 0.0, 0.9  # the target's weight in each of the draft's rows


class NearTarget(Random):
    """A draft whose rows mix the target's, with weight ``share``, and its own."""

    def __init__(self, target: Random, seed: int, share: float):
        super().__init__(target.vocab, seed, target.horizon)
        self._target = Random(target.vocab, target.seed, target.horizon)
        self._share = share

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Returns the rows after text[:-last] ... text, [last + 1, vocab]."""
        own = super().rows(text, last, sampler)
        targets = self._target.rows(text, last, sampler)
        return self._share * targets + (1 - self._share) * own


def outcome_error(
    method: Callable[..., None],
    settings: dict[str, Any],
    share: float = UNRELATED,
    tokens: int = 3,
    temperature: float = 1.0,
    draft_seed: int = DRAFT_SEED,
) -> float:
    """Returns the total variation between a method's texts and the target's.

    share: the target's weight in each of the draft's rows.
    """
    sampler = Sampler(temperature=temperature)
    target = Random(VOCAB, TARGET_SEED, horizon=1 + tokens)
    models = {"draft": NearTarget(target, draft_seed, share), "target": target}
    written = outcomes(method, models, tokens, sampler=sampler, **settings)
    return total_variation(written, truth(target, tokens, sampler=sampler))
