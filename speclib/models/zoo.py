"""The embedded checkpoints: where they are, and whether they are whole.

Their files are compared with their checksums before anything of them is loaded. A wheel
has the checksums, and not the checkpoints, which ``fetch`` brings.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from speclib.errors import BadValue, unknown_name
from speclib.paths import DATA, IS_CHECKOUT, MODELS

ZOO = MODELS  # where the embedded checkpoints are
CHECKSUMS = DATA / "models" / "SHA256SUMS"  # what each of their files must be
WEIGHTS = "model.safetensors"


def locate(model: str) -> Path:
    """The folder of the embedded model ``zoo/<name>``.

    Raises BadValue for one that is missing, or whose files do not match SHA256SUMS.
    """
    folder = ZOO / model.removeprefix("zoo/")
    if not (folder / WEIGHTS).exists():
        _check_name(model)
        raise BadValue(
            f"embedded model {model!r} is missing in {folder}: {how_to_get()}"
        )
    _check_files(folder)
    return folder


def _check_name(model: str) -> None:
    """Raises UnknownName for a name that no embedded model has."""
    names = {f"zoo/{file.split('/')[0]}" for file in checksums()}
    if model not in names:
        raise unknown_name(f"unknown embedded model {model!r}", model, sorted(names))


def how_to_get() -> str:
    """What to do about an embedded model, or a file of one, that is not there."""
    fetch = "`python -m speclib fetch`"
    if not IS_CHECKOUT:
        return f"bring it by {fetch}, or let SPECLIB_HOME name a checkout, which has it"
    return (
        "restore it from the repository, train it with `make models`, which rewrites "
        f"the checksums, or bring it by {fetch}"
    )


def _check_files(folder: Path) -> None:
    """Compares a folder's files with their committed checksums."""
    all_checksums = checksums()
    for path in sorted(folder.iterdir()):
        expected = all_checksums.get(path.relative_to(ZOO).as_posix())
        if expected is None and path.name != WEIGHTS:
            continue  # a file of the system's, or the user's
        if checksum_of(path) != expected:
            raise BadValue(
                f"embedded model file {path} does not match data/models/SHA256SUMS: "
                f"it is corrupt or changed; {how_to_get()}"
            )


def checksum_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksums() -> dict[str, str]:
    """Each file's path within the zoo -> its SHA-256, as SHA256SUMS states them."""
    checksum_of_file = {}
    try:
        for line in CHECKSUMS.read_text("utf-8").splitlines():
            checksum, name = line.split(maxsplit=1)
            checksum_of_file[name] = checksum
    except (OSError, ValueError) as error:  # UnicodeDecodeError is one
        raise BadValue(
            f"the checksums of the embedded models, {CHECKSUMS}, cannot be read: "
            f"{error}. Restore the file from the repository"
        ) from error
    return checksum_of_file
