"""Checks a user's settings, with the same wording for every error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from speclib.arguments import Number, Whole
from speclib.errors import BadValue

Role: TypeAlias = Literal["draft", "target"]  # of a model, and of a device
ROLES: tuple[Role, ...] = get_args(Role)
EndTokens: TypeAlias = int | Iterable[int]  # one or several tokens that end a text


def require_counts(least: int = 1, **counts: int | None) -> None:
    """Raises BadValue for a count below ``least`` or not whole; None is allowed."""
    for name, value in counts.items():
        if value is not None and not Whole(least=least).allows(value):
            raise BadValue(
                f"{name} is {value!r}: give at least {least}, a whole number"
            )


def require_number(name: str, value: object, kind: Number) -> None:
    """Raises BadValue for a value that is not a number of this ``kind``."""
    if not kind.allows(value):
        raise BadValue(f"{name} is {value!r}: {kind.advice}")


def require_bools(**choices: object) -> None:
    """Raises BadValue for a choice that is neither True nor False."""
    for name, value in choices.items():
        if not isinstance(value, bool):
            raise BadValue(f"{name} is {value!r}: give True or False")


def require_one_of(name: str, value: object, known: tuple[object, ...]) -> None:
    """Raises BadValue for a value that is not among the ``known``."""
    if value not in known:
        listed = [repr(choice) for choice in known]
        choices = ", ".join(listed[:-1]) + f" or {listed[-1]}"
        raise BadValue(f"{name} is {value!r}: give {choices}")


def end_token_set(eos: EndTokens) -> frozenset[int]:
    """The tokens that end a text, as a set; raises BadValue for a wrong token id."""
    tokens = [eos] if isinstance(eos, int) else list(eos)
    for token in tokens:
        require_counts(0, eos=token)
    return frozenset(tokens)
