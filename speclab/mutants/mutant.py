"""A mutant, and what it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Mutant(NamedTuple):
    """A mistaken method beside the right one, their settings, and how long a text.

    ``tokens`` is the shortest text that shows the mistake, or longer.
    """

    mistaken: Callable[..., None]
    right: Callable[..., None]
    settings: dict[str, Any]
    tokens: int = 3
