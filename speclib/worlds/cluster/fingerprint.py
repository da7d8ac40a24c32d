"""Whether two machines run the same code: a hash of what takes part in a pass."""

from __future__ import annotations

import hashlib
from functools import cache

from speclib.paths import PACKAGE

# The packages whose code decides how long a pass takes.
COMPUTING = ("core", "data", "models", "operations", "worlds")


@cache
def of_code() -> str:
    """A hash of the source of everything that takes part in a pass."""
    hasher = hashlib.blake2b(digest_size=16)
    for package in COMPUTING:
        for path in sorted((PACKAGE / package).rglob("*.py")):
            source = path.read_bytes()
            name = path.relative_to(PACKAGE).as_posix()
            hasher.update(f"{name} {len(source)} ".encode() + source)
    return hasher.hexdigest()
