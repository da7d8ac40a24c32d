"""The bench: its rows and how runs are compared, without any machine's numbers."""

from __future__ import annotations

import csv
import math
from types import SimpleNamespace
from typing import NamedTuple

import pytest

import speclib
from speclab.bench import orchestration, rates, speedups
from speclab.bench.__main__ import run_bench
from speclab.bench.bench_rows import COLUMNS, BenchRow, Size, median_row
from speclab.bench.races import race
from speclib import paths
from speclib.data.latency import Latency
from speclib.decoding.decode import decode
from speclib.errors import SpeclibError
from speclib.models.open_pair import OpenPair
from speclib.models.toy import Toy
from speclib.trace.metrics import Stats
from speclib.worlds.virtual import Virtual

TINY = Size(repeats=2, prompts=1, tokens=8, emulated=4, passes=3, operations=6)


def open_toy_world(alpha: float, latency: Latency) -> Virtual:
    """Returns an open virtual world for ``decode``."""
    models = {"draft": Toy(alpha), "target": Toy()}
    toys = OpenPair(speclib.load_pair("toy"))
    return Virtual(models, latency, cancel="after-op", opened=toys)


# -- rows ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "value, aim, at_most, holds",
    [
        (2.1, 2.2, False, "no"),
        (1.03, 1.03, True, "yes"),
        (1.04, 1.03, True, "no"),
        (9.0, None, False, ""),
        (math.nan, 1.0, True, "no"),
    ],
)
def test_a_row_holds_when_its_value_meets_its_aim(value, aim, at_most, holds):
    assert BenchRow("x", value, "ratio", aim, at_most).holds == holds


def test_a_row_has_the_median_of_its_repeats_and_their_range_in_its_note():
    row = median_row("x", [3.0, 1.0, 2.5], "s", "calm", aim=2.0, at_most=True)
    assert row.value == 2.5
    assert row.holds == "no"
    assert row.note == "median of 3: 1 .. 3; calm"


# -- races -----------------------------------------------------------------------------
def answer(tokens: int, seconds: float) -> SimpleNamespace:
    """Returns an answer of ``tokens`` tokens after a first one, which took a second."""
    stats = Stats(tokens=tokens + 1, first_tokens=1, seconds=seconds + 1, ttft=1.0)
    return SimpleNamespace(tokens=(1,) * tokens, stats=stats)


class Call(NamedTuple):
    """A call of a contestant."""

    contestant: str
    prompt: str
    tokens: int


def test_contestants_alternate_for_every_prompt_and_take_turns_at_being_first():
    calls = []

    def noting(name):
        def note_and_answer(prompt, tokens):
            calls.append(Call(name, prompt, tokens))
            return answer(1, 1)

        return note_and_answer

    race({name: noting(name) for name in "abc"}, ["p", "q"], 8, repeats=2)
    assert [call.contestant for call in calls] == [*"abc", *"bca", *"cab", *"abc"]
    assert [call.prompt for call in calls] == [*"ppp", *"qqq", *"ppp", *"qqq"]
    assert {call.tokens for call in calls} == {8}


def test_a_ratio_compares_speeds_over_all_prompts_of_a_repeat():
    fast = iter([answer(10, 2), answer(30, 2), answer(20, 1), answer(20, 1)])
    slow = iter([answer(10, 5), answer(10, 5), answer(10, 4), answer(30, 4)])
    contestants = {"fast": lambda *_: next(fast), "slow": lambda *_: next(slow)}
    finished_race = race(contestants, "pq", 8, repeats=2)
    assert finished_race.speeds("fast") == [40 / 4, 40 / 2]
    assert finished_race.speeds("slow") == [20 / 10, 40 / 8]
    assert finished_race.ratios("fast", "slow") == [5, 4]
    assert finished_race.same_outputs("fast", "slow") == "1 of 4"


# -- orchestration ---------------------------------------------------------------------
def test_an_operations_overhead_excludes_the_devices_own_time():
    """A virtual clock counts hours that do not pass, so the overhead is minus hours."""
    world = open_toy_world(0.9, Latency.ratio(2, target=3600.0))
    milliseconds = orchestration.measure_overheads(world, operations=6)
    device_seconds = [each / -1000 for each in milliseconds]
    assert device_seconds == pytest.approx([5 * 1800, 3600] * 3, rel=1e-4)


# -- all measures ----------------------------------------------------------------------
def toy_speedups(size):
    """Yields the rows of a pair of toys in real processes."""
    yield from speedups.race_on_pair("toy", size)


@pytest.mark.slow
def test_every_measure_yields_finite_numbers_which_the_file_contains(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    measures = (
        rates.virtual_clock,
        rates.importing,
        rates.virtual_batch,
        orchestration.controller,
        orchestration.emulated,
        toy_speedups,
    )
    rows = run_bench(measures, TINY)
    for row in rows:
        assert math.isfinite(row.value)
        assert row.value > 0
    names = [row.name for row in rows]
    assert len(set(names)) == len(names)

    with open(tmp_path / "bench.csv") as file:
        stored = list(csv.DictReader(file))
    assert [row["name"] for row in stored] == names
    assert list(stored[0]) == list(COLUMNS)
    assert len(capsys.readouterr().out.splitlines()) == len(rows)


def test_a_failing_measure_leaves_the_old_file_unchanged(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    file = tmp_path / "bench.csv"
    file.write_text("old")

    def broken(size):
        yield BenchRow("x", 1.0, "s")
        raise SpeclibError("no device")

    with pytest.raises(SpeclibError, match="no device"):
        run_bench([broken], TINY)
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_text() == "old"


@pytest.mark.thorough
def test_with_real_models_every_contestant_writes_plain_decodings_output():
    size = Size(repeats=1, prompts=1, tokens=40, passes=2)
    rows = list(speedups.stand_in(size))
    assert all(math.isfinite(row.value) for row in rows)
    same = [row for row in rows if "1 of 1" in row.note]
    rows_of_ours, rows_per_peer = 1, 2  # PEARL over plain; PEARL and SD over a peer
    assert len(same) == rows_of_ours + rows_per_peer * len(speedups.PEERS)
    assert decode("def f(", pair=speedups.PAIR, max_new_tokens=2, method="pearl").tokens
