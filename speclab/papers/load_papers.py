"""Reads the folders of papers' data, and checks them.

Any mistake in a file becomes one SpeclibError that names the file, the value and the
correction.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from speclib.data.toml_files import read_toml
from speclib.errors import BadValue, SpeclibError, unknown_name
from speclib.paths import DATA

from .calibration import Calibration
from .check_claims import check_claim
from .paper_schema import ENGINE_KINDS, SETTINGS, Claim, Paper, Table
from .scripts import READERS, SCRIPTS

NOT_TABLES = ("paper", "calibration", "audit")  # files in a folder that aren't tables

# The keys that every paper has; everything else in paper.toml goes to its ``facts``.
PAPER_KEYS = ("key", "name", "title", "authors", "year", "url", "arxiv", "about")

# Items in print order; others, such as our own "extra", follow.
ITEM_ORDER = ("figure", "table", "theorem", "blog-figure")

Model = TypeVar("Model", bound=BaseModel)


@cache
def load_paper(key: str, folder: Path | None = None) -> Paper:
    """Reads ``data/papers/<key>``, or a ``folder`` with the same layout.

    Raises SpeclibError naming the file and its mistake; for an unknown paper it lists
    the known ones.
    """
    folder = folder or DATA / "papers" / key
    if not (folder / "paper.toml").exists():
        if folder.is_dir():
            raise BadValue(
                f"{folder} has no paper.toml, which describes the paper: write one "
                "like that of data/papers/amusd (see docs/extend.md, A new paper)"
            )
        known = sorted(path.parent.name for path in DATA.glob("papers/*/paper.toml"))
        raise unknown_name(f"no paper {key!r} under {folder.parent}", key, known)

    raw = _read_toml(folder / "paper.toml")
    paper_fields = {name: raw.pop(name) for name in PAPER_KEYS if name in raw}
    paper_fields["facts"] = raw
    paper_fields["calibration"] = _load_calibrations(folder / "calibration.toml")
    paper_fields["tables"] = _load_tables(folder)

    paper = _parse(Paper, paper_fields, folder / "paper.toml")
    _check_fill(paper, folder / "paper.toml")
    for table in paper.tables.values():
        table.join(paper)
    return paper


# -- parts of a paper ------------------------------------------------------------------
def _load_calibrations(path: Path) -> dict[str, Calibration]:
    if not path.exists():
        return {}
    calibrations = {}
    for name, entry in _read_toml(path).items():
        calibrations[name] = _parse(Calibration, entry, path, name)
    return calibrations


def _load_tables(folder: Path) -> dict[str, Table]:
    tables = []
    for path in folder.glob("*.toml"):
        if path.stem not in NOT_TABLES:
            tables.append(_load_table(path))
    return {table.item: table for table in sorted(tables, key=_print_order)}


def _load_table(path: Path) -> Table:
    raw = _read_toml(path)
    table = _parse(Table, raw, path)
    if table.item != path.stem:
        raise BadValue(
            f"{path}: item is {table.item!r}, but the file's name is {path.stem!r}"
        )
    if not re.fullmatch(r".*-\w+", table.item):
        raise BadValue(
            f"{path}: item is {table.item!r}: give a word, '-' and a number, as in "
            "'table-5' or 'figure-2a'"
        )
    _check_settings(table, path)
    for claim in table.claims:
        try:
            check_claim(claim)
        except SpeclibError as error:
            raise BadValue(f"{path}: {error}") from error
        _check_labels(claim, table, path)
    return table


def _check_labels(claim: Claim, table: Table, path: Path) -> None:
    """Raises BadValue if a claim compares rows or columns that the table lacks."""
    if claim.kind not in ("order", "argmax"):
        return
    rows, columns = table.row_labels, table.column_labels
    compared, along = (rows, columns) if claim.over == "row" else (columns, rows)
    labels = [(label, compared) for label in claim.order]
    if isinstance(claim.expected, str) and claim.expected != "round(c)":
        labels.append((claim.expected, compared))
    lines = claim.column if claim.over == "row" else claim.row
    for line in (lines,) if isinstance(lines, str) else lines or ():
        labels.append((line, along))
    for label, known in labels:
        if label != "*" and label not in known:
            raise unknown_name(
                f"{path}: claim {claim.id!r} names {label!r}, but there is no such row "
                "or column",
                label,
                known,
            )


def _print_order(table: Table) -> tuple[int, int, str, str]:
    """The sort key of tables: rank of the item's word, number, letter, word."""
    word, _, number = table.item.rpartition("-")
    rank = ITEM_ORDER.index(word) if word in ITEM_ORDER else len(ITEM_ORDER)
    digits = re.match(r"\d+", number)
    return rank, int(digits[0]) if digits else 0, number, word


