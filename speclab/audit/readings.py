"""Checks whether the lines of published code that we read are unchanged.

No published code is stored here. An item contains a digest of the lines that it cites,
which you can check against clones::

    python -m speclab audit --code FOLDER

``FOLDER`` contains the clones, each in a folder with its repository's name.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from speclib.errors import BadValue

from .items import DIGEST_DIGITS, Audit, CodeReading, Repository

AtCommit = Literal["as read", "not what was read", "no such commit", "no clone"]


@dataclass(frozen=True)
class CheckedReading:
    """Lines that an item cites, looked up in a clone.

    item       the item's id
    at_commit  whether the lines are as we read them at the commit that we read
    at_head    whether they have changed or moved at the clone's HEAD
    """

    item: str
    reading: CodeReading
    repository: Repository
    at_commit: AtCommit
    at_head: str = "not checked"

    def __str__(self) -> str:
        code = f"{self.repository.repository}@{self.repository.commit[:7]}"
        lines = f"{self.reading.file}:{self.reading.lines}"
        return f"{self.item}: {code} {lines}: {self.at_commit}, {self.at_head} at HEAD"


def digest_of(lines: Iterable[str]) -> str:
    """The digest of lines, without their trailing white space."""
    text = "\n".join(line.rstrip() for line in lines)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]


def check_readings(audit: Audit, folder: Path) -> list[CheckedReading]:
    """Looks up all code that the audit cites, in the clones under ``folder``.

    Raises BadValue if none of the repositories has a clone there.
    """
    checked = []
    for item in audit.items:
        for reading in item.readings:
            checked.append(_check(item.id, reading, audit.code[reading.code], folder))
    if all(one.at_commit == "no clone" for one in checked):
        wanted = sorted({one.repository.repository for one in checked})
        raise BadValue(
            f"{folder} has no clone of any code that the audit cites. Make one, for "
            f"example with `git clone https://{wanted[0]}`; the audit cites "
            f"{', '.join(wanted)}"
        )
    return checked


def _check(
    item: str, reading: CodeReading, repository: Repository, folder: Path
) -> CheckedReading:
    clone = folder / repository.repository.rpartition("/")[2]
    commit = repository.commit
    if not clone.is_dir():
        return CheckedReading(item, reading, repository, "no clone")
    if _git(clone, "cat-file", "-e", f"{commit}^{{commit}}") is None:
        return CheckedReading(item, reading, repository, "no such commit")

    first, _ = reading.first_and_last
    is_as_read = first in _first_lines(clone, commit, reading)
    at_commit: AtCommit = "as read" if is_as_read else "not what was read"
    today = _first_lines(clone, "HEAD", reading)
    if first in today:
        at_head = "the same"
    else:
        at_head = f"moved to line {today[0]}" if today else "changed"
    return CheckedReading(item, reading, repository, at_commit, at_head)


def _first_lines(clone: Path, commit: str, reading: CodeReading) -> list[int]:
    """The line numbers at which lines with the reading's digest begin in the file."""
    lines = (_git(clone, "show", f"{commit}:{reading.file}") or "").split("\n")
    first, last = reading.first_and_last
    count = last - first + 1
    begins_at = []
    for start in range(len(lines) - count + 1):
        if digest_of(lines[start : start + count]) == reading.digest:
            begins_at.append(start + 1)
    return begins_at


def _git(clone: Path, *command: str) -> str | None:
    """A git command's output; None if it fails."""
    done = subprocess.run(
        ["git", "-C", str(clone), *command],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    return done.stdout if done.returncode == 0 else None
