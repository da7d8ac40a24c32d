"""Measured cells with toys in real processes: complete rows, which can be resumed."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from helpers.patience import wait_until
from helpers.specs import MACHINE, measured_spec

from speclab.measure import measurement, open_workers
from speclab.measure.measure import Step, measure
from speclab.measure.windows import best_window
from speclab.runs.rows import Rows, key_of, write
from speclib.errors import SpeclibError
from speclib.methods import METHODS

PEARL, SPECULATIVE = measured_spec("pearl", 2), measured_spec("speculative", 2)


@pytest.fixture(autouse=True)
def _own_rows(rows_folder):
    """Uses an empty folder of rows."""


def runs_of(rows) -> list[tuple[str, int]]:
    return [(row.key.method, row.prompt) for row in rows]


# -- turns -----------------------------------------------------------------------------
def test_methods_alternate_on_each_prompt_and_a_second_call_runs_nothing(rows):
    cells = (PEARL, measured_spec("speculative", "best"))
    assert measure([Step(cells, 1), Step(cells, 2)]) == {}
    done = rows()
    assert runs_of(done) == [
        *[("autoregressive", 0), ("pearl", 0), ("speculative", 0)],
        *[("autoregressive", 1), ("speculative", 1), ("pearl", 1)],
    ]
    assert [row.turn for row in done] == [0, 1, 2, 0, 1, 2]
    assert len({row.group for row in done}) == 2
    for row in done:
        assert row.stats.tokens == PEARL.tokens
        assert row.differs is None  # the tokens equal plain decoding's
        assert (row.key.limit, row.draft, row.machine) == (12, "toy", MACHINE)
    best = [row for row in done if row.key.window == "best"]
    assert len({(row.gamma, row.how) for row in best}) == 1  # one choice per cell
    assert f"on the virtual clock at c {best[0].c:.3g}" in best[0].how
    runs = Rows(done).of(PEARL, MACHINE)
    assert runs.labels == ["toy/0", "toy/1"]

    said: list[str] = []
    assert measure([Step(cells, 2)], say=said.append) == {}
    assert said == []
    assert rows() == done


def test_cells_with_the_same_method_and_window_share_a_run(rows):
    auto = measured_spec("pearl", "auto")
    measure([Step((auto,), 1)])
    (gamma,) = [row.gamma for row in rows() if row.key.method == "pearl"]
    number = measured_spec("pearl", gamma)
    said: list[str] = []
    measure([Step((auto, number, number.changed(requests=5)), 2)], say=said.append)
    assert len([line for line in said if "prompt 1" in line]) == 2
    stats = {row.key: row.stats for row in rows() if row.prompt == 1}
    assert stats[key_of(auto)] == stats[key_of(number)]


def test_a_peer_runs_in_turn_on_the_same_prompt_and_writes_the_same(rows):
    pytest.importorskip("torch")
    peer = "transformers-prompt-lookup"
    on = {"pair": "embedded/once", "task": "humaneval"}
    cells = (
        measured_spec("prompt_lookup", None, **on),
        measured_spec(peer, None, **on),
    )
    assert measure([Step(cells, 1)]) == {}
    assert runs_of(rows()) == [("autoregressive", 0), ("prompt_lookup", 0), (peer, 0)]
    plain, ours, theirs = rows()
    assert (ours.differs, theirs.differs) == (None, None)
    assert theirs.stats.tokens == plain.stats.tokens == 12
    assert theirs.stats.rounds == ours.stats.rounds


def test_a_world_stays_open_as_long_as_steps_need_it(rows):
    other = measured_spec("pearl", 2, cancel="immediate")
    said: list[str] = []
    measure([Step((PEARL, other), 1), Step((PEARL, other), 2)], say=said.append)
    assert len([line for line in said if line.startswith("starting")]) == 3
    assert len(rows()) == 8


def test_a_run_without_its_plain_decoding_is_repeated(rows, rows_folder):
    measure([Step((PEARL,), 2)])
    whole = rows()
    is_orphan = {("autoregressive", 1)}
    left = [row for row in whole if (row.key.method, row.prompt) not in is_orphan]
    (rows_folder / f"{MACHINE}.csv").write_text(write(left))
    measure([Step((PEARL,), 2)])
    assert sorted(runs_of(rows()[len(left) :])) == [("autoregressive", 1), ("pearl", 1)]


# -- the deadline, kills, a full disk --------------------------------------------------
IN_ORDER = [
    *[("autoregressive", 0), ("pearl", 0), ("speculative", 0)],
    *[("autoregressive", 1), ("speculative", 1), ("pearl", 1)],
]


@pytest.mark.parametrize("deadline, runs", [(0, 0), (3, 2), (5, 4)])
def test_at_the_deadline_the_current_run_is_finished(rows, monkeypatch, deadline, runs):
    """Each progress message takes a second here; the first reports the pair's start."""
    said: list[str] = []
    clock = SimpleNamespace(monotonic=lambda: len(said))
    monkeypatch.setattr(measurement, "time", clock)
    measure([Step((PEARL, SPECULATIVE), 2)], deadline, said.append)
    assert runs_of(rows()) == IN_ORDER[:runs]