# -- checks ----------------------------------------------------------------------------
def _check_settings(table: Table, path: Path) -> None:
    """Checks that each setting is one of the engine's, or that another refers to it.

    A setting refers to another one as "{name}".
    """
    groups = _settings_groups(table)
    known = {*SETTINGS, *ENGINE_KINDS}
    for settings in groups.values():
        for value in settings.values():
            known.update(re.findall(r"\{(\w+)\}", str(value)))

    for where, settings in groups.items():
        for name in settings:
            if name not in known:
                problem = f"{path}: {where} has the unknown setting {name!r}"
                raise unknown_name(problem, name, sorted(known))

    script = table.settings.get("script")
    known_scripts = (*SCRIPTS, *READERS)
    if script is not None and script not in known_scripts:
        problem = f"{path}: [settings] has the unknown script {script!r}"
        raise unknown_name(problem, script, known_scripts)


def _settings_groups(table: Table) -> dict[str, dict[str, Any]]:
    """All settings in a file, by their heading."""
    groups: dict[str, dict[str, Any]] = {"[settings]": dict(table.settings)}
    for label, settings in table.row.items():
        groups[f'[row."{label}"]'] = dict(settings)
    for label, settings in table.column.items():
        groups[f'[column."{label}"]'] = dict(settings)

    of_kinds: dict[str, dict[str, Any]] = {}
    for where, settings in groups.items():
        for kind in ENGINE_KINDS:
            of_this_kind = settings.get(kind)
            if isinstance(of_this_kind, dict):
                of_kinds[f"{where}.{kind}"] = of_this_kind
    return groups | of_kinds


def _check_fill(paper: Paper, path: Path) -> None:
    """Checks that [fill] in paper.toml has a list of items for each kind of number."""
    fill = paper.facts.get("fill", {})
    if not isinstance(fill, dict):
        raise BadValue(f"{path}: fill is {fill!r}: give [fill], items by kind")
    for kind, items in fill.items():
        if kind not in ENGINE_KINDS:
            problem = f"{path}: [fill] has the unknown kind {kind!r}"
            raise unknown_name(problem, kind, ENGINE_KINDS)
        if not isinstance(items, list):
            raise BadValue(f"{path}: [fill] {kind} is {items!r}: give a list")
        for item in items:
            if item not in paper.tables:
                raise BadValue(
                    f"{path}: [fill] {kind} names {item!r}, but {item}.toml is missing "
                    "from its folder"
                )


# -- files -----------------------------------------------------------------------------
def _read_toml(path: Path) -> dict[str, Any]:
    return read_toml(path.parent, path.stem, f"no file {path}")


def _parse(model: type[Model], raw: Any, path: Path, entry: str | None = None) -> Model:
    """``raw`` as a ``model``; errors name the file, its ``entry`` and wrong keys."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problems = []
        unknown_key = False
        for problem in error.errors():
            key = ".".join(str(part) for part in problem["loc"])
            problems.append(f"{key}: {problem['msg']}" if key else problem["msg"])
            if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
                unknown_key = True

        where = f"{path}, entry {entry!r}" if entry else str(path)
        known = ", ".join(model.model_fields)
        hint = f" (known keys: {known})" if unknown_key else ""
        raise BadValue(f"{where}: {'; '.join(problems)}{hint}") from error
