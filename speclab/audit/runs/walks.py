"""Experiments over every outcome: how far a method's texts are from the target's own.

The exact enumerator walks all outcomes of all coins, for small models and short texts.
So nothing here is left to chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from speclab.audit.planted import AS_PUBLISHED, MISTAKES
from speclab.audit.quantity import Quantities, Quantity
from speclib.core.sampling import Rows, Sampler
from speclib.errors import unknown_name
from speclib.methods import METHODS
from speclib.models.toy import Random
from speclib.worlds.enumerator import outcomes, total_variation, truth

VOCAB, TOKENS = 3, 3  # of the texts over which the enumerator walks
TARGET_SEED, DRAFT_SEED = 20, 10
UNRELATED, CLOSE = 0.0, 0.9  # the share of a draft's rows that are the target's


class Near(Random):
    """A draft whose rows are mostly the target's, and for the rest its own."""

    def __init__(self, target: Random, seed: int, share: float):
        super().__init__(target.vocab, seed, target.horizon)
        self._target = Random(target.vocab, target.seed, target.horizon)
        self._share = share

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Distributions [last + 1, vocab] of what follows text[:-last] ... text."""
        own = super().rows(text, last, sampler)
        targets = self._target.rows(text, last, sampler)
        return self._share * targets + (1 - self._share) * own


def _models(share: float) -> dict[str, Random]:
    """A target, and a draft that has this share of its rows from the target."""
    target = Random(VOCAB, TARGET_SEED, horizon=1 + TOKENS)
    return {"draft": Near(target, DRAFT_SEED, share), "target": target}


@cache
def _error(
    method: Callable[..., None], settings: tuple[tuple[str, Any], ...], share: float
) -> float:
    """How far a method's texts are from the target's, as total variation."""
    models = _models(share)
    written = outcomes(method, models, TOKENS, **dict(settings))
    return total_variation(written, truth(models["target"], TOKENS))


def planted_mistake(requests: int, mistake: str) -> Quantities:
    """What a planted mistake costs, and that the method without it costs nothing.

    Once with models that have nothing in common, and once with a draft that is close
    to its target.
    """
    if mistake not in MISTAKES:
        raise unknown_name(f"no planted mistake {mistake!r}", mistake, MISTAKES)
    planted = MISTAKES[mistake]
    settings = tuple(planted.settings.items())
    errors = {
        "error with the mistake": _error(planted.mistaken, settings, UNRELATED),
        "error with a draft that is close": _error(planted.mistaken, settings, CLOSE),
        "error without the mistake": _error(planted.right, settings, UNRELATED),
    }
    return {name: Quantity.exact(error) for name, error in errors.items()}


def every_outcome(
    requests: int, method: str, as_published: bool = False, **settings: Any
) -> Quantities:
    """How far the texts of a method are from the target's own.

    It is a registered one, or one with what its published code does otherwise. The
    models have nothing in common.
    """
    known = AS_PUBLISHED if as_published else METHODS
    if method not in known:
        raise unknown_name(f"no method {method!r} to walk over", method, known)
    error = _error(known[method], tuple(settings.items()), UNRELATED)
    return {"error": Quantity.exact(error)}
