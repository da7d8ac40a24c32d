"""What a student has done so far: exercises, guesses, answers to quizzes.

It is stored in one file in the cache of this checkout, so that it outlives a kernel, or
in the file that the environment variable SPECLIB_RECORD names. It is no exam: a file
that is missing or damaged counts as nothing done.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

from speclib import paths
from speclib.atomic_files import write_atomically
from speclib.errors import SpeclibError


class Exercised(TypedDict):
    """How often an exercise was tried, and whether it is solved."""

    tries: int
    is_solved: bool


class Record(TypedDict):
    """All that is stored."""

    exercises: dict[str, Exercised]
    guesses: dict[str, float]
    quizzes: dict[str, bool]  # whether the first answer was right


def load() -> Record:
    """What is stored."""
    empty: Record = {"exercises": {}, "guesses": {}, "quizzes": {}}
    try:
        stored: Any = json.loads(_file().read_text("utf-8"))
        return {name: dict(stored[name]) for name in empty}  # type: ignore[return-value]
    except (OSError, ValueError, KeyError, TypeError):
        return empty


def keep_try(exercise: str, is_right: bool) -> None:
    """An exercise was tried; once solved it stays solved."""
    record = load()
    before = record["exercises"].get(exercise, {"tries": 0, "is_solved": False})
    record["exercises"][exercise] = {
        "tries": before["tries"] + 1,
        "is_solved": before["is_solved"] or is_right,
    }
    _save(record)


def keep_guess(name: str, value: float) -> None:
    """A guess before a picture was shown."""
    record = load()
    record["guesses"][name] = value
    _save(record)


def keep_answer(quiz: str, is_right: bool) -> None:
    """An answer to a quiz; the first one counts."""
    record = load()
    record["quizzes"].setdefault(quiz, is_right)
    _save(record)


def _save(record: Record) -> None:
    """Stores ``record``; where the disk does not take it, the lesson goes on."""
    with suppress(SpeclibError):
        write_atomically(_file(), json.dumps(record) + "\n")


def _file() -> Path:
    chosen = os.environ.get("SPECLIB_RECORD")
    return Path(chosen) if chosen else paths.CACHE / "lessons" / "record.json"
