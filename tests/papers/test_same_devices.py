"""Speed-ups over the same devices: counts of devices, and numbers by hand."""

from __future__ import annotations

import pytest
from helpers.specs import LATENCY, measured_spec, virtual_spec
from helpers.tables import counts

from speclab.papers.devices import reserved_devices
from speclab.papers.numbers import Number
from speclab.papers.same_devices import (
    IF_BOUND,
    measured_second_number,
    plain_gain,
    plain_specs,
    virtual_second_number,
)
from speclab.papers.statistics import number_of
from speclab.papers.table_cells import cells_to_run
from speclab.runs.rows import CellRuns
from speclab.runs.spec import Spec
from speclab.theory.hardware import load_hardware
from speclib.data.latency import load_latency

SERVERS = (("lookahead", 1), ("servers", 7))
DSI = virtual_spec("dsi", None, latency="dsi/vicuna-13b-alpaca", settings=SERVERS)


def measured(method: str, **changes: object) -> Spec:
    gamma = 3 if method == "pearl" else None
    pair = "embedded/codellama-7b-34b"
    return measured_spec(method, gamma, pair=pair, task="humaneval", **changes)


def runs_of(spec: Spec) -> CellRuns:
    """Plain decoding takes 4 s after the first half second, other methods 1.6; on all
    cores plain decoding takes 3.2 s with threads, and 5 with split tensors."""
    seconds = {"all-cores/threads": 3.7, "all-cores/tensors": 5.5}
    plain = counts(seconds.get(str(spec.pair), 4.5))
    own = plain if spec.method == "autoregressive" else counts(2.1)
    return CellRuns(spec, [own] * 2, [plain] * 2, ["task/0", "task/1"], 3, 2.9)


# -- devices ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "spec, devices",
    [
        (measured("pearl"), 2),
        (measured("autoregressive"), 1),
        (measured("prompt_lookup"), 1),
        (virtual_spec("pearl"), 3),  # a 34B on two GPUs, the draft on one
        (virtual_spec("autoregressive", None), 2),
        (DSI, 8),
    ],
)
def test_a_run_reserves_a_device_for_each_of_its_models(spec, devices):
    assert reserved_devices(spec, {}) == devices


def test_device_seconds_count_waiting_devices():
    """1.6 s after the first token, 8 tokens, two cores; one of them usually waits."""
    for method, by_hand in (("pearl", 2 * 1.6 / 8), ("autoregressive", 4 / 8)):
        number = number_of("device_seconds_per_token", runs_of(measured(method)))
        assert number.value == pytest.approx(by_hand)


# -- measured --------------------------------------------------------------------------
def test_all_cores_of_a_pair_have_the_same_target_and_the_same_conditions():
    spec = measured("pearl", temperature=0.5)
    plain = plain_specs(spec)
    assert {each.pair for each in plain} == {"all-cores/threads", "all-cores/tensors"}
    shared = {"task", "tokens", "requests", "temperature", "seed", "dtype"}
    for each in plain:
        assert each.method == "autoregressive"
        assert each.model_dump(include=shared) == spec.model_dump(include=shared)
    assert plain_specs(measured_spec()) == ()  # no other pair has the toys' places


def test_cells_ask_for_plain_decoding_once_per_set_of_conditions(pearl):
    cells = cells_to_run(pearl.table("table-1"), ("measured",))
    plain = {spec for cell in cells for spec in cell.plain_specs}
    conditions = {(cell.spec.task, cell.spec.dtype) for cell in cells}
    assert len(plain) == 2 * len(conditions)


def test_a_measured_speed_up_is_over_the_fastest_plain_decoding_on_its_cores():
    pearl = runs_of(measured("pearl"))
    by_pair = {str(spec.pair): runs_of(spec) for spec in plain_specs(pearl.spec)}
    second = measured_second_number("speedup", pearl, list(by_pair.values()))
    assert second.number.value == pytest.approx(3.2 / 1.6)
    assert second.devices == 2
    assert "all-cores/threads" in second.note

    slow = [by_pair["all-cores/tensors"]]
    alone = measured_second_number("speedup", pearl, slow)
    assert alone.number.value == pytest.approx(4 / 1.6)  # the other core idles
    assert measured_second_number("speedup", pearl, []) is None


def test_a_method_on_one_core_has_its_speed_up_twice():
    lookup = runs_of(measured("prompt_lookup"))
    second = measured_second_number("speedup", lookup, [])
    assert second.number == number_of("speedup", lookup)


# -- virtual ---------------------------------------------------------------------------
def test_a_virtual_speed_up_is_over_the_stated_cost_of_all_its_gpus():
    alone = load_latency(LATENCY).target(1)
    hardware = load_hardware(LATENCY)
    joining = hardware.layers * hardware.join
    second = virtual_second_number(virtual_spec("pearl"), Number(2.5), {})
    by_bandwidth = (alone - hardware.reading * 2 / 3 + joining) / alone
    by_compute = (alone / 3 + joining) / alone
    assert second.number.value == pytest.approx(2.5 * by_bandwidth)
    assert f"bound by compute it would be {2.5 * by_compute:.3g}" in second.note
    for stat, bound in IF_BOUND.items():
        gain = plain_gain(virtual_spec("pearl"), {}, bound)
        by_hand = by_compute if "compute" in stat else by_bandwidth
        assert gain == pytest.approx(1 / by_hand)


def test_a_ratio_of_two_methods_divides_each_by_its_own_devices():
    spec = DSI.changed(over=("speculative", 5))
    plain = load_hardware(spec.latency).plain_pass(load_latency(spec.latency).target(1))
    second = virtual_second_number(spec, Number(2.5), {})
    expected = 2.5 / (plain.gain(8) / plain.gain(2))
    assert second.number.value == pytest.approx(expected)
