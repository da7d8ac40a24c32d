"""Files that are written whole or not at all, whatever interrupts the writing."""

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

MODE = 0o644  # of a new file: all may read it


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write the whole file or nothing, whatever interrupts it.

    Raises SpeclibError, naming the file, if it cannot be written: on a full disk, for
    instance. The file is then as it was before.
    """
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_or_nothing(path) as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextlib.contextmanager
def whole_files(folder: Path) -> Iterator[Path]:
    """A temporary folder, whose files are moved to ``folder`` at the end.

    For libraries that write files themselves. Each is moved in one step; where anything
    is raised before, all in ``folder`` is as it was. Raises SpeclibError, naming the
    folder, where the system does not let it be written.
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
    """In here an error of the system's names ``path`` and says that it is as before."""
    try:
        yield
    except OSError as error:
        left = "is as it was" if os.path.exists(path) else "was not written"
        raise SpeclibError(
            f"cannot write {path}: {error.strerror or error}; {path.name} {left}. Free "
            "space, give permission or another path, then run again"
        ) from error


@contextlib.contextmanager
def whole_or_nothing(path: Path) -> Iterator[BinaryIO]:
    """A temporary file beside ``path``, which is renamed to it in one step at the end.

    Where anything is raised before, it is removed, and ``path`` is as it was. A link
    stays one: the file that it leads to is replaced. An earlier file's permissions
    stay, too.
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
    """The error where nothing can be written to ``path``, below ``paths.HOME``."""
    return SpeclibError(
        f"cannot write {path}: {error.strerror}. Set SPECLIB_HOME to a folder that you "
        "may write to: reports, caches and locks then go there"
    )
