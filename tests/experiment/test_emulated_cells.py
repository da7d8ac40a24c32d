"""Emulated cells: the virtual cell's decisions on real processes, cached, resumed."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from helpers.specs import emulated_spec

from speclab.experiment import cache_keys
from speclab.experiment.cells import emulated_request as emulated_cells
from speclab.experiment.engines import emulated, virtual, virtual_cell
from speclab.experiment.engines.emulated import REPLAYS
from speclab.experiment.run_cells import CellsFailed, example_trace, run_all
from speclab.experiment.spec import CellResult
from speclib import machine
from speclib.trace.events import Event, Trace
from speclib.trace.metrics import total

pytestmark = pytest.mark.usefixtures("latencies_of_their_own")

# What depends on the clock; the rest of a request's statistics the method decides.
TIMES = {
    "seconds",
    "with_tail_seconds",
    "ttft",
    "draft_seconds",
    "target_seconds",
    "overruns",
    "step_seconds",
    "step_busy",
    "step_draft",
    "step_target",
    "step_verify",
}


def counts(result: CellResult) -> list[dict[str, Any]]:
    """What was counted of each request, without its times."""
    all_counts = []
    for stats in result.stats:
        values = vars(stats).items()
        all_counts.append({name: value for name, value in values if name not in TIMES})
    return all_counts


def decisions(trace: Trace) -> list[tuple]:
    """What was asked and what came of it, in the order in which it was asked."""

    def by_id(event: Event) -> int:
        return event.id

    return [
        (event.op, event.round, event.tokens, event.outcome)
        for event in sorted(trace.events, key=by_id)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_emulated_cell_decides_as_the_virtual_one(temperature):
    for spec in (
        emulated_spec(temperature=temperature),
        emulated_spec("speculative", 4, alpha=0.6, temperature=temperature),
    ):
        twin = spec.changed(kind="virtual")
        results = run_all([spec, twin])
        assert counts(results[spec]) == counts(results[twin])
        trace = example_trace(results[spec])
        twin_trace = virtual.example_trace(twin, spec.tokens)
        assert decisions(trace) == decisions(twin_trace)
        assert {event.clock for event in trace.events} == {"emulated"}


def test_no_cell_is_faster_than_its_virtual_twin_and_says_by_how_much():
    spec = emulated_spec()
    twin = spec.changed(kind="virtual")
    results = run_all([spec, twin])
    seconds = total(results[spec].stats).seconds
    twin_seconds = total(results[twin].stats).seconds
    assert seconds > twin_seconds
    facts = results[spec].facts
    assert facts["over_virtual"] == pytest.approx(seconds / twin_seconds, abs=1e-4)
    assert 0 <= facts["overruns"] <= 1
    assert results[spec].machine == machine.name()
    assert results[spec].c == pytest.approx(3)


def test_methods_of_a_latency_share_one_emulated_baseline():
    plain = emulated_spec("autoregressive", None)
    pearl = emulated_spec()
    speculative = emulated_spec("speculative", 4, alpha=0.6)
    specs = [plain, pearl, speculative]
    results = run_all(specs)
    assert results[pearl].baseline == results[plain].stats
    assert results[speculative].baseline == results[plain].stats
    assert [stats.tokens for stats in results[plain].stats] == [24, 24, 24]
    again = run_all(specs)
    for spec in specs:
        assert again[spec].cached
        assert again[spec].stats == results[spec].stats


def test_the_best_window_is_that_of_the_virtual_search():
    spec = emulated_spec("speculative", "best", requests=1)
    twin = spec.changed(kind="virtual", requests=REPLAYS)
    results = run_all([spec, twin])
    assert results[spec].gamma == results[twin].gamma
    assert results[spec].facts["searched"] == results[twin].facts["searched"]


def test_operations_too_fast_to_emulate_are_overruns():
    spec = emulated_spec(latency="impossible", requests=1)
    result = run_all([spec])[spec]
    # Of plain decoding's 24 passes only the prefill takes no time. PEARL's share is
    # smaller: where the text ends, it has operations that draft nothing, in no time.
    assert result.stats[0].overruns > 0.9 * result.stats[0].operations
    assert result.facts["overruns"] == 23 / 24


def test_an_interrupted_cell_goes_on_at_its_next_request(monkeypatch):
    requests = []  # of PEARL, each time that one is begun
    baseline_has_begun = threading.Event()
    trace_request = emulated_cells.trace_request

    def interrupted_once(cell, request, on_commit):
        if cell.method.__name__ == "pearl":
            requests.append(request)
            if len(requests) == 2:
                baseline_has_begun.wait(30)
                raise KeyboardInterrupt
        elif request == 1:
            baseline_has_begun.set()
        return trace_request(cell, request, on_commit)

    monkeypatch.setattr(emulated_cells, "trace_request", interrupted_once)
    spec = emulated_spec()
    with pytest.raises(KeyboardInterrupt):
        run_all([spec])
    assert requests == [0, 1]
    result = run_all([spec])[spec]
    assert requests == [0, 1, 1, 2]
    assert len(result.stats) == len(result.baseline) == 3


def test_a_cell_that_fails_leaves_the_others(monkeypatch):
    trace_request = emulated_cells.trace_request

    def broken_for_speculative_decoding(cell, request, on_commit):
        if cell.method.__name__ == "speculative":
            raise ZeroDivisionError("no draft")
        return trace_request(cell, request, on_commit)

    monkeypatch.setattr(
        emulated_cells, "trace_request", broken_for_speculative_decoding
    )
    good, bad = emulated_spec(), emulated_spec("speculative")
    nowhere = emulated_spec(latency="nowhere")
    with pytest.raises(CellsFailed, match="2 of 3 cells") as failed:
        run_all([good, bad, nowhere])
    assert set(failed.value.results) == {good}
    assert "no draft" in str(failed.value.errors[bad])
    assert "no latency file 'nowhere'" in str(failed.value.errors[nowhere])


def test_a_cell_depends_on_processes_machine_and_latency(tmp_path, monkeypatch):
    keys = {virtual_cell.key_of(emulated_spec().changed(kind="virtual"))}
    keys.add(emulated.key_of(emulated_spec()))
    monkeypatch.setattr(machine, "environment", lambda: (("cpu", "another"),))
    keys.add(emulated.key_of(emulated_spec()))
    (tmp_path / "latency" / "quick.toml").write_text("# another\n")
    keys.add(emulated.key_of(emulated_spec()))
    assert len(keys) == 4

    modules = set(cache_keys.imported_modules(emulated.CODE))
    assert {
        "speclib.worlds.processes",
        "speclib.worlds.worker",
        "speclib.models.toy",
    } <= modules
    assert not {"speclab.experiment", "speclib.methods.speculative"} & modules
