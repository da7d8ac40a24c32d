"""Measured cells, on toys in real processes: shared, resumed, named when they fail."""

from __future__ import annotations

import time
from dataclasses import asdict, replace

import pytest
from helpers.specs import measured_spec

import speclib
from speclab.experiment.cells import measured_prompt as measured_cells
from speclab.experiment.engines import measured
from speclab.experiment.engines.measured_cell import (
    MeasuredCell,
    key_of,
)
from speclab.experiment.engines.measured_pair import pair_to_measure
from speclab.experiment.limits import NO_LIMITS, Limits
from speclab.experiment.run_cells import CellsFailed, example_trace, run_all
from speclab.papers import notes
from speclab.papers.notes import note_of
from speclab.papers.table_cells import TableCell
from speclab.progress import Progress
from speclib import machine
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.worlds import kept_draft_sizes
from speclib.worlds.cost_ratio import CostRatio
from speclib.worlds.draft_size import Shape
from speclib.worlds.processes import Processes

TOKENS = measured_spec().tokens  # of a request; warming up takes fewer


def test_measured_cells_share_prompts_workers_and_baseline(monkeypatch):
    plain = measured_spec("autoregressive", None)
    pearl = measured_spec()
    speculative = measured_spec("speculative", "best")
    specs = [plain, pearl, speculative]
    results = run_all(specs)
    for result in results.values():
        assert len(result.stats) == 3
        assert result.machine == machine.name()
        assert result.baseline == results[plain].stats
    assert results[pearl].facts["differs"] == [None] * 3  # plain decoding's tokens
    assert set(results[pearl].facts["contention"]) == {"draft", "target"}
    best = results[speculative]
    assert str(best.gamma) in best.facts["searched"]
    assert example_trace(results[pearl]).meta["gamma"] == 2
    assert results[pearl].pieces

    def never(*_, **__):
        raise AssertionError("workers started for cells that are done")

    monkeypatch.setattr(measured, "Processes", never)
    again = run_all(specs)
    for spec in specs:
        assert again[spec].cached
        assert again[spec].stats == results[spec].stats
        assert again[spec].pieces == results[spec].pieces


def test_cells_of_later_runs_go_by_the_c_that_was_stored(monkeypatch):
    """Whichever cell is measured first: both ask for "auto" and get one window."""
    c_of_each_measurement = iter([2.2, 6.2])

    def measure(world) -> CostRatio:
        c = next(c_of_each_measurement)
        return CostRatio(c, c - 0.1, c + 0.1, trials=8)

    monkeypatch.setattr(machine, "load", lambda: 0.5)  # who is busy keeps nothing
    monkeypatch.setattr(Processes, "_measure_cost_ratio", measure)
    gammas = []
    for method in ("pearl", "speculative"):
        spec = measured_spec(method, "auto", requests=1)
        result = run_all([spec])[spec]
        gammas.append(result.gamma)
        cell = TableCell("", "", "measured", spec, "speedup")
        assert "c = 2.2 (95 %: 2.1 .. 2.3)" in note_of(cell, result)
        assert result.facts["cost_ratio"]["trials"] == 8
    assert gammas == [2, 2]


def test_the_note_of_a_measured_cell_says_where_c_does_not_settle_its_window():
    spec = measured_spec("pearl", "auto", requests=1)
    result = run_all([spec])[spec]
    result.facts["cost_ratio"] = asdict(CostRatio(5.4, 4.9, 5.8, trials=256))
    cell = TableCell("", "", "measured", spec, "speedup")
    note = note_of(cell, result)
    assert "c = 5.4 (95 %: 4.9 .. 5.8), round(c) is not settled" in note


FITTED = "embedded/codellama-7b-34b"


@pytest.fixture
def fitting(monkeypatch, own_cache) -> None:
    """A quiet machine that has chosen no draft yet, and on which c follows from it."""
    monkeypatch.delenv("SPECLIB_FITTED", raising=False)
    monkeypatch.setattr(kept_draft_sizes, "_decided", {})
    monkeypatch.setattr(machine, "load", lambda: 0.5)

    def measure(world, *limits: float) -> CostRatio:
        c = 2.1 * Shape(6, 640, 10, 1728).cost / Shape(*world.pair.draft.shape).cost
        return CostRatio(c, c - 0.01, c + 0.01, trials=64)

    monkeypatch.setattr(Processes, "_measure_cost_ratio", measure)


@pytest.mark.slow
def test_cells_of_a_fitted_pair_are_measured_and_kept_with_the_draft_chosen_here(
    fitting,
):
    spec = measured_spec(pair=FITTED, task="humaneval", requests=1)
    key_with_the_shape_of_the_file = key_of(spec)
    result = run_all([spec])[spec]
    assert key_of(spec) != key_with_the_shape_of_the_file

    shape = pair_to_measure(FITTED, "auto").draft.shape
    note = note_of(TableCell("", "", "measured", spec, "speedup"), result)
    assert f"draft of {shape[0]} layers, ffn {shape[3]}, for c 2.66" in note
    assert run_all([spec])[spec].cached


@pytest.mark.slow
def test_cells_of_a_busy_machine_have_the_file_s_draft_and_say_so(fitting, monkeypatch):
    monkeypatch.setattr(machine, "load", lambda: 3.0)
    spec = measured_spec(pair=FITTED, task="humaneval", requests=1)
    result = run_all([spec])[spec]
    assert result.c == pytest.approx(2.1)
    note = note_of(TableCell("", "", "measured", spec, "speedup"), result)
    assert "too busy to choose its size" in note


