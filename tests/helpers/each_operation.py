"""A few methods that together ask for every operation that a model can be asked for.

That they do is tested in methods/test_architectures.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

# Passes of one token and of several, after rejections, of trees that are tested, and of
# phrases, sequences and trees that are drafted.
EACH_KIND_OF_PASS = (
    "autoregressive",
    "pearl",
    "ssd",
    "duodecoding",
    "ouroboros",
    "tree",
    "eagle",
)


def others_thorough(methods: Iterable[str]) -> list[Any]:
    """Methods as parameters of a test; only the thorough tests try the others."""
    return [
        pytest.param(
            name, marks=() if name in EACH_KIND_OF_PASS else pytest.mark.thorough
        )
        for name in methods
    ]
