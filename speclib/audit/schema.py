"""What an item of the audit is: something claimed or printed, and evidence on it.

The files under ``data/audit`` hold the items, one file per publication. How they are
written is described at the top of ``data/audit/pearl.toml``. Knows no verdict: that is
for the evidence to give.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from .quantity import Relation

CellName = tuple[str, str, str]  # item, row and column
Operand = str | FiniteFloat  # a quantity by its name, or a number

# What an item is about; the page groups by it.
Subject = Literal["printed numbers", "theory", "method", "published code", "comparison"]

# How far an item reaches: to a conclusion of the publication, to a number that a reader
# may use, or to a detail.
Reach = Literal["conclusion", "number", "detail"]


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
    """The same fact in two places; each of them is the place and what it says."""

    sort: Literal["words"]
    one: tuple[str, str]
    other: tuple[str, str]


class ClaimVerdict(_Piece):
    """A claim that is judged with its paper's tables, for one kind of number.

    ``bears_out`` is the verdict that it must have if what is claimed is right.
    """

    sort: Literal["claim"]
    item: str
    claim: str
    kind: Literal["paper", "virtual", "emulated", "measured"] = "paper"
    bears_out: Literal["yes", "no"] = "yes"
    paper: str = ""  # "": the publication of this file


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


Evidence = Annotated[
    Arithmetic | PrintedTwice | Words | ClaimVerdict | Run, Field(discriminator="sort")
]


class Reading(_Strict):
    """Published code that was read. It is no part of this repository.

    ``commit`` is empty where it was not noted. ``says`` is what the code does there, in
    our words.
    """

    repository: str
    file: str
    commit: str = ""
    says: str


class AuditItem(_Strict):
    """Something that a publication claims, prints or does, which can be judged alone.

    id         a name that stays
    title      the statement that is judged, in one line
    reach      how far it reaches, by our judgement
    about      what it is about
    claimed    what is claimed or printed, in our words
    where      its table, figure, section or file
    found      what we found
    changes    what that changes for a reader of the paper
    answer     what its authors could answer
    evidence   what decides it
    readings   published code that was read for it
    errata     cells whose errata, in the paper's own tables, say the same
    """

    id: str
    title: str
    reach: Reach
    about: Subject
    claimed: str
    where: str
    found: str
    changes: str
    answer: str
    evidence: tuple[Evidence, ...] = ()
    readings: tuple[Reading, ...] = ()
    errata: tuple[CellName, ...] = ()


class Publication(_Strict):
    """The audit of one publication, or of some that belong together.

    ``paper`` is the folder of its tables under ``data/papers``, empty where there is
    none.
    """

    key: str
    name: str
    paper: str = ""
    about: str
    items: tuple[AuditItem, ...]
