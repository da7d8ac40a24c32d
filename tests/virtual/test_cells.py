"""Virtual cells: the choice of windows and settings, on one core or all, in batches."""

from __future__ import annotations

import pytest
from helpers.specs import virtual_spec

from speclab.virtual import cells, settle, toy_requests
from speclib import machine
from speclib.data.latency import Latency
from speclib.methods import METHODS
from speclib.trace.metrics import Stats, total


# -- choices ---------------------------------------------------------------------------
def test_a_window_that_follows_from_c_is_close_to_c():
    for asked, gamma in (("auto", 3), ("c-2", 1), (3, 3)):  # c is 2.66
        runs = cells.run(virtual_spec(gamma=asked))
        assert runs.gamma == gamma
        assert runs.c == pytest.approx(49.34 / 18.58)


def test_the_best_window_is_the_best_of_all_windows():
    speeds = {}
    for gamma in range(1, 15):
        spec = virtual_spec("speculative", gamma, requests=6)
        first_part = cells.run(spec).stats[:3]  # windows are searched with these
        speeds[gamma] = total(first_part).decode_speed
    runs = cells.run(virtual_spec("speculative", "best", requests=6))
    assert runs.gamma == max(speeds, key=speeds.__getitem__)
    assert "fastest" in runs.how


def runs_of_known_stats(monkeypatch, stats_of_window) -> None:
    """Gives every request statistics that depend only on its window."""

    def known(cell, requests):
        stats = stats_of_window(cell.settings["gamma"])
        return [stats] * requests

    monkeypatch.setattr(settle, "run_requests", known)


def test_a_search_ends_after_two_slower_windows_in_a_row_not_after_one(monkeypatch):
    tokens = {3: 70, 4: 80, 5: 100, 6: 90, 7: 110, 8: 100, 9: 120, 10: 110, 11: 110}
    runs_of_known_stats(monkeypatch, lambda g: Stats(tokens=tokens[g], seconds=1.0))
    speeds = settle.try_windows(virtual_spec("speculative", "best"), c=5.2)
    assert speeds == tokens


def test_a_choice_counts_the_time_to_the_first_token(monkeypatch):
    """11 tokens take 10 s or 9 s, although the first run's last ten take only 2 s."""
    stats_of_window = {
        2: Stats(tokens=11, first_tokens=1, seconds=10.0, ttft=8.0),
        3: Stats(tokens=11, first_tokens=1, seconds=9.0, ttft=1.0),
    }
    runs_of_known_stats(monkeypatch, stats_of_window.__getitem__)
    asked = virtual_spec("speculative", (2, 3), seed=7)  # not yet chosen elsewhere
    assert settle.settle(asked).spec.gamma == 3


# -- runs ------------------------------------------------------------------------------
def test_all_methods_get_the_same_agreements():
    """With common random numbers, every method has the same rejected positions."""

    def rejected_positions(method, gamma):
        cell = toy_requests.ToyCell(
            METHODS[method],
            Latency.ratio(2.0),
            0.8,
            tokens=200,
            settings={"gamma": gamma},
        )
        trace = toy_requests.trace_request(cell)
        tested = []
        for event in trace.operations:
            tested += [outcome for outcome in event.outcome if outcome != "discarded"]
        return {
            position
            for position, outcome in enumerate(tested, 1)
            if outcome == "rejected"
        }

    by_pearl = rejected_positions("pearl", 4)  # no bonus, so tests count positions
    assert by_pearl == rejected_positions("pearl", 7)
    assert len(by_pearl) == pytest.approx(40, abs=25)  # 6 sigma around 200 * 0.2


def test_a_failing_cell_is_explained_and_does_not_affect_the_others(monkeypatch):
    def broken(world, gamma):
        raise ZeroDivisionError("no draft")

    monkeypatch.setitem(METHODS, "broken", broken)
    good, bad = virtual_spec(), virtual_spec("broken", 2)
    results = dict(cells.run_all([bad, good]))
    assert results == {bad: "no draft", good: cells.run(good)}


def test_many_cells_run_on_every_core_with_the_same_results_as_on_one(monkeypatch):
    specs = [virtual_spec(gamma=gamma, tokens=60) for gamma in range(1, 11)]
    on_all_cores = dict(cells.run_all(specs))
    monkeypatch.setattr(machine, "cores", lambda: 1)
    assert dict(cells.run_all(specs)) == on_all_cores


# -- several requests at a time --------------------------------------------------------
NANO_PEARL = "nanopearl/qwen2.5-1.5-72-h200"


@pytest.mark.parametrize(
    "batch, printed", [(1, 43.63), (8, 336.82), (16, 650.04), (32, 1186.05)]
)
def test_plain_decoding_of_a_batch_has_the_printed_throughput(batch, printed):
    """Throughput covers all requests, as in nano-PEARL; prefill is free here."""
    spec = virtual_spec(
        "autoregressive",
        None,
        alpha=1.0,
        latency=NANO_PEARL,
        batch=batch,
        requests=batch,
        tokens=50,
    )
    stats = total(cells.run(spec).stats)
    assert batch * stats.decode_speed == pytest.approx(printed, rel=1e-4)


def test_a_batch_is_compared_with_plain_decoding_of_the_same_batch():
    spec = virtual_spec(
        "pearl", 9, alpha=0.9, latency=NANO_PEARL, batch=4, requests=8, tokens=60
    )
    result = cells.run(spec)
    assert len(result.stats) == len(result.baseline) == 8
    alone = cells.run(spec.changed(batch=1))
    assert [s.rounds for s in result.stats] == [s.rounds for s in alone.stats]
    assert total(result.stats).seconds > total(alone.stats).seconds
    assert total(result.baseline).seconds > total(alone.baseline).seconds
