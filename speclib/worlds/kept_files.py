"""What was measured on this machine, on disk: files that are whole, or count as none.

A file lies in a folder of ``paths.CACHE``. Its name is a hash of all that the measured
value depends on, so what has changed is not found.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from speclib import paths
from speclib.atomic_files import write_atomically
from speclib.errors import SpeclibError


def key_of(parts: tuple[object, ...]) -> str:
    """What a value is stored under that depends on ``parts``."""
    return _digest(repr(parts))


def load(folder: str, key: str) -> dict[str, Any] | None:
    """What was stored under ``key``; None if there is nothing that is whole."""
    try:
        stored = json.loads(_file_of(folder, key).read_text("utf-8"))
        check = stored.pop("check")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return stored if check == _check(key, stored) else None


def save(folder: str, key: str, value: dict[str, Any]) -> None:
    """Stores ``value`` instead of what was stored before.

    Where the disk does not take it, later runs measure again, and this one goes on.
    """
    text = json.dumps({**value, "check": _check(key, value)}) + "\n"
    with suppress(SpeclibError):
        write_atomically(_file_of(folder, key), text)


def _file_of(folder: str, key: str) -> Path:
    return paths.CACHE / folder / f"{key}.json"


def _check(key: str, value: dict[str, Any]) -> str:
    return _digest(f"{key} {json.dumps(value, sort_keys=True)}")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
