"""Experiments over every outcome: how far a method's texts are from the target's own.

The exact enumerator walks all outcomes of all coins, for small models and short texts.
So nothing here is left to chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from speclab.audit.quantity import Quantities, Quantity
from speclab.mutants import AS_PUBLISHED, MUTANTS
from speclab.mutants.mutant import Mutant
from speclib.core.sampling import Rows, Sampler
from speclib.errors import unknown_name
from speclib.methods import METHODS
from speclib.models.toy import Random
from speclib.worlds.enumerator import outcomes, total_variation, truth

VOCAB, TOKENS = 3, 3  # of the texts over which the enumerator walks
TARGET_SEED, DRAFT_SEED = 20, 10
SAMPLED = Sampler(temperature=1.0)
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


@cache
def error_of(
    method: Callable[..., None],
    settings: tuple[tuple[str, Any], ...],
    share: float,
    tokens: int = TOKENS,
    draft_seed: int = DRAFT_SEED,
    sampler: Sampler = SAMPLED,
) -> float:
    """How far a method's texts are from the target's, as total variation.

    share: of a draft's rows that are the target's.
    """
    target = Random(VOCAB, TARGET_SEED, horizon=1 + tokens)
    models = {"draft": Near(target, draft_seed, share), "target": target}
    written = outcomes(method, models, tokens, sampler=sampler, **dict(settings))
    return total_variation(written, truth(target, tokens, sampler=sampler))


def errors_of(mutant: Mutant) -> dict[str, float]:
    """What a mistake costs, and that the method without it costs nothing."""
    mistaken, right, settings, tokens = mutant
    chosen = tuple(settings.items())
    return {
        "error with the mistake": error_of(mistaken, chosen, UNRELATED, tokens),
        "error with a draft that is close": error_of(mistaken, chosen, CLOSE, tokens),
        "error without the mistake": error_of(right, chosen, UNRELATED, tokens),
    }


def planted_mistake(requests: int, mistake: str) -> Quantities:
    """What a planted mistake costs, and that the method without it costs nothing.

    Once with models that have nothing in common, and once with a draft that is close
    to its target.
    """
    if mistake not in MUTANTS:
        raise unknown_name(f"no planted mistake {mistake!r}", mistake, MUTANTS)
    errors = errors_of(MUTANTS[mistake])
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
    error = error_of(known[method], tuple(settings.items()), UNRELATED)
    return {"error": Quantity.exact(error)}
