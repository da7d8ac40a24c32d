"""Locates the embedded checkpoints, and checks that they are intact.

Their files are compared with checksums before anything is loaded. A wheel contains the
checksums but not the checkpoints, which ``fetch`` downloads.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from speclib.errors import BadValue, unknown_name
from speclib.paths import DATA, MODELS

ZOO = MODELS  # where the embedded checkpoints are
CHECKSUMS = DATA / "models" / "SHA256SUMS"
WEIGHTS = "model.safetensors"
HOW_TO_GET = (
    "run `python -m speclib fetch`, or set SPECLIB_HOME to a checkout; in a checkout, "
    "restore it, or train it with `make models`, which rewrites the checksums"
)


def locate(model: str) -> Path:
    """Finds and checks the folder of the embedded model ``zoo/<name>``.

    Raises BadValue if it is missing, or its files do not match SHA256SUMS.
    """
    folder = ZOO / model.removeprefix("zoo/")
    if not (folder / WEIGHTS).exists():
        names = sorted({f"zoo/{file.split('/')[0]}" for file in checksums()})
        if model not in names:
            raise unknown_name(f"unknown embedded model {model!r}", model, names)
        raise BadValue(f"embedded model {model!r} is missing in {folder}: {HOW_TO_GET}")
    _check_files(folder)
    return folder


def _check_files(folder: Path) -> None:
    """Compares a folder's files with their committed checksums."""
    all_checksums = checksums()
    for path in sorted(folder.iterdir()):
        expected = all_checksums.get(path.relative_to(ZOO).as_posix())
        if expected is None and path.name != WEIGHTS:
            continue  # from the operating system or the user
        if checksum_of(path) != expected:
            raise BadValue(
                f"embedded model file {path} does not match data/models/SHA256SUMS: "
                f"it is corrupt or changed; {HOW_TO_GET}"
            )


def checksum_of(path: Path) -> str:
    """Computes the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksums() -> dict[str, str]:
    """Maps each file's path within the zoo to its SHA-256, from SHA256SUMS."""
    checksum_of_file = {}
    try:
        for line in CHECKSUMS.read_text("utf-8").splitlines():
            checksum, name = line.split(maxsplit=1)
            checksum_of_file[name] = checksum
    except (OSError, ValueError) as error:  # UnicodeDecodeError is a ValueError
        raise BadValue(
            f"the checksums of the embedded models, {CHECKSUMS}, cannot be read: "
            f"{error}. Restore the file from the repository"
        ) from error
    return checksum_of_file
