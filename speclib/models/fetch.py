"""Downloads the embedded models from a release; a wheel does not contain them.

They are in one archive. The package's ``SHA256SUMS`` contains every file's checksum, so
the archive may come from any server. A file is checked before it gets its final name;
correct files are left alone.
"""

from __future__ import annotations

import hashlib
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterable
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO
from urllib.request import Request, urlopen

from speclib.atomic_files import cannot_write, whole_or_nothing
from speclib.errors import BadValue, SpeclibError
from speclib.paths import CITATION, stated_address
from speclib.version import VERSION

from . import zoo

ARCHIVE = f"speclib-models-{VERSION}.zip"
PATIENCE = 60.0  # seconds within which a server must respond
MB = 1e6  # bytes


def fetch(source: str | None = None, say: Callable[[str], object] = print) -> list[str]:
    """Downloads the files of the embedded models that are missing or damaged.

    source: the archive, as a path or an address; None: this release's archive.
    say: receives progress messages.

    Returns the names of the new files. Raises SpeclibError if there is no archive, if a
    file in it is missing or wrong, or if a file cannot be written; files written before
    the error stay.
    """
    wanted = _files_to_fetch()
    if not wanted:
        say(f"all embedded models are in {zoo.ZOO}")
        return []
    archive = source or _address_of_release()
    say(f"{len(wanted)} files are missing or damaged in {zoo.ZOO}; getting {archive}")
    try:
        zoo.ZOO.mkdir(parents=True, exist_ok=True)
        with TemporaryFile() as file:
            _download(archive, file)
            _unpack(file, archive, wanted)
    except OSError as error:
        raise cannot_write(zoo.ZOO, error) from error

    size = sum((zoo.ZOO / name).stat().st_size for name in wanted)
    say(f"wrote {len(wanted)} files, {size / MB:.1f} MB; all checksums match")
    return wanted


def _files_to_fetch() -> list[str]:
    """The missing or differing files.

    Weights come last, since a model counts as present once its weights exist.
    """
    wanted = []
    for name, checksum in zoo.checksums().items():
        path = zoo.ZOO / name
        if not path.is_file() or zoo.checksum_of(path) != checksum:
            wanted.append(name)
    return sorted(wanted, key=lambda name: name.endswith(zoo.WEIGHTS))


def _address_of_release() -> str:
    """The address of this version's archive.

    Raises BadValue if this version does not state its repository's address.
    """
    repository = ""
    if CITATION.is_file():
        repository = stated_address(CITATION.read_text("utf-8"))
    if not repository:
        raise BadValue(
            f"this version of speclib states no public address. Download {ARCHIVE} "
            "from where you got speclib, and give its path or address: "
            f"`python -m speclib fetch --from {ARCHIVE}`"
        )
    repository = repository.removesuffix("/").removesuffix(".git")
    return f"{repository}/releases/download/v{VERSION}/{ARCHIVE}"


def _download(source: str, file: BinaryIO) -> None:
    """Copies a path or an address into ``file``."""
    if Path(source).is_file():
        source = Path(source).absolute().as_uri()
    try:
        request = Request(source, headers={"User-Agent": f"speclib/{VERSION}"})
        with urlopen(request, timeout=PATIENCE) as answer:
            shutil.copyfileobj(answer, file)
    except (OSError, HTTPException, ValueError) as error:
        raise SpeclibError(
            f"cannot download {source} ({getattr(error, 'reason', error)}): try "
            f"again, or download {ARCHIVE} in another way and give its path with --from"
        ) from error


def _unpack(file: BinaryIO, source: str, wanted: Iterable[str]) -> None:
    """Writes each wanted file to its folder, if its checksum is right."""
    checksums = zoo.checksums()
    try:
        with zipfile.ZipFile(file) as archive:
            for name in wanted:
                content = archive.read(name)
                if hashlib.sha256(content).hexdigest() != checksums[name]:
                    raise BadValue(
                        f"{name} in {source} does not match SHA256SUMS of version "
                        f"{VERSION}: the archive is damaged, or from another version"
                    )
                path = zoo.ZOO / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with whole_or_nothing(path) as whole:
                    whole.write(content)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        raise BadValue(
            f"{source} cannot be unpacked ({error}): it is damaged, or is not "
            f"{ARCHIVE}. Download it again"
        ) from error
