"""Reads and checks the audit's files under ``data/audit``.

``data/audit/README.md`` describes their format. The verdicts and the best answers are
our judgement; ``tests/audit`` computes the numbers.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from speclib.errors import BadValue
from speclib.paths import DATA

DIGEST_DIGITS = 12

Verdict = Literal[
    "the print contradicts itself",
    "the code differs from the text",
    "cannot be told from what is published",
]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceText(_Strict):
    """A text that the audit judges, in the version that we read."""

    title: str
    version: str
    link: Annotated[str, Field(pattern="^https://")]


class Repository(_Strict):
    """Published code at the commit that we read, and its branch if not the default."""

    repository: Annotated[str, Field(pattern=r"^github\.com/[\w.-]+/[\w.-]+$")]
    commit: Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
    branch: str = ""


class CodeReading(_Strict):
    """Lines of published code that we read. They are not part of this repository.

    code    the name in sources.toml of the repository and commit
    lines   the first and last line, such as "413-414", or a single line
    digest  the digest of these lines; see ``readings.digest_of``
    reads   what the lines do, in our words
    """

    code: str
    file: str
    lines: Annotated[str, Field(pattern=r"^[1-9]\d*(-[1-9]\d*)?$")]
    digest: Annotated[str, Field(pattern=f"^[0-9a-f]{{{DIGEST_DIGITS}}}$")]
    reads: str

    @property
    def first_and_last(self) -> tuple[int, int]:
        """The numbers of the first and last line, counted from 1."""
        first, _, last = self.lines.partition("-")
        return int(first), int(last or first)


class _Item(_Strict):
    """The fields of every item: a stable id, the texts it judges, the code it cites."""

    id: str
    documents: tuple[str, ...]
    answer: str = ""
    readings: tuple[CodeReading, ...] = ()


class Finding(_Item):
    """One of the twelve findings.

    paper    its heading on the page
    claimed  the claim with its qualifier; ``place``: where the claim is made
    changes  what the finding changes for a reader of the paper
    answer   the best answer that the authors could give
    """

    paper: str
    title: str
    verdict: Verdict
    claimed: str
    place: str
    found: str
    changes: str


class LosslessRow(_Item):
    """Whether a method keeps the target's distribution, in its paper and in its code.

    rule   whether the paper's rule keeps it, in our implementation
    code   whether the published code keeps it; ``notes``: where it does not
    off    the total variation between sampled texts and the target's, enumerated over
           every outcome; in brackets, the same with a draft close to its target
    """

    method: str
    rule: str = ""
    code: str
    off: str = ""
    notes: str = ""


class Slip(_Item):
    """A slip in a listing, a script or a page that does not affect any conclusion."""

    says: str


class Audit(_Strict):
    """The whole audit."""

    documents: dict[str, SourceText]
    code: dict[str, Repository]
    findings: tuple[Finding, ...] = ()
    lossless: tuple[LosslessRow, ...] = ()
    slips: tuple[Slip, ...] = ()

    @property
    def items(self) -> Iterator[Finding | LosslessRow | Slip]:
        """The findings, the rows of the table, and the slips."""
        yield from self.findings
        yield from self.lossless
        yield from self.slips

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        seen = set()
        for item in self.items:
            if item.id in seen:
                raise ValueError(f"two items are called {item.id!r}")
            seen.add(item.id)
            for name in item.documents:
                if name not in self.documents:
                    raise ValueError(f"{item.id}: sources.toml has no document {name}")
            for reading in item.readings:
                if reading.code not in self.code:
                    raise ValueError(
                        f"{item.id}: sources.toml has no code {reading.code}"
                    )
        return self


@cache
def load_audit(folder: Path | None = None) -> Audit:
    """The audit under ``data/audit``, or under another ``folder``.

    Raises SpeclibError, which names the mistake, if a file contains one.
    """
    folder = folder or DATA / "audit"
    if not folder.is_dir():
        raise BadValue(f"there is no audit under {folder}")
    try:
        parts: dict[str, Any] = {}
        for path in sorted(folder.glob("*.toml")):
            parts |= tomllib.loads(path.read_text("utf-8"))
        return Audit(**parts)
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise BadValue(f"{folder}: {error}") from error
