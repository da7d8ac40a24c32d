"""The bench: what its rows say and how runs are compared; no number of any machine."""

from __future__ import annotations

import csv
import math
from types import SimpleNamespace

import pytest

import speclib
from speclib import paths
from speclib.bench import contention, orchestration, rates, speedups
from speclib.bench.races import race
from speclib.bench.rows import COLUMNS, BenchRow, Size, median_row
from speclib.bench.run_bench import run_bench
from speclib.data.latency import Curve, Latency
from speclib.decoding.decode import decode
from speclib.errors import SpeclibError
from speclib.models.toy import Toy
from speclib.trace.metrics import Stats

TINY = Size(repeats=2, prompts=1, tokens=8, emulated=4, passes=3, operations=6)


def virtual(alpha: float, latency: Latency) -> speclib.Virtual:
    """An open virtual world, as ``decode`` takes it."""
    world = speclib.Virtual(
        {"draft": Toy(alpha), "target": Toy()}, latency, cancel="after-op"
    )
    world.pair, world.dtype = speclib.load_pair("toy"), "auto"
    return world


# -- rows ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "value, aim, most, holds",
    [
        (2.2, 2.2, False, "yes"),
        (2.1, 2.2, False, "no"),
        (1.03, 1.03, True, "yes"),
        (1.04, 1.03, True, "no"),
        (9.0, None, False, ""),
        (math.nan, 1.0, False, "no"),
        (math.nan, 1.0, True, "no"),
    ],
)
def test_a_row_holds_when_its_value_meets_its_aim(value, aim, most, holds):
    assert BenchRow("x", value, "ratio", aim, most).holds == holds


def test_a_row_of_repeats_is_their_median_with_the_range_in_its_note():
    row = median_row("x", [3.0, 1.0, 2.5], "s", "calm", aim=2.0, at_most=True)
    assert (row.value, row.holds, row.note) == (2.5, "no", "median of 3: 1 .. 3; calm")


def test_a_row_names_machine_and_load():
    shown = BenchRow("x", 1.5, "ratio", 1.25).as_dict()
    assert tuple(shown) == COLUMNS and shown["aim"] == "at least 1.25"
    assert (
        speclib.experiment.machine.name() in shown["note"] and "load " in shown["note"]
    )


# -- races -----------------------------------------------------------------------------
def answer(tokens: int, seconds: float) -> SimpleNamespace:
    """``tokens`` after a first one that took a second."""
    return SimpleNamespace(
        tokens=(1,) * tokens,
        stats=Stats(tokens=tokens + 1, first_tokens=1, seconds=seconds + 1, ttft=1.0),
    )


def test_contestants_take_turns_at_every_prompt_and_at_beginning():
    order = []

    def contestant(name):
        return lambda prompt, tokens: (
            order.append((name, prompt, tokens)) or answer(1, 1)
        )

    race({n: contestant(n) for n in "abc"}, ["p", "q"], 8, repeats=2)
    assert [x[0] for x in order] == [*"abc", *"bca", *"cab", *"abc"]
    assert [x[1] for x in order] == [*"ppp", *"qqq"] * 2 and {x[2] for x in order} == {
        8
    }


def test_a_ratio_is_of_speeds_over_all_prompts_of_a_repeat():
    fast = iter([answer(10, 2), answer(30, 2), answer(20, 1), answer(20, 1)])
    slow = iter([answer(10, 5), answer(10, 5), answer(10, 4), answer(30, 4)])
    run = race(
        {"fast": lambda *_: next(fast), "slow": lambda *_: next(slow)},
        "pq",
        8,
        repeats=2,
    )
    assert run.speeds("fast") == [40 / 4, 40 / 2] and run.speeds("slow") == [
        20 / 10,
        40 / 8,
    ]
    assert run.ratios("fast", "slow") == [5, 4]
    assert run.same_outputs("fast", "slow") == "1 of 4"


@pytest.mark.parametrize("alpha, gamma", [(0.0, 3), (1.0, 13)])
def test_the_best_window_of_sd_is_the_shortest_when_nothing_passes_the_longest_when_all_do(
    alpha, gamma
):
    """c = 5: windows 3 to 13. A step costs gamma / c + 1 and brings 1 token, or gamma + 1."""
    world = virtual(alpha, Latency.ratio(5))
    assert speedups.best_window(world, "speculative", ["x"], Size(tokens=400)) == gamma


