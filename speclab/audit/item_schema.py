"""What an item of the audit is: something claimed or printed, and evidence on it.

The files under ``data/audit`` hold the items, one file per publication. How they are
written is described at the top of ``data/audit/pearl.toml``. Knows no verdict: that is
for the evidence to give.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from .quantity import Relation

CellName = tuple[str, str, str]  # item, row and column
Operand = str | FiniteFloat  # a quantity by its name, or a number

# What an item is about; the page groups by it.
Subject = Literal["printed numbers", "theory", "method", "published code", "comparison"]

# How far an item reaches: to a conclusion of the publication, to a number that a reader
# may use, or to a detail. A typo changes nothing, and is folded away.
Reach = Literal["conclusion", "number", "detail", "typo"]

# Whose statement is judged: the authors' own, or a question that only we ask.
Whose = Literal["authors", "ours"]

HEX = "0123456789abcdef"
COMMIT_DIGITS = 40
DIGEST_DIGITS = 12
MOST_GRAVE = 10  # items that stand in the first table of the page


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Piece(_Strict):
    """A piece of evidence.

    ``says`` is what it looks at. Where it does not decide, it is shown beside others,
    and the verdict is given without it.
    """

    says: str
    decides: bool = True


class Arithmetic(_Piece):
    """Printed cells, and what follows from them step by step.

    ``cells`` and ``brackets`` are printed numbers by a name of ours; a cell's bracket
    is the second number that it prints. ``numbers`` are no cells: ``because`` says
    where they come from. ``steps`` are pairs of a name and a formula over names.
    ``compare`` must hold if what is claimed is right. It is judged as far as the
    printed digits can tell, or with ``to_the_digit`` exactly, where one number is a
    copy of another. ``within`` is a tolerance, as a share of the right side.
    """

    sort: Literal["arithmetic"]
    cells: dict[str, CellName] = {}
    brackets: dict[str, CellName] = {}
    numbers: dict[str, FiniteFloat] = {}
    because: str = ""
    steps: tuple[tuple[str, str], ...] = ()
    compare: tuple[Operand, Relation, Operand]
    within: FiniteFloat = 0.0
    to_the_digit: bool = False


class PrintedTwice(_Piece):
    """A printed cell that another printed number contradicts.

    It points to an erratum of kind "conflict", which says what the number should be.
    """

    sort: Literal["printed twice"]
    cell: CellName


class Words(_Piece):
    """The same fact in two sources; each of them is the source and what it says."""

    sort: Literal["words"]
    one: tuple[str, str]
    other: tuple[str, str]


class ClaimVerdict(_Piece):
    """A claim that is judged with its paper's tables, for one kind of number.

    ``bears_out`` is the verdict that it must have if what is claimed is right. Only the
    print may decide: other kinds of number are those of the last ``make reproduce``,
    and a verdict must not depend on what that had time for.
    """

    sort: Literal["claim"]
    item: str
    claim: str
    kind: Literal["paper", "virtual", "emulated", "measured"] = "paper"
    bears_out: Literal["yes", "no"] = "yes"
    paper: str = ""  # "": the publication of this file

    @model_validator(mode="after")
    def _only_the_print_decides(self) -> Self:
        if self.decides and self.kind != "paper":
            raise ValueError(
                f"claim {self.claim!r} is of kind {self.kind!r}, which changes from "
                "one `make reproduce` to the next: add `decides = false`"
            )
        return self


class Run(_Piece):
    """An experiment by its name, with its settings.

    ``compare`` must hold if what is claimed is right: a quantity that the run gives,
    and another one or a number.
    """

    sort: Literal["run"]
    run: str
    settings: dict[str, str | int | FiniteFloat | bool] = {}
    compare: tuple[Operand, Relation, Operand]
    within: FiniteFloat = 0.0


class CodeRead(_Piece):
    """Lines of published code that were read. They are no part of this repository.

    ``code`` names an entry of the file's ``code``: a repository and a commit. ``lines``
    are the first and the last one, as "413-414", or one alone. ``digest`` tells whether
    they are still what was read (see ``clones.digest_of``). ``reads`` is what they do,
    in our words, and ``bears_out`` whether that bears out what is claimed.
    """

    sort: Literal["code"]
    code: str
    file: str
    lines: Annotated[str, Field(pattern=r"^[1-9][0-9]*(-[1-9][0-9]*)?$")]
    digest: Annotated[str, Field(pattern=rf"^[{HEX}]{{{DIGEST_DIGITS}}}$")]
    reads: str
    bears_out: Literal["yes", "no"]

    @property
    def first_and_last(self) -> tuple[int, int]:
        """The numbers of the first and of the last line; lines count from 1."""
        first, _, last = self.lines.partition("-")
        return int(first), int(last or first)


Evidence = Annotated[
    Arithmetic | PrintedTwice | Words | ClaimVerdict | Run | CodeRead,
    Field(discriminator="sort"),
]


class Document(_Strict):
    """A text that is judged, in the version that was read."""

    title: str
    version: str
    link: Annotated[str, Field(pattern="^https://")]


class Repository(_Strict):
    """Published code at the commit at which it was read.

    ``branch`` is empty where the commit is of the default branch.
    """

    repository: Annotated[str, Field(pattern=r"^github\.com/[\w.-]+/[\w.-]+$")]
    commit: Annotated[str, Field(pattern=rf"^[{HEX}]{{{COMMIT_DIGITS}}}$")]
    branch: str = ""


class Source(_Strict):
    """Where something stands: a cell of a table that we have, or other words.

    Of a ``cell`` row and column may be empty: then the whole table is meant. ``at`` is
    a section, a caption or a line, in the ``document`` of that name.
    """

    cell: CellName | None = None
    at: str = ""
    document: str = "paper"

    @model_validator(mode="after")
    def _names_one_source(self) -> Self:
        if (self.cell is None) == (not self.at):
            raise ValueError("a source has either `cell` or `at`")
        return self


class AuditItem(_Strict):
    """Something that a publication claims, prints or does, which can be judged alone.

    id                a name that stays
    title             what was found, in one line
    reach             how far it reaches, by our judgement
    about             what it is about
    whose             whose statement is judged; ours are not counted
    claimed           what is claimed or printed, with its qualifier
    where             the sources in which that stands
    found             what we found
    changes           what that changes for a reader of the paper
    answer            the best answer that its authors could give
    answer_convinces  whether that answer would explain all that contradicts
    rank              1 to 10 for the gravest findings of the whole audit
    evidence          what decides it
    clock_follows     what shows that our simulated clock follows this paper's own
                      numbers of this item; without it the clock settles nothing
    errata            cells whose errata, in the paper's own tables, say the same
    """

    id: str
    title: str
    reach: Reach
    about: Subject
    whose: Whose = "authors"
    claimed: str
    where: Annotated[tuple[Source, ...], Field(min_length=1)]
    found: str
    changes: str
    answer: str
    answer_convinces: bool = False
    rank: Annotated[int, Field(ge=1, le=MOST_GRAVE)] | None = None
    evidence: Annotated[tuple[Evidence, ...], Field(min_length=1)]
    clock_follows: tuple[Evidence, ...] = ()
    errata: tuple[CellName, ...] = ()

    @property
    def code_read(self) -> tuple[CodeRead, ...]:
        """The published code among its evidence."""
        return tuple(piece for piece in self.evidence if isinstance(piece, CodeRead))


class Publication(_Strict):
    """The audit of one publication, or of some that belong together.

    ``paper`` is the folder of its tables under ``data/papers``, empty where there is
    none. ``documents`` are the texts and ``code`` the repositories that were read.
    """

    key: str
    name: str
    paper: str = ""
    about: str
    documents: dict[str, Document] = {}
    code: dict[str, Repository] = {}
    items: tuple[AuditItem, ...]
