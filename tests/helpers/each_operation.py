"""A few methods that together use every operation of a model.

methods/test_architectures.py tests that they do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

# They score one token, several tokens and trees, also after rejections, and draft
# phrases, sequences and trees.
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
    """Returns test parameters; methods not listed here run only in thorough tests."""
    return [
        pytest.param(
            name, marks=() if name in EACH_KIND_OF_PASS else pytest.mark.thorough
        )
        for name in methods
    ]