MEASURES_MUCH = """
import sys
from pathlib import Path
from helpers.specs import measured_spec
from speclab.measure.measure import Step, measure
from speclib import paths

paths.CACHE = Path(sys.argv[1])
measure([Step((measured_spec("pearl", 2),), 2000)])
"""


@pytest.mark.slow
@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_measurement_keeps_its_rows_and_can_continue(rows, rows_folder, sig):
    file = rows_folder / f"{MACHINE}.csv"
    command = [sys.executable, "-c", MEASURES_MUCH, rows_folder.parent]
    path = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": path}, stderr=subprocess.PIPE
    )
    with process:
        assert wait_until(lambda: file.exists() and len(rows()) > 20)
        process.send_signal(sig)
    kept = rows()
    done = Rows(kept).prompts_done(PEARL, MACHINE)
    assert len(kept) - 2 * done in (0, 1)
    measure([Step((PEARL,), done + 2)])
    assert rows()[: len(kept)] == kept
    assert Rows(rows()).prompts_done(PEARL, MACHINE) == done + 2


def test_the_error_for_a_full_disk_says_so_and_no_row_is_lost(rows, rows_folder):
    measure([Step((PEARL,), 1)])
    before, limits = rows(), resource.getrlimit(resource.RLIMIT_FSIZE)
    size = (rows_folder / f"{MACHINE}.csv").stat().st_size

    def fill_the_disk(said: str) -> None:
        if "prompt" in said:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, limits[1]))

    try:
        with pytest.raises(SpeclibError, match=r"cannot write .*\.csv: File too large"):
            measure([Step((PEARL,), 2)], say=fill_the_disk)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert rows() == before


# -- cells that fail -------------------------------------------------------------------
def test_a_cell_that_fails_leaves_the_others(rows, monkeypatch):
    def broken(world, gamma):
        raise ZeroDivisionError("no draft")

    def deadly(world, gamma):
        os.kill(world.processes["draft"][0], signal.SIGKILL)
        world.wait(world.draft.propose(world.text, gamma))

    cells = [PEARL]
    for method in (broken, deadly):
        method.__module__ = "speclib.methods.pearl"
        monkeypatch.setitem(METHODS, method.__name__, method)
        cells.append(measured_spec(method.__name__, 2))
    nowhere = measured_spec(pair="nowhere")
    sudoku = measured_spec(task="sudoku")
    errors = measure([Step((nowhere, sudoku, *cells), 1), Step(tuple(cells), 2)])
    assert list(errors) == [nowhere, sudoku, *cells[1:]]
    assert errors[cells[1]] == "no draft"
    assert "draft" in errors[cells[2]]
    assert "no pair 'nowhere'" in errors[nowhere]
    assert "unknown task 'sudoku'" in errors[sudoku]
    assert len(Rows(rows()).of(PEARL, MACHINE).labels) == 2


def test_without_torch_a_measured_cell_says_what_to_install(monkeypatch):
    def missing(*_, **__):
        raise ModuleNotFoundError("No module named 'torch'")

    monkeypatch.setattr(open_workers, "Processes", missing)
    error = measure([Step((PEARL,), 1)])[PEARL]
    assert "No module named 'torch'" in error
    assert ".[models]" in error


# -- windows ---------------------------------------------------------------------------
@pytest.mark.parametrize("c, alpha", [(3.0, 0.6), (5.0, 0.9), (8.0, 0.8)])
def test_the_best_window_is_close_to_theorys(c, alpha):
    """The virtual clock's best window loses little speed compared with theory's.

    A round commits (1 - alpha^(gamma + 1)) / (1 - alpha) tokens in gamma / c + 1 target
    passes.
    """

    def speed(gamma: int) -> float:
        return (1 - alpha ** (gamma + 1)) / (1 - alpha) / (gamma / c + 1)

    window = best_window("speculative", (), c, alpha, "after-op")
    assert window == best_window.__wrapped__("speculative", (), c, alpha, "after-op")
    assert speed(window.gamma) > 0.95 * max(map(speed, range(1, 17)))
    assert f"on the virtual clock at c {c:g}, acceptance rate {alpha:.2f}" in window.how
