"""What tells a model from the one that had its name before: a hash of its files.

Embedded checkpoints have their checksums. Other files may be of many gigabytes, so that
their names, sizes and times of change stand for what is in them. Importing this module
imports neither torch nor transformers.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from speclib.data.pairs import ModelSpec
from speclib.installed import PACKAGE

from .checkpoint import folder_here
from .zoo import CHECKSUMS

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


def of_weights(spec: ModelSpec) -> str | None:
    """What changes when the weights of ``spec`` do; None where nobody can tell.

    A toy has no weights: its description is all of it.
    """
    if spec.is_toy:
        return "toy"
    if spec.model.startswith("zoo/"):
        checksums = CHECKSUMS.read_bytes()
        return hashlib.blake2b(checksums, digest_size=16).hexdigest()
    is_file = Path(spec.model).is_file()
    path = Path(spec.model) if is_file else folder_here(spec.model)
    return None if path is None else _of_files(path)


def _of_files(path: Path) -> str:
    """Name, size and time of change of a file, or of each file of a folder."""
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    lines = [str(path.resolve())]
    for file in files:
        if file.is_file():
            facts = file.stat()
            lines.append(f"{file.name} {facts.st_size} {facts.st_mtime_ns}")
    return "\n".join(lines)
