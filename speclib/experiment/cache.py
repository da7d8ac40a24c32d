"""Finished cells on disk, one JSONL file per cell, whole or not there.

A file lies in ``paths.CACHE/rows`` and is named by the cell's key (see ``cache_keys``).
Its first line is a header, and each line after it is one request:

    {"key": ..., "check": ..., "spec": ..., "created": ..., ...}
    {...}      request 0
    {...}      request 1

A file that fails its checksum counts as missing, and the cell is computed again.

Knows no method and no statistic.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from speclib import paths

from .atomic_files import write_atomically
from .cache_keys import digest


def rows_folder() -> Path:
    """Where the files of the cells lie."""
    return paths.CACHE / "rows"


def exists(key: str) -> bool:
    """Whether a file is there; whether it is whole, ``load`` says."""
    return _file_of(key).exists()


def save(key: str, header: dict, rows: list[dict]) -> None:
    """Store a cell, whole or in part: ``rows`` are those of the requests done so far."""
    body = [json.dumps(row) for row in rows]
    head = json.dumps({"key": key, "check": _checksum(header, body), **header})
    write_atomically(_file_of(key), "\n".join([head, *body]) + "\n")


def load(key: str) -> tuple[dict, list[dict]] | None:
    """Read a cell's header and rows.

    Returns None if the cell is missing or its file is not what was written.
    """
    try:
        head, *body = _file_of(key).read_text("utf-8").splitlines()
        header = json.loads(head)
        check = header.pop("check")
        if header.pop("key") != key or check != _checksum(header, body):
            return None
        return header, [json.loads(line) for line in body]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def load_or_compute(key: str, compute: Callable[[], list]) -> list:
    """What ``compute`` returns (lists of numbers, dicts of them), computed once per key."""
    cell = load(key)
    if cell is None:
        save(key, {}, [{"values": compute()}])
        cell = load(key)
    _, rows = cell
    return rows[0]["values"]


def _file_of(key: str) -> Path:
    return rows_folder() / f"{key}.jsonl"


def _checksum(header: dict, body: list[str]) -> str:
    return digest(json.dumps(header, sort_keys=True), *body)
