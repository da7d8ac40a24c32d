"""What tests of cells share: a cache of their own, and a list of what is run."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from speclab.experiment import cache
from speclab.experiment.cells import toy_requests as virtual_cells
from speclab.experiment.engines import emulated, virtual_cell
from speclib import paths
from speclib.data import latency


class ComputedCell(NamedTuple):
    """A virtual cell that was really run."""

    method: str
    gamma: int | None


@pytest.fixture(autouse=True)
def cells_folder(tmp_path, monkeypatch) -> Path:
    """Where this test's own cache keeps its cells."""
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    return cache.cells_folder()


@pytest.fixture
def computed(monkeypatch) -> list[ComputedCell]:
    """Every virtual cell that is really run, in order."""
    computed_cells = []
    run_requests = virtual_cells.run_requests

    def run_and_note(cell, requests, **first):
        gamma = cell.settings.get("gamma")
        computed_cells.append(ComputedCell(cell.method.__name__, gamma))
        return run_requests(cell, requests, **first)

    monkeypatch.setattr(virtual_cells, "run_requests", run_and_note)
    return computed_cells


@pytest.fixture
def latencies_of_their_own(tmp_path, monkeypatch):
    """Latencies of a few milliseconds, and one that no process can keep."""
    (tmp_path / "latency").mkdir()
    write_latency(tmp_path / "latency" / "quick.toml", draft=0.002, target=0.006)
    write_latency(tmp_path / "latency" / "impossible.toml", draft=1e-9, target=3e-9)
    for module in (latency, virtual_cell, emulated):
        monkeypatch.setattr(module, "DATA", tmp_path)


def write_latency(path, **seconds_of_a_pass: float) -> None:
    lines = []
    for model, seconds in seconds_of_a_pass.items():
        lines += [f"[{model}]", f"forward = [[1, {seconds}]]", "prefill = 0.0"]
    path.write_text("\n".join(lines) + "\n")
