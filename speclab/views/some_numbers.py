"""The type of an argument that accepts any collection of numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from speclib.arguments import AnyOfThem


@dataclass(frozen=True)
class Several(AnyOfThem):
    """A collection of numbers, finite or not."""

    in_words = "numbers"

    def allows(self, value: Any) -> bool:
        """Whether ``value`` is such a collection."""
        if isinstance(value, str | bytes | Mapping):
            return False
        return isinstance(value, Collection) and all(map(AnyOfThem().allows, value))


AnyNumbers: TypeAlias = Annotated[Sequence[float], Several()]
