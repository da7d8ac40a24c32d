"""Two small random models, for computing probabilities of texts by hand.

``p`` is the target's row after a text, and ``q`` the draft's.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from speclib.core.sampling import Sampler
from speclib.models.toy import Random
from speclib.worlds.enumerator import outcomes

EXACT = 1e-12
VOCAB = 3
MODELS = {"draft": Random(VOCAB, 10), "target": Random(VOCAB, 20)}


def p(*text: int) -> np.ndarray:
    return MODELS["target"].rows((0, *text), 0, Sampler(1.0))[0]


def q(*text: int) -> np.ndarray:
    return MODELS["draft"].rows((0, *text), 0, Sampler(1.0))[0]


def assert_distribution(
    method: Callable[..., None],
    tokens: int,
    expected: Callable[..., float],
    **settings: object,
) -> None:
    """Asserts that texts of ``tokens`` tokens have probability ``expected(*text)``."""
    probabilities = outcomes(method, MODELS, tokens, **settings)
    for text in product(range(VOCAB), repeat=tokens):
        probability = probabilities.get(text, 0.0)
        assert probability == pytest.approx(expected(*text), abs=EXACT), text
