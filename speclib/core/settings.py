"""Checks of the numbers that a user gives, with one wording for all of them."""

from __future__ import annotations

from speclib.errors import BadValue


def require_counts(least: int = 1, **counts: int | None) -> None:
    """Raises BadValue for a count below ``least`` or not whole. None is a default."""
    for name, value in counts.items():
        if value is None:
            continue
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole:
            raise BadValue(
                f"{name} is {value!r}: give a whole number, at least {least}"
            )
        if value < least:
            raise BadValue(f"{name} is {value}: give at least {least}")


def require_one_of(name: str, value: object, known: tuple[object, ...]) -> None:
    """Raises BadValue for a value that is none of the ``known`` ones."""
    if value not in known:
        listed = [repr(choice) for choice in known]
        choices = ", ".join(listed[:-1]) + f" or {listed[-1]}"
        raise BadValue(f"{name} is {value!r}: give {choices}")
