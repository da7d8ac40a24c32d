"""c is measured until round(c) is settled, kept for later runs, and never stale."""

from __future__ import annotations

import json
import random
from math import exp

import numpy as np
import pytest

import speclib
from speclib import paths
from speclib.decoding.auto_settings import gamma_at
from speclib.models import fingerprint
from speclib.models.open_pair import open_pair
from speclib.worlds import kept_ratios
from speclib.worlds.cost_ratio import (
    LOOKS,
    CostRatio,
    Trial,
    measure,
    median_rank,
    nearest_count,
)
from speclib.worlds.processes import Processes

TOY = speclib.load_pair("toy")


# -- durations that are known ----------------------------------------------------------
class Passes:
    """Passes of known durations about c and 1, in a world with a clock of its own.

    ``noise``: the standard deviation of a duration's logarithm.
    ``disturbed``: the chance of a trial in which somebody else takes half of the core
    of one of the two devices.
    """

    def __init__(self, c: float, noise: float, disturbed: float = 0.0, seed: int = 0):
        self.c, self.noise, self.disturbed = c, noise, disturbed
        self.random = random.Random(seed)
        self.passed = 0.0

    def take_trial(self) -> Trial:
        target = 0.02 * exp(self.random.gauss(0, self.noise))
        draft = 0.02 / self.c * exp(self.random.gauss(0, self.noise))
        if self.random.random() < self.disturbed:
            target, draft = self.random.choice(
                [(2 * target, draft), (target, 2 * draft)]
            )
        self.passed += target
        return Trial(target, draft)

    def measure(self) -> CostRatio:
        return measure(self.take_trial, lambda: self.passed)


@pytest.mark.parametrize("c", [1.2, 3.98, 5.4, 5.5])
@pytest.mark.parametrize("noise, disturbed", [(0.02, 0.0), (0.2, 0.0), (0.1, 0.2)])
def test_the_interval_has_the_true_ratio_in_95_of_100_measurements(c, noise, disturbed):
    """Each measurement stops when it likes. At 95 %, fewer than 370 of 400 would hold
    it with a chance of 0.6 %; the seeds are fixed."""
    holds = 0
    for seed in range(400):
        ratio = Passes(c, noise, disturbed, seed).measure()
        holds += ratio.low <= c <= ratio.high
    assert holds >= 370


@pytest.mark.parametrize("c", [1.2, 3.98, 5.2, 10.1])
def test_a_settled_draft_length_is_the_true_one_in_a_noisy_world(c):
    ratios = [Passes(c, 0.1, 0.1, seed).measure() for seed in range(100)]
    settled = [ratio for ratio in ratios if ratio.is_settled]
    right = [ratio for ratio in settled if round(ratio.value) == round(c)]
    assert len(settled) >= 50
    assert len(right) >= 0.97 * len(settled)


def test_what_many_short_looks_would_settle_wrongly_is_looked_at_longer():
    quiet, noisy = Passes(4.0, 0.01), Passes(4.0, 0.3)
    assert quiet.measure().trials < noisy.measure().trials <= LOOKS[-1]


def test_half_way_between_two_draft_lengths_it_says_so_and_is_kept_all_the_same():
    ratio = Passes(5.5, 0.02).measure()
    assert ratio.trials == LOOKS[-1]
    assert not ratio.is_settled
    assert str(ratio).startswith("c = 5.")
    assert "round(c) is not settled" in str(ratio)
    assert ratio.is_worth_keeping


def test_a_machine_so_disturbed_that_the_interval_is_wide_is_not_kept():
    ratio = Passes(5.4, 1.5).measure()
    assert ratio.low < 5 < 6 < ratio.high
    assert not ratio.is_settled
    assert not ratio.is_worth_keeping


@pytest.mark.parametrize(
    "pass_seconds, trials", [(3.0, 8), (0.7, 8), (0.6, 16), (0.32, 16), (0.3, 32)]
)
def test_slow_passes_end_the_measurement_before_a_look_that_would_end_beyond_10_s(
    pass_seconds, trials
):
    """The second look ends after 16 passes and the third after 32.

    The first one is always taken, or nothing would be known. Half of the trials say
    that c is 5 and half that it is 6, which never settles.
    """
    seconds = []

    def take_trial() -> Trial:
        c = 5 + len(seconds) % 2
        seconds.append(pass_seconds)
        return Trial(pass_seconds, pass_seconds / c)

    ratio = measure(take_trial, lambda: sum(seconds))
    assert not ratio.is_settled
    assert len(seconds) == trials


