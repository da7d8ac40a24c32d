"""A mutant, and the method to compare it with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Mutant(NamedTuple):
    """A method with a mistake, the right one, their settings, and a text length.

    ``tokens`` is long enough for the mistake to show.
    """

    mistaken: Callable[..., None]
    right: Callable[..., None]
    settings: dict[str, Any]
    tokens: int = 3
