"""The papers' transcriptions under ``data``, read without the engine.

The tests of transcriptions check the printed numbers by arithmetic alone. If
SPECLIB_PAPERS_DIR names a folder with the papers' texts (pearl.txt, ...), they also
read every cell a second time from those texts.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[2] / "data"

CellName = tuple[str, str]  # row and column
Cell = tuple[str, str, str]  # item, row and column


# -- files -----------------------------------------------------------------------------
def load_folder(folder: str) -> dict[str, dict[str, Any]]:
    """Reads the TOML files of a folder under ``data``, by name without ``.toml``."""
    files = {}
    for path in sorted((DATA / folder).glob("*.toml")):
        files[path.stem] = tomllib.loads(path.read_text("utf-8"))
    return files


# -- printed numbers -------------------------------------------------------------------
def numbers_of(table: dict[str, Any]) -> dict[CellName, float]:
    """Returns the printed numbers of one table, by row and column."""
    numbers = {}
    for row, column, value in table.get("cells", []):
        numbers[row, column] = value
    return numbers


def printed_cells(tables: dict[str, dict[str, Any]]) -> dict[Cell, float]:
    """Returns the printed number of every cell of these tables."""
    cells = {}
    for item, table in tables.items():
        for cell, value in numbers_of(table).items():
            cells[item, *cell] = value
    return cells


def numbers_in_brackets(tables: dict[str, dict[str, Any]]) -> dict[Cell, float]:
    """Returns the second number of every cell that prints two."""
    cells = {}
    for item, table in tables.items():
        for cell, value in numbers_of(table.get("beside", {})).items():
            cells[item, *cell] = value
    return cells


def row_labels(table: dict[str, Any]) -> list[str]:
    """Returns the rows with a printed number, in the printed order."""
    return list(dict.fromkeys(row for row, _ in numbers_of(table)))


def column_labels(table: dict[str, Any]) -> list[str]:
    """Returns the columns with a printed number, in the printed order."""
    return list(dict.fromkeys(column for _, column in numbers_of(table)))


# -- errata ----------------------------------------------------------------------------
def computed_in_errata(
    table: dict[str, Any], kind: str
) -> dict[CellName, float | None]:
    """Returns the computed values of one kind of errata, by row and column."""
    computed = {}
    for entry in table.get("errata", []):
        if entry["kind"] == kind:
            for row, column in entry["cells"]:
                computed[row, column] = entry.get("computed")
    return computed


# -- the text --------------------------------------------------------------------------


def text_of(paper: str) -> str:
    """Returns the paper's text; skips the test if SPECLIB_PAPERS_DIR is not set."""
    folder = os.environ.get("SPECLIB_PAPERS_DIR")
    if not folder:
        pytest.skip("SPECLIB_PAPERS_DIR is not set")
    return (Path(folder) / f"{paper}.txt").read_text("utf-8")
