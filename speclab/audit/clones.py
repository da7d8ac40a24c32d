"""Clones of published code: whether the lines that were read are still what was read.

A line of published code is never stored here. An item keeps a digest of the lines that
decide it, and who has a clone can check them::

    python -m speclab audit --code FOLDER

``FOLDER`` is a clone, or holds clones side by side.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from speclib.errors import BadValue

from .item_schema import DIGEST_DIGITS, CodeRead, Publication, Repository

AtCommit = Literal["as read", "not what was read", "no such commit", "no clone"]
Today = Literal["the same", "moved", "changed", "not checked"]


@dataclass(frozen=True)
class CheckedReading:
    """Lines that an item rests on, looked up in a clone.

    item         the item's id
    repository   where they were read
    piece        the file, the lines and their digest
    at_commit    whether the commit that was read has these lines there
    today        what has become of them at the clone's own HEAD
    lines_today  where they stand at HEAD, if they do
    """

    item: str
    repository: Repository
    piece: CodeRead
    at_commit: AtCommit
    today: Today = "not checked"
    lines_today: str = ""


def digest_of(lines: Iterable[str]) -> str:
    """The digest of some lines; white space at their ends does not count."""
    text = "\n".join(line.rstrip() for line in lines)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]


def check_readings(
    publications: Mapping[str, Publication], folder: Path
) -> list[CheckedReading]:
    """Looks up all code that items rest on, in the clones under ``folder``.

    Raises BadValue if the folder does not exist, or holds no clone of a repository that
    some item names.
    """
    clones = find_clones(folder)
    checked = []
    for publication in publications.values():
        for item in publication.items:
            for piece in item.code_read:
                repository = publication.code[piece.code]
                clone = _clone_of(repository, clones)
                checked.append(_check(item.id, repository, piece, clone))

    if all(reading.at_commit == "no clone" for reading in checked):
        wanted = sorted({reading.repository.repository for reading in checked})
        raise BadValue(
            f"{folder} holds no clone of what the audit read. Make one, as in "
            f"`git clone https://{wanted[0]}`; read were: {', '.join(wanted)}"
        )
    return checked


# -- clones ----------------------------------------------------------------------------
def find_clones(folder: Path) -> dict[str, Path]:
    """The clones in a folder, or the folder itself, by the address of their origin.

    An address is "github.com/owner/name", in small letters. A clone without an origin
    there is known by the name of its folder. Raises BadValue where there is no such
    folder.
    """
    if not folder.is_dir():
        raise BadValue(f"{folder} is no folder: give one that holds clones")
    clones = {}
    for candidate in (folder, *sorted(folder.iterdir())):
        if candidate.is_dir() and _is_clone(candidate):
            clones[_address_of(candidate)] = candidate
    return clones


def _is_clone(folder: Path) -> bool:
    """Whether a folder is itself a repository, with a work tree or without one."""
    return (folder / ".git").exists() or (folder / "HEAD").is_file()


def _address_of(clone: Path) -> str:
    """The address of a clone's origin, without the way in which it is reached."""
    origin = _git(clone, "config", "--get", "remote.origin.url") or ""
    address = origin.strip().removesuffix("/").removesuffix(".git").casefold()
    address = address.removeprefix("git@").replace("github.com:", "github.com/")
    _, host, path = address.partition("github.com/")
    if host:
        return f"{host}{path}"
    return (clone.name or clone.resolve().name).casefold()


def _clone_of(repository: Repository, clones: Mapping[str, Path]) -> Path | None:
    """The clone of a repository, by its address or by its name."""
    address = repository.repository.casefold()
    name = address.rpartition("/")[2]
    return clones.get(address) or clones.get(name)


def _git(clone: Path, *command: str) -> str | None:
    """What a command of git prints; None where it fails.

    Raises BadValue where git is not installed.
    """
    try:
        done = subprocess.run(
            ["git", "-C", str(clone), *command],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
        )
    except FileNotFoundError as error:
        raise BadValue("git is not installed; it is needed to read clones") from error
    return done.stdout if done.returncode == 0 else None


# -- lines -----------------------------------------------------------------------------
def _check(
    item: str, repository: Repository, piece: CodeRead, clone: Path | None
) -> CheckedReading:
    if clone is None:
        return CheckedReading(item, repository, piece, "no clone")
    if _git(clone, "cat-file", "-e", f"{repository.commit}^{{commit}}") is None:
        return CheckedReading(item, repository, piece, "no such commit")

    lines = _lines_of(clone, repository.commit, piece.file)
    first, last = piece.first_and_last
    is_as_read = (
        last <= len(lines) and digest_of(lines[first - 1 : last]) == piece.digest
    )
    at_commit: AtCommit = "as read" if is_as_read else "not what was read"

    lines_today = ""
    today: Today = "changed"
    for start in _first_lines_of(piece, _lines_of(clone, "HEAD", piece.file)):
        today = "the same" if start == first else "moved"
        lines_today = f"{start}-{start + last - first}" if last > first else f"{start}"
        if today == "the same":
            break
    return CheckedReading(item, repository, piece, at_commit, today, lines_today)


def _lines_of(clone: Path, commit: str, file: str) -> list[str]:
    """The lines of a file at a commit; none where it is not there."""
    text = _git(clone, "show", f"{commit}:{file}")
    return [] if text is None else text.split("\n")


def _first_lines_of(piece: CodeRead, lines: Sequence[str]) -> Iterator[int]:
    """The numbers of the lines at which text of the same digest begins."""
    first, last = piece.first_and_last
    count = last - first + 1
    for start in range(len(lines) - count + 1):
        if digest_of(lines[start : start + count]) == piece.digest:
            yield start + 1
