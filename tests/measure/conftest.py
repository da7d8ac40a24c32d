"""Fixtures for tests of measuring: a cache of rows and a machine with a known name."""

from __future__ import annotations

import json

import pytest
from helpers.specs import MACHINE

from speclab import machine_facts
from speclab.runs.rows import Row, read_all
from speclib import paths
from speclib.data import latency


@pytest.fixture
def rows_folder(own_cache):
    """The folder of this test's rows; the machine's speed is not measured."""
    folder = paths.CACHE / "runs"
    folder.mkdir()
    content = {"hardware": machine_facts.hardware(), "name": MACHINE}
    (folder / "machine.json").write_text(json.dumps(content))
    return folder


@pytest.fixture
def rows(rows_folder):
    """rows() reads this test's rows."""

    def read() -> list[Row]:
        return [row for row in read_all() if row.machine == MACHINE]

    return read


@pytest.fixture
def quick_latencies(tmp_path, monkeypatch):
    """A latency of a few milliseconds, "quick", and one too short for any process."""
    (tmp_path / "latency").mkdir()
    write_latency(tmp_path / "latency" / "quick.toml", draft=0.002, target=0.006)
    write_latency(tmp_path / "latency" / "impossible.toml", draft=1e-9, target=3e-9)
    monkeypatch.setattr(latency, "DATA", tmp_path)


def write_latency(path, **seconds_of_a_pass: float) -> None:
    lines = []
    for model, seconds in seconds_of_a_pass.items():
        lines += [f"[{model}]", f"forward = [[1, {seconds}]]", "prefill = 0.0"]
    path.write_text("\n".join(lines) + "\n")
