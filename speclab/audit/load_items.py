"""The audit's files, read and checked.

Whatever is wrong in one becomes an error that names the file, the item and what would
be right.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from speclab.papers.load_papers import load_paper
from speclab.papers.paper_schema import matches_any
from speclib.errors import BadValue, SpeclibError, unknown_name
from speclib.paths import DATA

from .item_schema import AuditItem, CellName, Publication

# In this order the page shows them; those of other files follow.
ORDER = ("pearl", "easyspec", "duodecoding", "dsi", "baselines", "engines")


@cache
def load_audit(folder: Path | None = None) -> dict[str, Publication]:
    """All publications under ``data/audit``, or under another ``folder``, by key.

    Raises SpeclibError naming the file and what is wrong in it.
    """
    folder = folder or DATA / "audit"
    if not folder.is_dir():
        raise BadValue(f"no items of the audit under {folder}: name another folder")
    publications = {}
    for path in sorted(folder.glob("*.toml"), key=_position):
        publications[path.stem] = _load_publication(path)
    _check_ids(publications)
    _check_ranks(publications)
    return publications


def publication(key: str) -> Publication:
    """One publication; raises UnknownName listing all, if there is none of that key."""
    publications = load_audit()
    if key not in publications:
        raise unknown_name(f"the audit has no {key!r}", key, publications)
    return publications[key]


def _position(path: Path) -> tuple[int, str]:
    position = ORDER.index(path.stem) if path.stem in ORDER else len(ORDER)
    return position, path.stem


def _load_publication(path: Path) -> Publication:
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BadValue(f"{path}: not valid TOML: {error}") from error
    try:
        loaded = Publication.model_validate(raw)
    except ValidationError as error:
        problems = []
        for problem in error.errors():
            field = ".".join(str(part) for part in problem["loc"])
            problems.append(f"{field}: {problem['msg']}")
        raise BadValue(f"{path}: {'; '.join(problems)}") from error

    if loaded.key != path.stem:
        raise BadValue(f"{path}: key is {loaded.key!r}; the file's name says otherwise")
    for item in loaded.items:
        try:
            _check_errata(loaded, item)
            _check_sources(loaded, item)
            _check_code(loaded, item)
        except SpeclibError as error:
            raise BadValue(f"{path}, item {item.id!r}: {error}") from error
    return loaded


def _check_errata(loaded: Publication, item: AuditItem) -> None:
    """Each cell that an item points to must have an erratum."""
    for cell in item.errata:
        if not errata_notes(loaded.paper, cell):
            raise BadValue(
                f"{list(cell)} has no erratum in "
                f"data/papers/{loaded.paper}/{cell[0]}.toml"
            )


def _check_sources(loaded: Publication, item: AuditItem) -> None:
    """Each source must be in a document that is named, or in a table that we have."""
    for source in item.where:
        if source.cell is not None:
            _check_cell(loaded, source.cell)
        elif source.document not in loaded.documents:
            problem = f"{source.at!r} is in no document {source.document!r}"
            raise unknown_name(problem, source.document, loaded.documents)


def _check_cell(loaded: Publication, cell: CellName) -> None:
    name, row, column = cell
    if not loaded.paper:
        raise BadValue(f"{list(cell)}: this publication has no tables; use `at`")
    table = load_paper(loaded.paper).table(name)
    if row and row not in table.row_labels:
        raise unknown_name(f"{table.file} has no row {row!r}", row, table.row_labels)
    if column and column not in table.column_labels:
        problem = f"{table.file} has no column {column!r}"
        raise unknown_name(problem, column, table.column_labels)


def _check_code(loaded: Publication, item: AuditItem) -> None:
    """Code that was read must be in a repository that is named, from first to last."""
    for piece in item.code_read:
        if piece.code not in loaded.code:
            problem = f"no [code.{piece.code}] says which repository and commit"
            raise unknown_name(problem, piece.code, loaded.code)
        first, last = piece.first_and_last
        if last < first:
            raise BadValue(
                f"{piece.file}, lines {piece.lines}: the last is before the first"
            )


def errata_notes(paper: str, cell: CellName) -> list[str]:
    """What the errata of a printed cell say, each with its kind."""
    name, row, column = cell
    notes = []
    for erratum in load_paper(paper).table(name).errata:
        if matches_any(erratum.cells, row, column):
            note = " ".join(erratum.note.split())
            notes.append(f"{erratum.kind}: {note}")
    return notes


def _check_ids(publications: dict[str, Publication]) -> None:
    """An id stands for one item of the whole audit."""
    owners: dict[str, str] = {}
    for key, loaded in publications.items():
        for item in loaded.items:
            if item.id in owners:
                raise BadValue(
                    f"two items of the audit are called {item.id!r}, in "
                    f"{owners[item.id]}.toml and {key}.toml"
                )
            owners[item.id] = key


def _check_ranks(publications: dict[str, Publication]) -> None:
    """No two of the gravest findings may have the same rank."""
    owners: dict[int, str] = {}
    for loaded in publications.values():
        for item in loaded.items:
            if item.rank is None:
                continue
            if item.rank in owners:
                raise BadValue(
                    f"two items of the audit have rank {item.rank}: "
                    f"{owners[item.rank]!r} and {item.id!r}"
                )
            owners[item.rank] = item.id
