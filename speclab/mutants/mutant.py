"""A mutant, and the method to compare it with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Mutant(NamedTuple):
    """A mistaken method and the right one, with their settings and a text length.

    ``tokens``: a length at which the mistake shows.
    """

    mistaken: Callable[..., None]
    right: Callable[..., None]
    settings: dict[str, Any]
    tokens: int = 3
