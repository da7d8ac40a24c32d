"""Emulated cells make the virtual cell's decisions in real processes."""

from __future__ import annotations

from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.specs import MACHINE, emulated_spec

from speclab.measure import emulated, measurement
from speclab.measure.measure import Step, measure
from speclab.runs.rows import Rows
from speclab.runs.spec import VirtualSpec
from speclab.virtual import cells
from speclib.methods import METHODS
from speclib.trace.metrics import Stats, total

pytestmark = pytest.mark.usefixtures("rows_folder", "quick_latencies")


def measured(spec, rows, requests=3):
    assert measure([Step((spec,), requests)]) == {}
    return Rows(rows()).of(spec, MACHINE)


def counts(stats: Stats) -> dict[str, Any]:
    """Returns the statistics that do not depend on the clock."""
    timed = ("seconds", "ttft", "step_", "overruns")
    every = asdict(stats).items()
    return {name: value for name, value in every if not any(t in name for t in timed)}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_emulated_cell_decides_like_a_virtual_one_but_not_faster(rows, temperature):
    for spec in (
        emulated_spec(temperature=temperature),
        emulated_spec("speculative", 4, alpha=0.6, temperature=temperature),
    ):
        virtual = VirtualSpec(**spec.model_dump(exclude={"kind"}))
        runs, twin = measured(spec, rows), cells.run(virtual)
        assert list(map(counts, runs.stats)) == list(map(counts, twin.stats))
        assert list(map(counts, runs.baseline)) == list(map(counts, twin.baseline))
        assert total(runs.stats).seconds > total(twin.stats).seconds
        assert runs.c == pytest.approx(3)


def test_cells_with_one_latency_and_rate_share_a_baseline_which_runs_once(rows):
    specs = (emulated_spec(), emulated_spec("speculative", 4))
    steps = [Step(specs, 1), Step(specs, 2)]
    measure(steps)
    done = rows()
    assert sorted((row.prompt, row.turn, row.key.method) for row in done) == [
        *[(0, 0, "autoregressive"), (0, 1, "pearl"), (0, 2, "speculative")],
        *[(1, 0, "autoregressive"), (1, 1, "pearl"), (1, 2, "speculative")],
    ]
    measure(steps)
    assert rows() == done


def test_a_cell_is_compared_with_the_method_that_it_names(rows):
    over = emulated_spec("speculative", 4, over=("speculative", 1))
    plainly = emulated_spec("speculative", 4)
    measure([Step((over, plainly), 1)])
    of = Rows(rows()).of
    assert of(over, MACHINE).baseline != of(plainly, MACHINE).baseline
    assert of(over, MACHINE).baseline[0].drafted > 0


def test_operations_too_fast_to_emulate_are_overruns(rows):
    runs = measured(emulated_spec(latency="impossible"), rows)
    for stats, plain in zip(runs.stats, runs.baseline, strict=True):
        assert plain.overruns / plain.operations == 23 / 24  # all but the prefill
        assert stats.overruns > 0.9 * stats.operations


def test_a_failing_cell_does_not_affect_the_others(rows, monkeypatch):
    def broken(world, gamma):
        raise ZeroDivisionError("no draft")

    monkeypatch.setitem(METHODS, "broken", broken)
    good, bad = emulated_spec(), emulated_spec("broken")
    nowhere = emulated_spec(latency="nowhere")
    errors = measure([Step((good, bad, nowhere), 2)])
    assert errors.keys() == {bad, nowhere}
    assert errors[bad] == "no draft"
    assert "no latency file 'nowhere'" in errors[nowhere]
    assert len(Rows(rows()).of(good, MACHINE).labels) == 2


def test_an_interrupt_stops_everything_and_another_call_continues(rows, monkeypatch):
    trace_request = emulated.trace_request

    def interrupted(cell, request, on_commit):
        if request == 1:
            raise KeyboardInterrupt
        return trace_request(cell, request, on_commit)

    with monkeypatch.context() as patch:
        patch.setattr(emulated, "trace_request", interrupted)
        with pytest.raises(KeyboardInterrupt):
            measure([Step((emulated_spec(),), 1), Step((emulated_spec(),), 3)])
    kept = rows()
    assert len(measured(emulated_spec(), rows).labels) == 3
    assert rows()[: len(kept)] == kept


def test_no_run_begins_after_the_deadline(rows, monkeypatch):
    said: list[str] = []
    clock = SimpleNamespace(monotonic=lambda: len(said))
    monkeypatch.setattr(measurement, "time", clock)
    measure([Step((emulated_spec(),), 1)], deadline=1, say=said.append)
    assert [row.key.method for row in rows()] == ["autoregressive"]
