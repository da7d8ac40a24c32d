"""Virtual cells: cached, resolved, resumed when interrupted, on one core or on all."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
from helpers.specs import virtual_spec

from speclab.experiment.cells import toy_requests as virtual_cells
from speclab.experiment.engines import settle
from speclab.experiment.engines.virtual_cell import VirtualCell
from speclab.experiment.limits import Limits
from speclab.experiment.run_cells import (
    CellsFailed,
    Runner,
    is_complete,
    is_finished,
    run_all,
    stored,
)
from speclab.progress import Progress
from speclib import machine
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.trace.metrics import Stats, total


# -- cached ---------------------------------------------------------------------------
def test_a_second_run_computes_nothing(computed):
    specs = [
        virtual_spec(),
        virtual_spec("speculative", 5),
        virtual_spec("autoregressive", None),
    ]
    first = run_all(specs)
    assert len(computed) == 4  # two methods, plain decoding at alpha 0.9 and 1
    again = run_all(specs)
    assert len(computed) == 4
    for spec in specs:
        assert again[spec].cached
        assert again[spec].stats == first[spec].stats
        assert again[spec].baseline == first[spec].baseline


def test_cells_asked_for_twice_or_under_another_name_run_once(computed):
    results = run_all(
        [virtual_spec(gamma="auto"), virtual_spec(), virtual_spec(gamma="auto")]
    )
    assert [cell for cell in computed if cell.method == "pearl"] == [("pearl", 3)]
    assert {result.gamma for result in results.values()} == {3}
    for result in results.values():
        assert result.c == pytest.approx(49.34 / 18.58)


# -- resolved -------------------------------------------------------------------------
def test_the_best_window_is_the_best_of_all_windows():
    speeds = {}
    for gamma in range(1, 15):
        spec = virtual_spec("speculative", gamma, requests=6)
        first_part = run_all([spec])[spec].stats[:3]  # by which windows are searched
        speeds[gamma] = total(first_part).decode_speed

    spec = virtual_spec("speculative", "best", requests=6)
    result = run_all([spec])[spec]
    assert result.gamma == max(speeds, key=speeds.__getitem__)
    assert result.facts["searched"][str(result.gamma)] == speeds[result.gamma]


def test_a_choice_takes_the_fastest_of_all_tokens():
    speeds = {}
    for gamma in (1, 3, 9):
        spec = virtual_spec("speculative", gamma)
        speeds[gamma] = total(run_all([spec])[spec].stats).decode_speed_e2e

    spec = virtual_spec("speculative", (1, 3, 9))
    result = run_all([spec])[spec]
    assert result.gamma == max(speeds, key=speeds.__getitem__)
    assert result.facts["of"] == 3


def cells_of_known_stats(monkeypatch, stats_of_window) -> None:
    """Every cell that is tried has these statistics, by its window."""

    def known(cell, requests):
        return SimpleNamespace(stats=[stats_of_window(cell.spec.gamma)])

    monkeypatch.setattr(VirtualCell, "load_or_run", known)


def test_a_search_goes_on_past_single_slower_windows_and_ends_at_two_in_a_row(
    monkeypatch,
):
    tokens = {3: 70, 4: 80, 5: 100, 6: 90, 7: 110, 8: 100, 9: 120, 10: 110, 11: 110}
    cells_of_known_stats(monkeypatch, lambda g: Stats(tokens=tokens[g], seconds=1.0))
    speeds = settle.try_windows(virtual_spec("speculative", "best"), c=5.2)
    assert speeds == tokens


def test_a_choice_counts_the_time_to_the_first_token(monkeypatch):
    """11 tokens in 10 s and in 9 s, though the first's last ten take only 2 s."""
    stats_of_window = {
        2: Stats(tokens=11, first_tokens=1, seconds=10.0, ttft=8.0),
        3: Stats(tokens=11, first_tokens=1, seconds=9.0, ttft=1.0),
    }
    cells_of_known_stats(monkeypatch, stats_of_window.get)
    assert settle.settle_alone(virtual_spec("speculative", (2, 3)), c=5.0)[0].gamma == 3


def test_methods_meet_the_same_agreements():
    """Common random numbers: whatever the method, the same positions are rejected."""

    def rejected_positions(method, gamma):
        cell = virtual_cells.ToyCell(
            METHODS[method],
            SimpleNamespace(c=2.0, seconds=lambda *_: 1.0),
            0.8,
            tokens=200,
            settings={"gamma": gamma},
        )
        trace = virtual_cells.trace_request(cell)
        tested = []
        for event in trace.operations:
            tested += [outcome for outcome in event.outcome if outcome != "discarded"]
        return {
            position
            for position, outcome in enumerate(tested, 1)
            if outcome == "rejected"
        }

    by_pearl = rejected_positions("pearl", 4)  # no bonus: its tests count positions
    assert by_pearl == rejected_positions("pearl", 7)
    assert len(by_pearl) == pytest.approx(40, abs=25)  # 6 sigma around 200 * 0.2


