"""Brings the embedded models, which a wheel does not have, from the files of a release.

    archive  ->  .speclib-models-<version>.zip.part  ->  each file, in one step

All of them are one archive. ``SHA256SUMS``, which came with the package, says what each
file in it must be: so it does not matter who hands out the archive. A file is compared
with its checksum before it gets its name, and files that are there and right are left
alone. A download that broke off goes on where it was, if the server can do that.

Two that fetch into one folder at once may spoil each other's download. That is found by
the checksums, too. Knows no model and no library.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen
from urllib.response import addinfourl

from speclib.atomic_files import cannot_write, remove_leftovers, whole_or_nothing
from speclib.errors import BadValue, SpeclibError
from speclib.paths import CITATION, stated_address
from speclib.version import VERSION

from . import zoo

ARCHIVE = f"speclib-models-{VERSION}.zip"
SCHEMES = ("https", "http", "file")
PATIENCE = 60.0  # seconds in which a server must say something
CHUNK = 1 << 20  # bytes
MB = 1e6  # bytes
GOES_ON = 206  # a server's answer where it sends the rest of a file only
NOTHING_LEFT = 416  # its answer where there is no rest


def fetch(source: str | None = None, say: Callable[[str], object] = print) -> list[str]:
    """Brings the files of the embedded models that are missing, or not as they must be.

    source: the archive, as a path or an address; None: the one of this release.
    say: is told what is done.

    Returns the names of the files that were brought. Raises SpeclibError where there is
    no archive, where it lacks a file or has another one, and where nothing can be
    written; what was brought until then stays.
    """
    wanted = files_to_bring()
    if not wanted:
        say(f"all embedded models are in {zoo.ZOO}")
        return []

    archive = source or address_of_release()
    say(f"{len(wanted)} files are missing in {zoo.ZOO}; they come from {archive}")
    try:
        zoo.ZOO.mkdir(parents=True, exist_ok=True)
        if Path(archive).is_file():
            _unpack(Path(archive), wanted)
        else:
            _download_and_unpack(archive, wanted)
    except OSError as error:
        raise cannot_write(zoo.ZOO, error) from error

    size = sum((zoo.ZOO / name).stat().st_size for name in wanted)
    say(f"brought {len(wanted)} files, {size / MB:.1f} MB, all as their checksums say")
    return list(wanted)


def files_to_bring() -> dict[str, str]:
    """The checksum of each file that is missing or differs; a model's weights last.

    A model counts as there when its weights are.
    """
    wanted = {}
    for name, checksum in zoo.checksums().items():
        path = zoo.ZOO / name
        if not path.is_file() or _checksum_of(path) != checksum:
            wanted[name] = checksum
    weights_last = sorted(wanted, key=lambda name: name.endswith(zoo.WEIGHTS))
    return {name: wanted[name] for name in weights_last}


def _checksum_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def address_of_release() -> str:
    """Where the archive of this version is published.

    Raises BadValue where this version does not say at which address its repository is.
    """
    try:
        repository = stated_address(CITATION.read_text("utf-8"))
    except OSError:
        repository = ""
    if not repository:
        raise BadValue(
            f"this version of speclib states no public address. Download {ARCHIVE} "
            "from where you have speclib from, and give its path or its address: "
            f"`python -m speclib fetch --from {ARCHIVE}`"
        )
    repository = repository.removesuffix("/").removesuffix(".git")
    return f"{repository}/releases/download/v{VERSION}/{ARCHIVE}"


# -- the download ----------------------------------------------------------------------
def _download_and_unpack(address: str, wanted: Mapping[str, str]) -> None:
    """Downloads the archive, and removes it when it is unpacked or turns out wrong."""
    if urlsplit(address).scheme not in SCHEMES:
        raise BadValue(
            f"{address!r} is no file here, and no address: give the path of {ARCHIVE}, "
            "or an address that begins with https:// or file://"
        )
    part = zoo.ZOO / f".{ARCHIVE}.part"
    _download(address, part)
    try:
        _unpack(part, wanted)
    finally:
        part.unlink(missing_ok=True)


def _download(address: str, part: Path) -> None:
    """Puts what is at ``address`` into ``part``, or what ``part`` lacks of it.

    Raises SpeclibError where it does not come, or not all of it; ``part`` then stays.
    """
    there = part.stat().st_size if part.is_file() else 0
    answer = _ask(address, there)
    if answer is None:
        return  # it had come as a whole

    came = 0
    goes_on = answer.status == GOES_ON
    with answer, part.open("ab" if goes_on else "wb") as file:
        while chunk := _read(answer, address):
            came += file.write(chunk)

    expected = answer.headers["Content-Length"]
    if expected is not None and came != int(expected):
        raise SpeclibError(
            f"{address} broke off after {came} of {expected} bytes: run the same "
            "again, and it goes on from there"
        )


def _ask(address: str, there: int) -> addinfourl | None:
    """The answer to a request for all but the first bytes; None where none are left."""
    request = Request(address, headers={"User-Agent": f"speclib/{VERSION}"})
    if there:
        request.add_header("Range", f"bytes={there}-")
    try:
        answer: addinfourl = urlopen(request, timeout=PATIENCE)
    except (OSError, HTTPException) as error:
        is_all_there = isinstance(error, HTTPError) and error.code == NOTHING_LEFT
        if there and is_all_there:
            return None
        raise _does_not_come(address, error) from error
    return answer


def _read(answer: addinfourl, address: str) -> bytes:
    try:
        return answer.read(CHUNK)
    except (OSError, HTTPException) as error:
        raise _does_not_come(address, error) from error


def _does_not_come(address: str, error: Exception) -> SpeclibError:
    reason = getattr(error, "reason", error)
    return SpeclibError(
        f"{address} does not come ({reason}): run the same again, or download "
        f"{ARCHIVE} in another way and give its path by --from"
    )


# -- the archive -----------------------------------------------------------------------
def _unpack(archive: Path, wanted: Mapping[str, str]) -> None:
    """Puts each wanted file where it belongs, once it is what its checksum says."""
    for folder in zoo.ZOO.iterdir():
        remove_leftovers(folder)
    try:
        with zipfile.ZipFile(archive) as files:
            for name, checksum in wanted.items():
                _bring(files, name, checksum)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise BadValue(
            f"{archive} cannot be unpacked ({error}): it is damaged, or no {ARCHIVE}. "
            "Fetch it again"
        ) from error


def _bring(files: zipfile.ZipFile, name: str, checksum: str) -> None:
    """Unpacks one file. Raises BadValue where the archive lacks it or has another."""
    try:
        stored = files.open(name)
    except KeyError as error:
        raise BadValue(
            f"{files.filename} has no {name}: it is no {ARCHIVE}, give that one"
        ) from error

    path = zoo.ZOO / name
    path.parent.mkdir(parents=True, exist_ok=True)
    hasher = hashlib.sha256()
    with stored, whole_or_nothing(path) as file:
        while chunk := stored.read(CHUNK):
            hasher.update(chunk)
            file.write(chunk)
        if hasher.hexdigest() != checksum:
            raise BadValue(
                f"{name} in {files.filename} does not match SHA256SUMS of version "
                f"{VERSION}: the archive is damaged, or of another version"
            )