@pytest.mark.parametrize("count", [*LOOKS, 9, 100])
@pytest.mark.parametrize("may_miss", [0.05, 0.05 / 6])
def test_the_ranks_are_those_of_the_binomial_distribution(count, may_miss):
    """scipy's own: as many are left out as the chance allows, and not one more."""
    from scipy.stats import binom

    left_out = median_rank(count, may_miss)
    allowed = [k for k in range(count // 2) if 2 * binom.cdf(k, count, 0.5) <= may_miss]
    assert left_out == max(allowed, default=0)


# -- what is kept ----------------------------------------------------------------------
@pytest.fixture
def quiet_machine(monkeypatch) -> None:
    """A machine that nobody else uses, whoever does."""
    monkeypatch.setattr(kept_ratios, "busyness", lambda: 0.5)


@pytest.fixture
def measurements(monkeypatch, own_cache, quiet_machine) -> list[CostRatio]:
    """An empty cache, and worlds that "measure" these ratios one after the other."""
    ratios = [CostRatio(c, c - 0.1, c + 0.1, 8, 0.05) for c in (4.2, 7.2, 9.2)]
    taken: list[CostRatio] = []

    def take_next(world) -> CostRatio:
        taken.append(ratios[len(taken)])
        return taken[-1]

    monkeypatch.setattr(Processes, "_measure_cost_ratio", take_next)
    return taken


def ratio_in_a_new_world(pair=TOY, **settings) -> float:
    with Processes(pair, **settings) as world:
        return world.ratio


def test_a_second_world_goes_by_the_ratio_that_the_first_one_measured(measurements):
    assert [ratio_in_a_new_world() for _ in range(3)] == [4.2, 4.2, 4.2]
    assert len(measurements) == 1


def test_whatever_order_methods_run_in_they_use_one_gamma(measurements):
    gammas = set()
    for method in ("pearl", "speculative"):
        result = speclib.decode("x", pair=TOY, method=method, max_new_tokens=4)
        gammas.add(result.trace.meta["gamma"])
        assert result.cost_ratio == measurements[0]
        assert result.trace.meta["cost_ratio"]["high"] == 4.3
    assert gammas == {4}


def test_float32_is_what_auto_means_and_another_dtype_is_measured_anew(measurements):
    assert ratio_in_a_new_world() == ratio_in_a_new_world(dtype="float32") == 4.2
    assert ratio_in_a_new_world(dtype="float64") == 7.2


def key(pair=TOY, dtype="auto", servers=1) -> str | None:
    return kept_ratios.key_of(open_pair(pair), dtype, servers)


def test_another_place_model_number_of_servers_or_machine_has_another_key(monkeypatch):
    another_place = TOY.place.model_copy(update={"target": ("core:1",)})
    another_draft = TOY.draft.model_copy(update={"alpha": 0.5})
    keys = [
        key(),
        key(servers=2),
        key(dtype="float64"),
        key(TOY.model_copy(update={"place": another_place})),
        key(TOY.model_copy(update={"draft": another_draft})),
    ]
    monkeypatch.setattr(kept_ratios, "environment", lambda: (("cpu", "another"),))
    keys.append(key())
    monkeypatch.undo()
    monkeypatch.setattr(fingerprint, "of_code", lambda: "another")
    keys.append(key())
    assert None not in keys
    assert len(set(keys)) == len(keys)


def test_a_pair_s_name_and_latency_file_are_not_what_its_passes_depend_on():
    renamed = TOY.model_copy(update={"name": "mine", "latency": None, "about": "?"})
    assert key(renamed) == key()


def test_weights_that_changed_under_the_same_name_have_another_key(tmp_path):
    def pair():
        return speclib.pair(target=str(tmp_path), draft=str(tmp_path))

    (tmp_path / "model.safetensors").write_bytes(b"one")
    before = fingerprint.of_weights(pair().target)
    (tmp_path / "model.safetensors").write_bytes(b"three")
    assert before != fingerprint.of_weights(pair().target)


def test_embedded_weights_are_told_by_their_committed_checksums(monkeypatch, tmp_path):
    spec = speclib.load_pair("embedded/llama-7b-70b").target
    before = fingerprint.of_weights(spec)
    monkeypatch.setattr(fingerprint, "CHECKSUMS", tmp_path / "SHA256SUMS")
    (tmp_path / "SHA256SUMS").write_text("abc  target/model.safetensors\n")
    assert before != fingerprint.of_weights(spec)


def kept_file():
    (file,) = (paths.CACHE / "cost_ratios").iterdir()
    return file


def cut_short(file) -> None:
    file.write_text(file.read_text()[:20])


def falsify(file) -> None:
    file.write_text(file.read_text().replace("4.2", "5.2"))


def forget_a_field(file) -> None:
    stored = json.loads(file.read_text())
    del stored["low"]
    file.write_text(json.dumps(stored))


@pytest.mark.parametrize("damage", [cut_short, falsify, forget_a_field])
def test_a_damaged_file_is_measured_anew_and_replaced(measurements, damage):
    ratio_in_a_new_world()
    damage(kept_file())
    assert ratio_in_a_new_world() == ratio_in_a_new_world() == 7.2


def test_who_asks_for_it_measures_anew_and_keeps_that(measurements):
    assert ratio_in_a_new_world() == 4.2
    assert ratio_in_a_new_world(remeasure=True) == ratio_in_a_new_world() == 7.2


def test_of_two_processes_at_once_the_second_takes_over_what_the_first_kept(own_cache):
    first, second = (CostRatio(c, c, c, 8, 0.05) for c in (4.2, 7.2))

    def measure_while_another_finishes() -> CostRatio:
        kept_ratios.save("key", first)
        return second

    assert kept_ratios.load_or_measure("key", measure_while_another_finishes) == first


def test_what_is_measured_on_a_busy_machine_is_used_and_not_kept(
    measurements, monkeypatch
):
    """Three processes for each core."""
    monkeypatch.setattr(kept_ratios, "busyness", lambda: 3.0)
    assert [ratio_in_a_new_world() for _ in range(2)] == [4.2, 7.2]


def test_what_is_too_uncertain_is_used_and_not_kept(
    monkeypatch, own_cache, quiet_machine
):
    vague = CostRatio(5.4, 3.0, 9.0, 256, 0.05)
    monkeypatch.setattr(Processes, "_measure_cost_ratio", lambda world: vague)
    result = speclib.decode("x", pair=TOY, method="pearl", max_new_tokens=4)
    assert result.trace.meta["gamma"] == 5
    assert "not settled" in str(result.cost_ratio)
    assert not (paths.CACHE / "cost_ratios").exists()


def test_a_disk_that_takes_nothing_does_not_stop_a_run(measurements, monkeypatch):
    monkeypatch.setattr(paths, "CACHE", paths.CACHE / "file" / "below")
    paths.CACHE.parents[0].write_text("no folder")
    assert ratio_in_a_new_world() == 4.2


def test_a_clock_with_given_durations_knows_c(own_cache):
    for world in ("virtual", "emulated"):
        result = speclib.decode("x", pair=TOY, world=world, max_new_tokens=4)
        assert result.cost_ratio == CostRatio.known(result.cost_ratio.value)
        assert "cost_ratio" not in result.trace.meta
    assert str(CostRatio.known(5.0)) == "c = 5"


def test_a_draft_length_that_was_given_needs_no_c(measurements):
    result = speclib.decode("x", pair=TOY, gamma=3, max_new_tokens=4)
    assert result.cost_ratio is None
    assert not measurements


@pytest.mark.parametrize("c", [0.2, 0.5, 1.5, 2.5, 3.5, 4.5, 2.4999, 2.5001, 7.0])
def test_the_draft_length_is_c_rounded_as_numbers_are_and_halves_to_the_even(c):
    """As in IEEE 754, in Python's round and numpy's; never below 1."""
    assert nearest_count(c) == max(1, int(np.rint(c)))
    assert nearest_count(c) == gamma_at("auto", c)
