"""Brings the embedded models, which a wheel does not have, from the files of a release.

All of them are one archive. ``SHA256SUMS``, which came with the package, says what each
file in it must be: so it does not matter who hands out the archive. A file is compared
with its checksum before it gets its name, and files that are there and right are left
alone.
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
PATIENCE = 60.0  # seconds in which a server must say something
MB = 1e6  # bytes


def fetch(source: str | None = None, say: Callable[[str], object] = print) -> list[str]:
    """Brings the files of the embedded models that are missing, or not as they must be.

    source: the archive, as a path or an address; None: the one of this release.
    say: is told what is done.

    Returns the names of the files that were brought. Raises SpeclibError where there is
    no archive, where it lacks a file or has another one, and where nothing can be
    written; what was brought until then stays.
    """
    wanted = _files_to_bring()
    if not wanted:
        say(f"all embedded models are in {zoo.ZOO}")
        return []
    archive = source or _address_of_release()
    say(f"{len(wanted)} files are missing in {zoo.ZOO}; they come from {archive}")
    try:
        zoo.ZOO.mkdir(parents=True, exist_ok=True)
        with TemporaryFile() as file:
            _download(archive, file)
            _unpack(file, archive, wanted)
    except OSError as error:
        raise cannot_write(zoo.ZOO, error) from error

    size = sum((zoo.ZOO / name).stat().st_size for name in wanted)
    say(f"brought {len(wanted)} files, {size / MB:.1f} MB, all as their checksums say")
    return wanted


def _files_to_bring() -> list[str]:
    """The files that are missing or differ; weights last, as a model counts by them."""
    wanted = []
    for name, checksum in zoo.checksums().items():
        path = zoo.ZOO / name
        if not path.is_file() or zoo.checksum_of(path) != checksum:
            wanted.append(name)
    return sorted(wanted, key=lambda name: name.endswith(zoo.WEIGHTS))


def _address_of_release() -> str:
    """Where the archive of this version is published.

    Raises BadValue where this version does not say at which address its repository is.
    """
    repository = ""
    if CITATION.is_file():
        repository = stated_address(CITATION.read_text("utf-8"))
    if not repository:
        raise BadValue(
            f"this version of speclib states no public address. Download {ARCHIVE} "
            "from where you have speclib from, and give its path or its address: "
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
            f"{source} does not come ({getattr(error, 'reason', error)}): run the same "
            f"again, or download {ARCHIVE} in another way and give its path by --from"
        ) from error


def _unpack(file: BinaryIO, source: str, wanted: Iterable[str]) -> None:
    """Puts each wanted file where it belongs, once it is what its checksum says."""
    checksums = zoo.checksums()
    try:
        with zipfile.ZipFile(file) as archive:
            for name in wanted:
                content = archive.read(name)
                if hashlib.sha256(content).hexdigest() != checksums[name]:
                    raise BadValue(
                        f"{name} in {source} does not match SHA256SUMS of version "
                        f"{VERSION}: the archive is damaged, or of another version"
                    )
                path = zoo.ZOO / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with whole_or_nothing(path) as whole:
                    whole.write(content)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        raise BadValue(
            f"{source} cannot be unpacked ({error}): it is damaged, or no {ARCHIVE}. "
            "Fetch it again"
        ) from error
