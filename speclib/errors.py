"""The errors that a caller can mend.

All of them are SpeclibErrors. Each is also what Python calls such a mistake, so
``except ValueError`` catches a bad value without knowing speclib.
"""

from __future__ import annotations

from collections.abc import Iterable


class SpeclibError(Exception):
    """A mistake the caller can mend.

    Its message names the thing, its value and the next step.
    """


class BadValue(SpeclibError, ValueError):
    """A value that is wrong, in a call or in a file."""


class UnknownName(BadValue, LookupError):
    """A name that stands for nothing; the message lists the names that do."""


class BadCall(SpeclibError, TypeError):
    """A call with an argument that is missing, or that the function does not have."""


def unknown_name(
    problem: str, name: object, known: Iterable[str], advice: str = ""
) -> UnknownName:
    """The error for a ``name`` that is not among the ``known`` ones.

    ``problem`` says what is wrong, as in "unknown method 'perl'". The message then
    lists the known names, suggests the one nearest to ``name`` and ends with
    ``advice``::

        unknown method 'perl'; known: autoregressive, pearl. Did you mean 'pearl'?
    """
    known = list(known)
    sentences = [f"{problem}; known: {', '.join(known) or 'none'}"]
    nearest = nearest_name(name, known)
    if nearest is not None:
        sentences.append(f"Did you mean {nearest!r}?")
    if advice:
        sentences.append(advice)
    return UnknownName(_joined(sentences))


def nearest_name(name: object, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, whatever its case; None if none is like it."""
    from difflib import get_close_matches  # only a mistake needs it

    by_lower_case = {word.lower(): word for word in known}
    matches = get_close_matches(str(name).lower(), by_lower_case, n=1)
    return by_lower_case[matches[0]] if matches else None


def _joined(sentences: list[str]) -> str:
    """Sentences as one line, with a full stop between those that have no mark."""
    line = sentences[0]
    for sentence in sentences[1:]:
        ending = "" if line.endswith("?") else "."
        line = f"{line}{ending} {sentence}"
    return line
