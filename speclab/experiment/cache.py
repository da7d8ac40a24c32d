"""Finished cells on disk, one JSONL file per cell, whole or not there.

A file lies in ``paths.CACHE/rows`` and is named by the cell's key (see ``cache_keys``).
Its first line is a header, and each line after it is one request:

    {"key": ..., "check": ..., "spec": ..., "created": ..., ...}
    {...}      request 0
    {...}      request 1

A file that fails its checksum, or has another form than is expected, counts as missing,
and the cell is computed again.

Knows no method and no statistic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from speclib import paths
from speclib.atomic_files import write_atomically

from .cache_keys import digest

Header = TypeVar("Header")
Line = TypeVar("Line")


@dataclass(frozen=True)
class StoredCell(Generic[Header, Line]):
    """What the cache holds of a cell: its header, and a line per finished request."""

    header: Header
    lines: list[Line]


def cells_folder() -> Path:
    """Where the files of the cells lie."""
    return paths.CACHE / "rows"


def exists(key: str) -> bool:
    """Whether a file is there; whether it is whole, ``load`` says."""
    return _file_of(key).exists()


# -- dataclasses ---------------------------------------------------------------------
def save(key: str, header: Any, lines: Sequence[Any]) -> None:
    """Store a cell, whole or in part.

    ``header`` and each of ``lines``, one per request done so far, are dataclasses.
    """
    write(key, asdict(header), [asdict(line) for line in lines])


def load(
    key: str, header_type: type[Header], line_type: type[Line]
) -> StoredCell[Header, Line] | None:
    """Read a cell whose header and lines are dataclasses of the given types.

    Returns None if the cell is missing, its file is not what was written, or it was
    written by code that stored something else.
    """
    cell = read(key)
    if cell is None:
        return None
    try:
        header = _reader(header_type).validate_python(cell.header)
        line_reader = _reader(line_type)
        lines = [line_reader.validate_python(line) for line in cell.lines]
    except ValueError:
        return None
    return StoredCell(header, lines)


# What turns JSON's dicts and lists into a dataclass; building one takes long.
_reader: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


# -- plain JSON ----------------------------------------------------------------------
class NotStored(Exception):
    """The cache lacks something where nothing may be computed."""


@contextmanager
def only_what_is_stored() -> Iterator[None]:
    """In this block ``load_or_compute`` raises NotStored where it would compute."""
    token = _may_compute.set(False)
    try:
        yield
    finally:
        _may_compute.reset(token)


def require_computing() -> None:
    """Raises NotStored where nothing may be computed."""
    if not _may_compute.get():
        raise NotStored


_may_compute: ContextVar[bool] = ContextVar("may_compute", default=True)


def load_or_compute(key: str, compute: Callable[[], list[Any]]) -> list[Any]:
    """What ``compute`` returns, lists or dicts of numbers, computed once per key."""
    cell = read(key)
    if cell is None:
        require_computing()
        write(key, {}, [{"values": compute()}])
        cell = read(key)
        assert cell is not None  # it was written just now
    values: list[Any] = cell.lines[0]["values"]
    return values


def write(key: str, header: dict[str, Any], lines: list[dict[str, Any]]) -> None:
    """Store a header and lines that are JSON already."""
    body = [json.dumps(line) for line in lines]
    head = json.dumps({"key": key, "check": _checksum(header, body), **header})
    write_atomically(_file_of(key), "\n".join([head, *body]) + "\n")


def read(key: str) -> StoredCell[dict[str, Any], dict[str, Any]] | None:
    """Read a header and lines as JSON has them.

    Returns None if the cell is missing or its file is not what was written.
    """
    try:
        head, *body = _file_of(key).read_text("utf-8").splitlines()
        header = json.loads(head)
        check = header.pop("check")
        if header.pop("key") != key or check != _checksum(header, body):
            return None
        return StoredCell(header, [json.loads(line) for line in body])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


# -- files that come from elsewhere ----------------------------------------------------
def text_of(key: str) -> str:
    """A cell's file as it is; empty where there is none."""
    try:
        return _file_of(key).read_text("utf-8")
    except OSError:
        return ""


def take_in(key: str, text: str, at_least_as_many: bool = False) -> None:
    """Stores a cell's file that another machine wrote.

    What is here already stays if it has as many requests; ``at_least_as_many``: only if
    it has more.
    """
    here = read(key)
    if here is not None:
        coming = len(text.splitlines()) - 1
        is_better = coming > len(here.lines)
        if not is_better and not (at_least_as_many and coming == len(here.lines)):
            return
    write_atomically(_file_of(key), text)


def _file_of(key: str) -> Path:
    return cells_folder() / f"{key}.jsonl"


def _checksum(header: dict[str, Any], body: list[str]) -> str:
    return digest(json.dumps(header), *body)
