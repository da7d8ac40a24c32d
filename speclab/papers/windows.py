"""The best windows of measured methods, as earlier searches found them.

Searching for a window takes longer than measuring with it. A quick run takes the one
that ``reports/windows.csv`` has, whatever machine it was found on, and says so.
"""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from speclab.experiment.spec import CellResult, Spec
from speclib import paths
from speclib.atomic_files import write_atomically

from .ledger import to_csv

WindowKey: TypeAlias = tuple[str, str, str, str]  # pair, task, method, settings


class FoundWindow(NamedTuple):
    """The window that a search found best for a method on a pair and a task."""

    pair: str
    task: str
    method: str
    settings: str
    gamma: int
    machine: str


def found_window(spec: Spec) -> FoundWindow | None:
    """What an earlier search found for a measured cell; None where none was made."""
    return read_windows().get(_window_key(spec))


def read_windows() -> dict[WindowKey, FoundWindow]:
    """All that were found, by pair, task, method and settings.

    A line that cannot be read is left out.
    """
    found: dict[WindowKey, FoundWindow] = {}
    try:
        with open(_file(), newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    key = row["pair"], row["task"], row["method"], row["settings"]
                    gamma = int(row["gamma"])
                    found[key] = FoundWindow(*key, gamma, row["machine"])
    except (OSError, UnicodeDecodeError, csv.Error):
        pass  # what could be read until then
    return found


def write_windows(results: Iterable[CellResult]) -> None:
    """Adds the windows that measured cells have searched for to those on file."""
    known = read_windows()
    for result in results:
        if "searched" in result.facts and result.gamma is not None:
            key = _window_key(result.spec)
            known[key] = FoundWindow(*key, result.gamma, result.machine)
    if known:
        rows = [known[key] for key in sorted(known)]
        write_atomically(_file(), to_csv(rows, FoundWindow._fields))


def _window_key(spec: Spec) -> WindowKey:
    settings = " ".join(f"{name}={value}" for name, value in spec.settings)
    return str(spec.pair), str(spec.task), spec.method, settings


def _file() -> Path:
    return paths.REPORTS / "windows.csv"
