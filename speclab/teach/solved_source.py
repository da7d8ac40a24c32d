"""The package's own code of an exercise, for whoever has solved it."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getsource, getsourcefile, unwrap
from pathlib import Path
from typing import Any

from speclib.arguments import checked
from speclib.paths import ROOT

from . import record
from .card import Card, not_begun


class Source:
    """Code that a notebook shows as text."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


@checked
def source_once_solved(
    exercise: str, function: Callable[..., Any], *others: Callable[..., Any]
) -> Source | Card:
    """The code of some functions, once ``exercise`` is solved in this checkout.

    Before that a card names the file in which the first of them stands.
    """
    done = record.load()["exercises"].get(exercise)
    if done is None or not done["is_solved"]:
        return not_begun(
            "The package's own code is shown here once the exercise above is solved. "
            f"It stands in {_file_of(function)}."
        )
    return Source("\n".join(getsource(each) for each in (function, *others)))


def _file_of(function: Callable[..., Any]) -> str:
    """Where a function stands, as seen from this checkout."""
    file = Path(getsourcefile(unwrap(function)) or "")
    return file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else file.name