def test_a_prediction_is_the_speed_of_the_same_run_at_that_latency():
    there, here = (
        Latency.ratio(5),
        Latency(Curve(((1, 0.3), (4, 0.5))), Curve(((1, 1), (9, 3)))),
    )
    names = {"pearl": {"gamma": 5}, "speculative": {"gamma": 3}, "autoregressive": {}}
    runs = [
        race(
            {
                name: speedups.contestant(virtual(0.9, latency), name, **settings)
                for name, settings in names.items()
            },
            ["x"],
            60,
        )
        for latency in (there, here)
    ]
    for name in names:
        assert speedups.predicted_speed(runs[0], name, here) == pytest.approx(
            runs[1].speeds(name)[0]
        )


# -- contention ------------------------------------------------------------------------
def test_durations_are_taken_at_the_tokens_they_are_given_for():
    latency = Latency(
        Curve(((1, 0.25), (16, 0.75)), 9.0), Curve(((1, 1.0), (16, 2.0)), 9.0)
    )
    alone, busy = contention.measure_latencies(virtual(0.9, latency), TINY)
    for measured in (alone, busy):
        for role in ("draft", "target"):
            curve = getattr(latency, role)
            assert dict(getattr(measured, role).forward) == pytest.approx(
                {fed: curve(fed) for fed in (1, 2, 4, 6, 8, 10, 16)}
            )


def test_busy_means_that_the_other_device_works_too():
    """A latency that doubles while the other device runs is found doubled, and alone not."""

    class Shared:
        c = 2.0

        def seconds(self, device, op, kept, fed):
            other = {"draft": "target", "target": "draft"}[device]
            alone = {"draft": 1.0, "target": 2.0}[device]
            return alone * (2 if world._running[other] else 1)

    world = virtual(0.9, Shared())
    alone, busy = contention.measure_latencies(world, TINY)
    assert (alone.draft(4), alone.target(4), busy.target(4)) == (1, 2, 4)
    assert busy.draft(4) == 2


def test_the_target_is_spread_over_all_cores_of_its_pair():
    place = speedups.on_all_cores(speclib.load_pair("embedded/llama-7b-70b")).place
    assert (set(place.target), place.threads) == ({"core:0", "core:1"}, 2)


# -- the whole -------------------------------------------------------------------------
def toy_speedups(size):
    """The rows of a stand-in, of toys in real processes."""
    yield from speedups.race_on_pair("toy", size)


def test_every_measure_gives_rows_of_finite_numbers_and_the_file_has_them(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    measures = (
        rates.virtual_clock,
        rates.importing,
        orchestration.controller,
        orchestration.emulated,
        toy_speedups,
    )
    rows = run_bench(measures, TINY)
    assert all(math.isfinite(row.value) and row.value > 0 for row in rows)
    with open(tmp_path / "bench.csv") as file:
        stored = list(csv.DictReader(file))
    assert [r["name"] for r in stored] == [r.name for r in rows]
    assert len({r.name for r in rows}) == len(rows) and list(stored[0]) == list(COLUMNS)
    assert len(capsys.readouterr().out.splitlines()) == len(rows)


def test_a_measure_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    (tmp_path / "bench.csv").write_text("old")

    def broken(size):
        yield BenchRow("x", 1.0, "s")
        raise SpeclibError("no device")

    with pytest.raises(SpeclibError, match="no device"):
        run_bench([broken], TINY)
    assert [p.name for p in tmp_path.iterdir()] == ["bench.csv"]
    assert (tmp_path / "bench.csv").read_text() == "old"


def test_what_an_operation_costs_leaves_the_devices_own_time_out():
    """On a clock that says hours and takes milliseconds, all that is left is minus the hours."""
    world = virtual(0.9, Latency.ratio(2, target=3600.0))
    costs = orchestration.measure_overheads(world, operations=6)
    assert [c / -1000 for c in costs] == pytest.approx([5 * 1800, 3600] * 3, rel=1e-4)


@pytest.mark.slow
def test_on_real_models_every_contestant_gives_plain_decodings_output():
    size = Size(repeats=1, prompts=1, tokens=40, passes=2)
    rows = list(speedups.stand_in(size))
    assert all(math.isfinite(row.value) for row in rows)
    same = [row for row in rows if "1 of 1" in row.note]
    assert len(same) == 2 + 2 * len(speedups.PEERS)
    assert decode("def f(", pair=speedups.PAIR, max_new_tokens=2, method="pearl").tokens