def test_the_note_of_a_measured_cell_says_what_auto_came_to():
    settings = (("lookahead", "auto"), ("servers", 1))
    spec = measured_spec("dsi", None, requests=1, settings=settings)
    result = run_all([spec])[spec]
    lookahead = example_trace(result).meta["lookahead"]
    cell = TableCell("", "", "measured", spec, "speedup")
    assert f"lookahead auto: {lookahead}, servers 1" in note_of(cell, result)


def test_the_note_of_a_measured_cell_of_rest_says_what_it_looked_up(monkeypatch):
    spec = measured_spec("rest", None, requests=1)
    result = run_all([spec])[spec]
    cell = TableCell("", "", "measured", spec, "speedup")
    words = "datastore: tasks of ours, put together like the prompts"
    assert words not in note_of(cell, result)  # toys find their own text

    def pair_of_models(name):
        return speclib.pair("zoo/target", "zoo/draft-good", **datastore)

    monkeypatch.setattr(notes, "load_pair", pair_of_models)
    datastore = {}
    assert words in note_of(cell, result)
    datastore = {"datastore": "my/texts"}
    assert words not in note_of(cell, result)


def test_cells_of_one_method_and_window_share_its_run(monkeypatch):
    decoded = []
    decode_prompt = measured_cells.decode_prompt

    def decode_and_note(world, prompt, setting, conditions, request):
        if conditions.tokens == TOKENS:
            decoded.append((setting.method, request))
        return decode_prompt(world, prompt, setting, conditions, request)

    monkeypatch.setattr(measured_cells, "decode_prompt", decode_and_note)
    long, short = measured_spec(requests=3), measured_spec(requests=2)
    results = run_all([short, long])
    assert sorted(decoded) == [
        ("autoregressive", 0),
        ("autoregressive", 1),
        ("autoregressive", 2),
        ("pearl", 0),
        ("pearl", 1),
        ("pearl", 2),
    ]
    assert results[short].stats == results[long].stats[:2]


def test_an_interrupted_measurement_goes_on_at_its_next_prompt(monkeypatch):
    prompts = []  # by number, each time that a method other than plain decoding has it
    decode_prompt = measured_cells.decode_prompt

    def interrupted_once(world, prompt, setting, conditions, request):
        if conditions.tokens == TOKENS and setting.method != "autoregressive":
            prompts.append(request)
            if len(prompts) == 4:  # the second method of the second prompt
                raise KeyboardInterrupt
        return decode_prompt(world, prompt, setting, conditions, request)

    monkeypatch.setattr(measured_cells, "decode_prompt", interrupted_once)
    specs = [measured_spec(gamma=2), measured_spec("speculative", 2)]
    with pytest.raises(KeyboardInterrupt):
        run_all(specs)
    assert prompts == [0, 0, 1, 1]
    run_all(specs)
    assert prompts == [0, 0, 1, 1] + [1, 1, 2, 2]


def test_a_measured_method_that_fails_leaves_the_others(monkeypatch):
    def broken(world, gamma):
        raise ZeroDivisionError("no draft")

    broken.__module__ = "speclib.methods.pearl"
    monkeypatch.setitem(METHODS, "broken", broken)
    good, bad = measured_spec(), measured_spec("broken", 2)
    with pytest.raises(CellsFailed, match="measured broken") as failed:
        run_all([good, bad])
    assert len(failed.value.results[good].stats) == 3


def test_cells_that_are_done_survive_a_pair_that_cannot_start(monkeypatch):
    done, new = measured_spec(), measured_spec(gamma=3)
    run_all([done])

    def broken(*_, **__):
        raise SpeclibError("no such device")

    monkeypatch.setattr(measured, "Processes", broken)
    with pytest.raises(CellsFailed, match="1 of 2 cells") as failed:
        run_all([done, new])
    assert set(failed.value.results) == {done}


def test_an_unknown_pair_or_task_is_named():
    with pytest.raises(CellsFailed, match="no pair 'nowhere'"):
        run_all([measured_spec(pair="nowhere")])
    with pytest.raises(CellsFailed, match="unknown task 'sudoku'"):
        run_all([measured_spec(task="sudoku")])


def test_without_torch_a_measured_cell_says_what_to_install(monkeypatch):
    def missing(*_, **__):
        raise ModuleNotFoundError("No module named 'torch'")

    monkeypatch.setattr(measured, "Processes", missing)
    says = r"No module named 'torch'.*\.\[models\]"
    with pytest.raises(CellsFailed, match=says):
        run_all([measured_spec()])


@pytest.mark.thorough
def test_bfloat16_cells_run_beside_plain_decoding_of_the_same_dtype():
    if not machine.computes("bfloat16", ("cpu",)):
        pytest.skip("no bfloat16 instructions")
    spec = measured_spec(
        pair="embedded/llama-7b-70b",
        task="humaneval",
        dtype="bfloat16",
        requests=1,
        tokens=8,
    )
    result = run_all([spec])[spec]
    assert len(result.facts["agree"]) == result.stats[0].tokens == 8
    for gap, differs in zip(result.facts["gap"], result.facts["differs"], strict=True):
        assert (gap is None) == (differs is None)


def test_a_prompt_that_is_repeated_is_given_up_when_the_time_is_over():
    """What it had stays. With time, it is run once more."""
    spec = measured_spec()
    run_all([spec])
    cell = MeasuredCell(spec)
    cell.requests[1] = replace(cell.requests[1], others=0.9, tries=1)
    cell.save()

    for limits, tries in ((Limits(end=time.monotonic()), 1), (NO_LIMITS, 2)):
        with Progress("cells", show=False) as bar:
            assert not measured.run_disturbed_again([spec], bar, limits, 2)
        assert MeasuredCell(spec).requests[1].tries == tries
