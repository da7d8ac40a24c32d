"""Papers as they are transcribed under ``data``, read without the engine.

The tests of transcriptions judge the print by arithmetic alone. Where
SPECLIB_PAPERS_DIR names a folder with the papers' texts (pearl.txt, ...), they also
read every cell from it a second time.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[2] / "data"

Cell = tuple[str, str, str]  # item, row and column


def load_folder(folder: str) -> dict[str, dict[str, Any]]:
    """The files of a folder under ``data``, by their names without ``.toml``."""
    files = {}
    for path in sorted((DATA / folder).glob("*.toml")):
        files[path.stem] = tomllib.loads(path.read_text("utf-8"))
    return files


def printed_cells(tables: dict[str, dict[str, Any]]) -> dict[Cell, float]:
    """The printed number of every cell of these tables."""
    cells = {}
    for item, table in tables.items():
        for row, column, value in table.get("cells", []):
            cells[item, row, column] = value
    return cells


def numbers_in_brackets(tables: dict[str, dict[str, Any]]) -> dict[Cell, float]:
    """The second number of every cell that prints one."""
    cells = {}
    for item, table in tables.items():
        for row, column, value in table.get("beside", {}).get("cells", []):
            cells[item, row, column] = value
    return cells


def text_of(paper: str) -> str:
    """The paper's text; skips the test where there is no folder with the texts."""
    folder = os.environ.get("SPECLIB_PAPERS_DIR")
    if not folder:
        pytest.skip("SPECLIB_PAPERS_DIR is not set")
    return (Path(folder) / f"{paper}.txt").read_text("utf-8")
