"""Errors in a cell's settings, as one line that names the file and the cell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from speclib.errors import BadValue, SpeclibError

from .paper_schema import Table


@contextmanager
def naming_cell(table: Table, row: str, column: str) -> Iterator[None]:
    """Wraps code that reads a cell's settings, so that errors name file and cell."""
    try:
        yield
    except (SpeclibError, ValueError, TypeError, KeyError, ArithmeticError) as error:
        where = f"{table.file}, cell [{row!r}, {column!r}]"
        raise BadValue(f"{where}: {_explain(error)}") from error


def _explain(error: Exception) -> str:
    if isinstance(error, ValidationError):
        problems = []
        for problem in error.errors():
            name = ".".join(str(part) for part in problem["loc"])
            problems.append(f"{name}: {problem['msg']}" if name else problem["msg"])
        return "; ".join(problems)
    if isinstance(error, KeyError) and not isinstance(error, SpeclibError):
        return f"it lacks the setting {error}: add it"
    return str(error)
