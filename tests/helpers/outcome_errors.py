"""How far a method's sampled texts are from the target's own, over every outcome.

The exact enumerator walks all outcomes of all coins, for small models and short texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from speclib.core.sampling import Rows, Sampler
from speclib.models.toy import Random
from speclib.worlds.enumerator import outcomes, total_variation, truth

VOCAB = 3
TARGET_SEED, DRAFT_SEED = 20, 10
UNRELATED, CLOSE = 0.0, 0.9  # the share of a draft's rows that are the target's


class NearTarget(Random):
    """A draft whose rows are ``share`` the target's, and for the rest its own."""

    def __init__(self, target: Random, seed: int, share: float):
        super().__init__(target.vocab, seed, target.horizon)
        self._target = Random(target.vocab, target.seed, target.horizon)
        self._share = share

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Distributions [last + 1, vocab] of what follows text[:-last] ... text."""
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
    """The total variation between a method's texts and the target's.

    share: of a draft's rows that are the target's.
    """
    sampler = Sampler(temperature=temperature)
    target = Random(VOCAB, TARGET_SEED, horizon=1 + tokens)
    models = {"draft": NearTarget(target, draft_seed, share), "target": target}
    written = outcomes(method, models, tokens, sampler=sampler, **settings)
    return total_variation(written, truth(target, tokens, sampler=sampler))
