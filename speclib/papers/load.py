"""Papers as data: their folders read and checked."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from speclib.errors import SpeclibError
from speclib.paths import DATA

from .calibration import Calibration
from .fill import RUN
from .schema import SETTINGS, Paper, Table

BESIDE = ("paper", "calibration", "audit")  # files of a folder that are no tables


FACTS = ("key", "title", "authors", "year", "url", "arxiv", "about")


@cache
def load_paper(key: str, folder: Path | None = None) -> Paper:
    """Reads ``data/papers/<key>``. Raises SpeclibError naming the file and what is wrong in it."""
    folder = folder or DATA / "papers" / key
    if not (folder / "paper.toml").exists():
        known = sorted(p.parent.name for p in (DATA / "papers").glob("*/paper.toml"))
        raise SpeclibError(
            f"no paper {key!r} under {folder.parent}; known: {', '.join(known)}"
        )
    raw = _read(folder / "paper.toml")
    facts = {k: v for k, v in raw.items() if k not in FACTS}
    calibration = {
        name: _parse(Calibration, entry, folder / "calibration.toml", name)
        for name, entry in _read(folder / "calibration.toml", {}).items()
    }
    tables = [_table(path) for path in folder.glob("*.toml") if path.stem not in BESIDE]
    paper = _parse(
        Paper,
        {k: v for k, v in raw.items() if k in FACTS}
        | {
            "facts": facts,
            "calibration": calibration,
            "tables": {t.item: t for t in sorted(tables, key=_place)},
        },
        folder / "paper.toml",
    )
    for table in paper.tables.values():
        table._paper = paper
    return paper


def _table(path: Path) -> Table:
    raw = _read(path)
    table = _parse(Table, raw, path)
    if table.item != path.stem:
        raise SpeclibError(
            f"{path}: item is {table.item!r}; the file's name says {path.stem!r}"
        )
    _check_settings(path, raw)
    return table


def _check_settings(path: Path, raw: dict) -> None:
    """Every setting is one the engine knows, or one that another refers to as "{name}"."""
    groups = {"[settings]": raw.get("settings", {})}
    for axis in ("row", "column"):
        groups |= {f'[{axis}."{label}"]': s for label, s in raw.get(axis, {}).items()}
    groups |= {
        f"{where}.{kind}": own[kind]
        for where, own in groups.items()
        for kind in RUN
        if kind in own
    }
    texts = " ".join(str(v) for s in groups.values() for v in s.values())
    known = SETTINGS | {*RUN} | set(re.findall(r"\{(\w+)\}", texts))
    for where, settings in groups.items():
        for name in settings:
            if name not in known:
                raise SpeclibError(
                    f"{path}: {where} has the unknown setting {name!r}; known: "
                    f"{', '.join(sorted(known))}"
                )


def _read(path: Path, default: dict | None = None) -> dict:
    if default is not None and not path.exists():
        return default
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SpeclibError(f"{path}: not valid TOML: {error}") from error


def _parse(model, raw: dict, path: Path, entry: str | None = None):
    try:
        return model(**raw)
    except ValidationError as error:
        lines = [
            f"{'.'.join(str(p) for p in e['loc'])}: {e['msg']}" for e in error.errors()
        ]
        known = (
            f" (known keys: {', '.join(model.model_fields)})"
            if any(
                e["type"] == "extra_forbidden" and len(e["loc"]) == 1
                for e in error.errors()
            )
            else ""
        )
        where = f"{path}, entry {entry!r}" if entry else str(path)
        raise SpeclibError(f"{where}: {'; '.join(lines)}{known}") from error


def _place(table: Table) -> tuple:
    """Figures, tables, theorems, by number; then those of a blog, then our own ("extra")."""
    word, number = re.fullmatch(
        r"(.*?)-(\w+)", table.item.replace("blog-figure", "z")
    ).groups()
    digits = re.match(r"\d+", number)
    return (
        ("figure", "table", "theorem", "z").index(word)
        if word in ("figure", "table", "theorem", "z")
        else 9,
        int(digits[0]) if digits else 0,
        number,
    )
