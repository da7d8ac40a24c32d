"""A separate home for ``speclab reproduce``, and the command run there as a process.

A home is a folder with a copy of one paper's data, PEARL's. Only some of its tables are
to be filled, and it has no notebook.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from speclab.papers.table_cells import VIRTUAL_TOKENS
from speclib import paths

ROOT = Path(__file__).resolve().parents[2]
FILES = ("ledger.csv", "claims.csv", "pearl.md", "index.html")
REPRODUCE = ("reproduce", "--minutes=0")  # measures nothing


def make_home(
    path: Path,
    virtual=("table-5", "table-9"),
    emulated=(),
    measured=(),
    *,
    brief: bool = False,
) -> Path:
    """Makes a home in ``path`` that fills these tables with cells of the given kinds.

    brief: a virtual cell has three short requests, which take milliseconds.
    """
    for folder in ("papers/pearl", "latency", "hardware", "pairs"):
        shutil.copytree(ROOT / "data" / folder, path / "data" / folder)

    tables = {"virtual": virtual, "emulated": emulated, "measured": measured}
    fill_only(path / "data" / "papers" / "pearl" / "paper.toml", tables)
    if brief:
        for table in (path / "data" / "papers" / "pearl").glob("*.toml"):
            table.write_text(with_brief_cells(table.read_text()))
    return path


def with_brief_cells(table: str) -> str:
    """Returns a table's text with three requests of 128 tokens in each virtual cell.

    Two are not enough: their sum has no order, and they themselves bound the interval.
    """
    brief = 3 * 128 / VIRTUAL_TOKENS
    table = re.sub(r"^max_new_tokens = \d+", "max_new_tokens = 128", table, flags=re.M)
    table = re.sub(r"^sample = .*\n", "", table, flags=re.M)
    return table.replace("\n[settings]\n", f"\n[settings]\nsample = {brief}\n")


def fill_only(paper: Path, tables: Mapping[str, Iterable[str]]) -> None:
    """Changes a paper.toml so that only these tables are filled, by kind of number."""
    lines = [f"{kind} = {json.dumps(list(items))}" for kind, items in tables.items()]
    fill = "\n".join(["[fill]", *lines, "", "[tasks]"])
    text, replaced = re.subn(
        r"\[fill\].*?\[tasks\]", fill, paper.read_text(), flags=re.S
    )
    assert replaced == 1
    paper.write_text(text)


def command(
    home: Path, *words: str, environment: dict[str, str] | None = None, **options
) -> subprocess.Popen:
    """Starts ``python -m speclab <words>`` in a home.

    ``environment`` adds variables, and ``options`` are Popen's.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [sys.executable, "-m", "speclab", *words],
        text=True,
        cwd=home,
        env=os.environ | {"SPECLIB_HOME": str(home)} | (environment or {}),
        **(pipes | options),
    )


def run(home: Path, *words: str, status: int = 0) -> str:
    """Runs a command, asserts its exit status, and returns everything it printed."""
    process = command(home, *words)
    out, err = process.communicate(timeout=300)
    assert process.returncode == status, out + err
    return out + err


def enter(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes this process use a home's data, reports and cache."""
    monkeypatch.setattr(paths, "ROOT", home)
    monkeypatch.setattr(paths, "DATA", home / "data")
    monkeypatch.setattr(paths, "REPORTS", home / "reports")
    monkeypatch.setattr(paths, "CACHE", home / ".cache")


def reports(home: Path) -> dict[str, bytes]:
    """Returns the bytes of each report, by file name."""
    return {name: (home / "reports" / name).read_bytes() for name in FILES}
