"""Writes files whole or not at all, even if the program is interrupted."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from speclib.errors import SpeclibError

MODE = 0o644  # the permissions of a new file: everyone may read it


def write_atomically(path: Path, content: str | bytes) -> None:
    """Writes the whole file or, if interrupted, nothing.

    Raises SpeclibError, naming the file, if it cannot be written, for example on a full
    disk. An existing file is then unchanged.
    """
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_or_nothing(path) as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextlib.contextmanager
def whole_files(folder: Path) -> Iterator[Path]:
    """Provides a temporary folder, and moves its files to ``folder`` at the end.

    It is for libraries that write files themselves. Each file is moved in one step. If
    an exception is raised before that, ``folder`` does not change. Raises SpeclibError,
    naming the folder, if the system does not allow writing there.
    """
    with naming(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as temporary:
            yield Path(temporary)
            for file in sorted(Path(temporary).iterdir()):
                file.chmod(MODE)
                file.replace(folder / file.name)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turns a system error into a SpeclibError that names ``path``."""
    try:
        yield
    except OSError as error:
        left = "is unchanged" if os.path.exists(path) else "was not written"
        raise SpeclibError(
            f"cannot write {path}: {error.strerror or error}; {path.name} {left}. Free "
            "space, give permission or another path, then run again"
        ) from error


@contextlib.contextmanager
def whole_or_nothing(path: Path) -> Iterator[BinaryIO]:
    """Opens a temporary file next to ``path``, and renames it to ``path`` at the end.

    If an exception is raised before that, the temporary file is removed, and ``path``
    does not change. A link stays a link: the file it points to is replaced. An existing
    file's permissions are kept.
    """
    path = Path(os.path.realpath(path))
    is_special = path.exists() and not (path.is_file() or path.is_dir())
    if is_special:  # a device such as /dev/null would be replaced by a file
        raise OSError(errno.EINVAL, f"{path} is not a regular file")
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else MODE
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def cannot_write(path: Path, error: OSError) -> SpeclibError:
    """The error for a ``path`` under ``paths.HOME`` that cannot be written."""
    return SpeclibError(
        f"cannot write {path}: {error.strerror}. Set SPECLIB_HOME to a folder that you "
        "may write to: reports, caches and locks then go there"
    )
