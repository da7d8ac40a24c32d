"""Cells that are run in parts: request by request, until a time, and once more."""

from __future__ import annotations

import time

import pytest
from helpers.specs import emulated_spec, measured_spec, virtual_spec

from speclab.experiment import cache
from speclab.experiment.engines import emulated, measured
from speclab.experiment.engines.measured_cell import MeasuredCell
from speclab.experiment.limits import Limits
from speclab.experiment.run_cells import (
    CellsFailed,
    Runner,
    is_complete,
    run_all,
    stored,
)
from speclab.progress import Progress

LATER = 1000.0  # seconds


@pytest.fixture
def runner():
    with Progress("cells", show=False) as bar, Runner(bar) as runner:
        yield runner


@pytest.fixture
def spec(request, latencies_of_their_own):
    return {"emulated": emulated_spec, "measured": measured_spec}[request.param]()


both_kinds = pytest.mark.parametrize("spec", ["emulated", "measured"], indirect=True)


# -- request by request ----------------------------------------------------------------
@both_kinds
def test_a_cell_has_a_result_from_its_first_request_on(runner, spec):
    assert stored(spec) is None
    runner.run([spec], Limits(requests=1))
    assert len(stored(spec).stats) == 1
    assert not is_complete(spec)
    first = stored(spec).stats[0]

    runner.run([spec])
    assert len(stored(spec).stats) == spec.requests
    assert stored(spec).stats[0] == first  # it was not run again
    assert is_complete(spec)


def test_how_many_requests_are_asked_for_does_not_name_the_cell(runner):
    spec = measured_spec()
    runner.run([spec.changed(requests=2)])
    assert len(stored(spec).stats) == 2
    assert len(stored(spec.changed(requests=1)).stats) == 1


def test_a_search_is_made_once_whatever_asks_for_its_answer(runner, monkeypatch):
    spec = virtual_spec(gamma="best")
    assert stored(spec) is None
    runner.run([spec])
    searched = stored(spec)
    assert searched.facts["searched"]

    def never(*_, **__):
        raise AssertionError("searched again")

    monkeypatch.setattr("speclab.experiment.engines.settle.try_windows", never)
    assert stored(spec) == searched
    assert run_all([spec])[spec].gamma == searched.gamma


# -- until a time ----------------------------------------------------------------------
@pytest.mark.parametrize("make", [virtual_spec, measured_spec])
def test_after_the_deadline_nothing_is_begun(runner, make):
    spec = make()
    runner.run([spec], Limits(deadline=time.monotonic() - 1))
    assert stored(spec) is None
    assert not runner.errors
    runner.run([spec], Limits(deadline=time.monotonic() + LATER))
    assert is_complete(spec)


def test_workers_of_a_pair_stay_from_call_to_call(runner, monkeypatch):
    spec = measured_spec()
    runner.run([spec], Limits(requests=1))
    assert not is_complete(spec)

    def never(*_, **__):
        raise AssertionError("workers started again")

    monkeypatch.setattr(measured, "Processes", never)
    runner.run([spec, measured_spec(gamma=3)])
    assert is_complete(spec)


def test_a_cell_that_failed_is_not_tried_again_in_the_same_run(runner, monkeypatch):
    attempts = []

    def broken(*_, **__):
        attempts.append(1)
        raise OSError("no room")

    monkeypatch.setattr(measured, "Processes", broken)
    spec = measured_spec()
    runner.run([spec])
    runner.run([spec])
    assert len(attempts) == 1
    assert "no room" in str(runner.errors[spec])


# -- once more -------------------------------------------------------------------------
def change_rows(key: str, changes: dict[int, dict]) -> None:
    """Changes stored requests of a cell, as if another day had been different."""
    cell = cache.read(key)
    rows = [row | changes.get(number, {}) for number, row in enumerate(cell.lines)]
    cache.write(key, cell.header, rows)


def key_of(spec) -> str:
    engine = {"emulated": emulated, "measured": measured}[spec.kind]
    return engine.key_of(spec) if spec.kind == "emulated" else MeasuredCell(spec).key


@pytest.mark.slow
@both_kinds
def test_a_disturbed_request_is_run_again_and_the_quietest_run_stays(runner, spec):
    runner.run([spec])
    quiet = stored(spec).stats
    calm, busy = {"others": 0.0}, {"others": 1.0}
    change_rows(key_of(spec), {0: calm, 1: busy, 2: calm})
    assert stored(spec).facts["others"][1] == 1.0

    runner.repeat_disturbed([spec])
    row = cache.read(key_of(spec)).lines[1]
    assert row["tries"] >= 2
    assert row["others"] < 1.0
    again = stored(spec)
    assert again.stats[1] != quiet[1]  # another run of the same request
    assert again.stats[0] == quiet[0]
    assert again.stats[1].tokens == quiet[1].tokens


@pytest.mark.slow
@both_kinds
def test_a_request_is_not_run_more_often_than_three_times(runner, spec):
    runner.run([spec])
    calm, always_busy = {"others": 0.0}, {"others": 1.0, "tries": 3}
    change_rows(key_of(spec), {0: always_busy, 1: calm, 2: calm})
    before = cache.read(key_of(spec)).lines
    runner.repeat_disturbed([spec])
    assert cache.read(key_of(spec)).lines == before


# -- what fails ------------------------------------------------------------------------
def test_the_results_of_all_others_come_with_the_error():
    good, bad = virtual_spec(), virtual_spec(latency="nowhere")
    with pytest.raises(CellsFailed, match="nowhere") as failed:
        run_all([good, bad])
    assert set(failed.value.results) == {good}


# -- the same cell, asked for with more and with fewer requests ------------------------
def test_a_repeat_for_fewer_requests_keeps_those_beyond(runner):
    spec = measured_spec(requests=3)
    runner.run([spec])
    before = cache.read(key_of(spec)).lines
    change_rows(key_of(spec), {number: {"others": 0.0} for number in range(3)})
    change_rows(key_of(spec), {0: {"others": 1.0}})
    runner.repeat_disturbed([spec.changed(requests=1)])
    after = cache.read(key_of(spec)).lines
    assert after[0]["tries"] > 1
    assert len(after) == 3
    assert after[2]["stats"] == before[2]["stats"]


def test_a_search_is_stored_before_the_first_prompt_is_done(runner, monkeypatch):
    spec = measured_spec("speculative", "best")
    measure_prompt = measured.Measurement._measure_prompt

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(measured.Measurement, "_measure_prompt", interrupted)
    with pytest.raises(KeyboardInterrupt):
        runner.run([spec])
    found = MeasuredCell(spec).header.gamma

    def never(*_, **__):
        raise AssertionError("searched again")

    monkeypatch.setattr(measured.Measurement, "_measure_prompt", measure_prompt)
    monkeypatch.setattr(measured.measured_cells, "windows_near_c", never)
    runner.run([spec])
    assert stored(spec).gamma == found