def test_a_cell_that_was_run_in_parts_is_the_one_that_was_run_at_once(cells_folder):
    spec = virtual_spec(requests=5)
    with Progress("cells") as bar, Runner(bar) as runner:
        runner.run([spec], Limits(requests=1))
    first_part = stored(spec)
    assert len(first_part.stats) == len(first_part.baseline) == 2  # 0.4 of 5
    assert not is_complete(spec)
    assert is_finished(spec, requests=1)
    assert not is_finished(spec, requests=2)

    in_parts = run_all([spec])[spec]
    shutil.rmtree(cells_folder)
    at_once = run_all([spec])[spec]
    assert in_parts.stats == at_once.stats
    assert in_parts.baseline == at_once.baseline
    assert in_parts.stats[:2] == first_part.stats
    assert len(in_parts.stats) == 5


def test_a_cell_whose_baseline_has_come_further_is_compared_on_what_both_have():
    further, spec = virtual_spec(requests=5), virtual_spec(gamma=2, requests=5)
    run_all([further])  # with all of plain decoding, which both share
    with Progress("cells") as bar, Runner(bar) as runner:
        runner.run([spec], Limits(requests=1))
    result = stored(spec)
    assert len(result.stats) == len(result.baseline) == 2


# -- interruptions and failures -------------------------------------------------------
def test_an_interrupted_run_keeps_finished_cells_and_resumes(computed, monkeypatch):
    specs = [virtual_spec(gamma=gamma) for gamma in (2, 3, 4, 5)]
    run_requests = virtual_cells.run_requests

    def interrupted_at_the_third(cell, requests, **first):
        if cell.settings.get("gamma") == 4:
            raise KeyboardInterrupt
        return run_requests(cell, requests, **first)

    with monkeypatch.context() as patch:
        patch.setattr(virtual_cells, "run_requests", interrupted_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            run_all(specs)
    computed.clear()
    run_all(specs)
    assert [cell for cell in computed if cell.method == "pearl"] == [
        ("pearl", 4),
        ("pearl", 5),
    ]


def test_a_failing_cell_leaves_the_others_and_is_named(monkeypatch):
    def broken(world, gamma):
        raise ZeroDivisionError("no draft")

    monkeypatch.setitem(METHODS, "broken", broken)
    good, bad = virtual_spec(), virtual_spec("broken", 2)
    says = r"(?s)1 of 2 cells.*broken\(gamma=2\).*no draft"
    with pytest.raises(CellsFailed, match=says) as failed:
        run_all([bad, good])
    assert set(failed.value.results) == {good}
    assert set(failed.value.errors) == {bad}
    assert isinstance(failed.value, SpeclibError)


def test_many_cells_run_on_every_core_and_agree_with_one(monkeypatch, cells_folder):
    specs = [virtual_spec(gamma=gamma, tokens=60) for gamma in range(1, 11)]
    on_all_cores = run_all(specs)
    files = list(cells_folder.glob("*.jsonl"))
    assert len(files) == 11  # in this cache, plain decoding once

    monkeypatch.setattr(machine, "cores", lambda: 1)
    shutil.rmtree(cells_folder)
    on_one_core = run_all(specs)
    for spec in specs:
        assert on_one_core[spec].stats == on_all_cores[spec].stats


# -- several requests at a time --------------------------------------------------------
NANO_PEARL = "nanopearl/qwen2.5-1.5-72-h200"


@pytest.mark.parametrize(
    "batch, printed", [(1, 43.63), (8, 336.82), (16, 650.04), (32, 1186.05)]
)
def test_plain_decoding_of_a_batch_has_the_printed_throughput(batch, printed):
    """Tokens per second of all requests, as nano-PEARL prints them; a text's first pass
    is free here."""
    spec = virtual_spec(
        "autoregressive",
        None,
        alpha=1.0,
        latency=NANO_PEARL,
        batch=batch,
        requests=batch,
        tokens=50,
    )
    stats = total(run_all([spec])[spec].stats)
    assert batch * stats.decode_speed == pytest.approx(printed, rel=1e-4)


def test_a_batch_is_compared_with_plain_decoding_of_the_same_batch():
    spec = virtual_spec(
        "pearl", 9, alpha=0.9, latency=NANO_PEARL, batch=4, requests=8, tokens=60
    )
    result = run_all([spec])[spec]
    assert len(result.stats) == len(result.baseline) == 8
    alone = run_all([spec.changed(batch=1)])[spec.changed(batch=1)]
    assert [s.rounds for s in result.stats] == [s.rounds for s in alone.stats]
    assert total(result.stats).seconds > total(alone.stats).seconds
    assert total(result.baseline).seconds > total(alone.baseline).seconds
