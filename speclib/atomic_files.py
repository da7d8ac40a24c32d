"""Files that are written whole or not at all, whatever interrupts the writing."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from speclib.errors import SpeclibError


def write_atomically(path: Path, text: str) -> None:
    """Write the whole file or nothing, whatever interrupts it.

    Raises SpeclibError, naming the file, if it cannot be written: on a full disk, for
    instance. The file is then as it was before.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_and_replace(path, text)
    except OSError as error:
        raise SpeclibError(
            f"cannot write {path}: {error.strerror}; the file is as it was. Free "
            "space or give permission, then run again: what is finished is kept"
        ) from error


def _write_and_replace(path: Path, text: str) -> None:
    with whole_or_nothing(path) as file:
        file.write(text.encode("utf-8"))


@contextlib.contextmanager
def whole_or_nothing(path: Path) -> Iterator[BinaryIO]:
    """A temporary file beside ``path``, which is renamed to it in one step at the end.

    Where anything is raised before, it is removed, and ``path`` is as it was. It is
    named .<name>.<process id>.<random>, as remove_leftovers expects it.
    """
    handle, temporary = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name}.{os.getpid()}."
    )
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def remove_leftovers(*folders: Path) -> None:
    """Remove temporary files of processes that were killed while they wrote."""
    for folder in folders:
        for path in folder.glob(".*.*.*"):
            if _writer_is_gone(path):
                path.unlink(missing_ok=True)


def _writer_is_gone(temporary: Path) -> bool:
    """Whether a file is a temporary one of ours and its process has ended."""
    process_id = temporary.name.split(".")[-2]
    # A ValueError means that the file is not ours, a PermissionError that its process
    # still runs for another user.
    with contextlib.suppress(ValueError, PermissionError):
        try:
            os.kill(int(process_id), 0)
        except ProcessLookupError:
            return True
    return False
