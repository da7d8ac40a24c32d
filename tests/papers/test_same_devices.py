"""Speed-ups over the same devices: devices counted, numbers by hand, claims judged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.specs import measured_spec, virtual_spec
from helpers.tables import (
    SMALL,
    fill_with,
    lines_of_kind,
    two_measured_requests,
    verdicts_of_kind,
)

from speclab.experiment.spec import CellResult, Spec
from speclab.papers import statistics
from speclab.papers.devices import reserved_devices
from speclab.papers.ledger import DEVICE_SECONDS, KEY, OVER_SAME_DEVICES
from speclab.papers.same_devices import plain_specs, second_number
from speclab.papers.table_cells import cells_to_run
from speclab.papers.table_result import TableResult
from speclib.data.hardware import load_hardware
from speclib.data.latency import load_latency
from speclib.trace.metrics import Stats

PAIR = "embedded/codellama-7b-34b"
LATENCY = "pearl/codellama-7-34"


def counts(seconds: float, draft_runs: int = 8) -> Stats:
    """Nine tokens, of which the first comes after half a second."""
    return Stats(
        requests=1,
        tokens=9,
        first_tokens=1,
        seconds=seconds,
        ttft=0.5,
        draft_runs=draft_runs,
        target_runs=9,
    )


def made_up(spec: Spec) -> CellResult:
    """Plain decoding takes 4 s after the first token, other methods 1.6.

    On all cores plain decoding takes 3.2 s by threads, and 5 by tensors.
    """
    seconds = {"all-cores/threads": 3.7, "all-cores/tensors": 5.5}
    plain = counts(seconds.get(str(spec.pair), 4.5), draft_runs=0)
    own = plain if spec.method == "autoregressive" else counts(2.1)
    if spec.method in ("lookahead", "prompt_lookup"):
        own = replace(own, draft_runs=0)
    return two_measured_requests(spec, own, plain)


def measured(method: str, **changes: object) -> Spec:
    gamma = 3 if method in ("pearl", "speculative") else None
    return measured_spec(method, gamma, pair=PAIR, task="humaneval", **changes)


# -- devices ---------------------------------------------------------------------------
def test_a_method_with_a_draft_model_reserves_its_device_too():
    assert reserved_devices(made_up(measured("pearl"))) == 2
    assert reserved_devices(made_up(measured("autoregressive"))) == 1
    assert reserved_devices(made_up(measured("prompt_lookup"))) == 1


def test_virtual_devices_are_those_of_the_paper():
    pearl = made_up(virtual_spec("pearl"))
    assert reserved_devices(pearl) == 3  # a 34B on two GPUs, the draft on one
    plain = made_up(virtual_spec("autoregressive", None))
    assert reserved_devices(plain) == 2


def test_every_target_server_is_a_device():
    spec = virtual_spec("dsi", None, latency="dsi/vicuna-13b-alpaca")
    spec = spec.changed(settings=(("lookahead", 1), ("servers", 7)))
    assert reserved_devices(made_up(spec)) == 8


def test_device_seconds_count_waiting_devices():
    # 1.6 s after the first token, 8 tokens, two cores of which one mostly waits.
    pearl = made_up(measured("pearl"))
    assert statistics.compute(DEVICE_SECONDS, pearl) == pytest.approx(2 * 1.6 / 8)
    plain = made_up(measured("autoregressive"))
    assert statistics.compute(DEVICE_SECONDS, plain) == pytest.approx(4 / 8)


# -- measured --------------------------------------------------------------------------
def test_all_cores_of_a_pair_have_the_same_target_and_the_same_conditions():
    spec = measured("pearl", temperature=0.5)
    plain = plain_specs(spec)
    pairs = {plain_spec.pair for plain_spec in plain}
    assert pairs == {"all-cores/threads", "all-cores/tensors"}

    shared = {"task", "tokens", "requests", "temperature", "seed", "dtype"}
    for plain_spec in plain:
        assert plain_spec.method == "autoregressive"
        assert plain_spec.model_dump(include=shared) == spec.model_dump(include=shared)


def test_a_pair_whose_target_stands_on_no_other_pair_has_no_second_number():
    assert plain_specs(measured_spec()) == ()


def test_a_measured_speed_up_is_over_the_fastest_plain_decoding_on_its_cores():
    pearl = measured("pearl")
    plain = [made_up(spec) for spec in plain_specs(pearl)]
    second = second_number("speedup", made_up(pearl), plain)
    # 8 tokens in 1.6 s, over 8 in 3.2 s by threads; by tensors they take 5.
    assert second.estimate.value == pytest.approx(2.0)
    assert second.devices == 2
    assert "all-cores/threads" in second.note

    slow = [made_up(s) for s in plain_specs(pearl) if s.pair == "all-cores/tensors"]
    alone = second_number("speedup", made_up(pearl), slow)
    assert alone.estimate.value == pytest.approx(4 / 1.6)  # the other core idles
    assert second_number("speedup", made_up(pearl), []) is None


def test_a_method_on_one_core_has_its_speed_up_twice():
    lookup = made_up(measured("prompt_lookup"))
    second = second_number("speedup", lookup, [])
    assert second.estimate.value == statistics.compute("speedup", lookup)
    assert second.devices == 1


# -- virtual ---------------------------------------------------------------------------
def test_a_virtual_speed_up_is_over_the_stated_cost_of_all_its_gpus():
    pearl = made_up(virtual_spec("pearl"))
    alone = load_latency(LATENCY).target(1)
    hardware = load_hardware(LATENCY)
    on_three = alone - hardware.reading * 2 / 3 + hardware.layers * hardware.join
    second = second_number("speedup", pearl, [])
    assert second.estimate.value == pytest.approx(2.5 / (alone / on_three))
    # By compute: alone / 3, and the joining.
    by_compute = 2.5 * (alone / 3 + hardware.layers * hardware.join) / alone
    assert f"bound by compute it would be {by_compute:.3g}" in second.note


def test_over_another_method_each_is_taken_over_its_own_devices():
    spec = virtual_spec("dsi", None, latency="dsi/vicuna-13b-alpaca")
    spec = spec.changed(
        settings=(("lookahead", 1), ("servers", 7)), over=("speculative", 5)
    )
    result = made_up(spec)
    result.baseline = [counts(4.5)] * 2  # which drafts
    plain = load_hardware(spec.latency).plain_pass(load_latency(spec.latency).target(1))
    second = second_number("speedup", result, [])
    expected = 2.5 / (plain.gain(8) / plain.gain(2))
    assert second.estimate.value == pytest.approx(expected)


def test_without_known_hardware_there_is_no_second_number():
    spec = virtual_spec("pearl", latency="dsi/c-2")
    assert second_number("speedup", made_up(spec), []) is None


def test_only_speed_ups_have_one():
    assert second_number("decode_speed", made_up(virtual_spec("pearl")), []) is None


# -- rows and verdicts -----------------------------------------------------------------
PEARL_CELL = "PEARL (ours)", "CodeLlama 7&34B"


@pytest.fixture(scope="module")
def table_1(pearl) -> TableResult:
    """PEARL's Table 1 with the made-up results in all measured cells."""
    return fill_with(made_up, pearl.table("table-1"), "measured")


def test_rows_of_a_speed_up_have_keys_of_their_own_and_change_no_shown_number(table_1):
    values = {}
    for row in lines_of_kind(table_1, "measured"):
        if (row.row, row.column) == PEARL_CELL:
            values[row.metric] = row.value

    assert values["speedup"] == pytest.approx(2.5)
    assert values[OVER_SAME_DEVICES] == pytest.approx(2.0)
    assert values[DEVICE_SECONDS] == pytest.approx(0.4)
    assert len({row[:KEY] for row in table_1.lines}) == len(table_1.lines)
    assert table_1.values["measured"][PEARL_CELL] == 2.5


def test_claims_are_judged_again_over_the_same_devices_and_print_is_not(table_1):
    first = verdicts_of_kind(table_1, "measured")
    second = {row.claim: row for row in table_1.claims_over_same_devices}

    assert {row.kind for row in second.values()} == {"measured"}
    assert first["below-c"].value.startswith("2.5")
    assert second["below-c"].value.startswith("2,")  # over plain decoding at its best
    assert second["up-to-4.43-over-ar"].holds == "no"
    assert "is-table-6-llama2" not in second  # of the print alone


def test_a_claim_is_open_while_plain_decoding_on_all_cores_was_not_run(pearl):
    def fail_on_all_cores(spec: Spec) -> CellResult:
        if "all-cores" in spec.pair:
            raise RuntimeError("no")
        return made_up(spec)

    result = fill_with(fail_on_all_cores, pearl.table("table-1"), "measured")
    second = {row.claim: row for row in result.claims_over_same_devices}

    assert second["below-c"].holds == "open"
    assert "not run yet: PEARL (ours) / CodeLlama 7&34B" in second["below-c"].note
    assert result.values["measured"][PEARL_CELL] == 2.5
    assert len(result.errors) == 2  # each said once


def test_plain_decoding_beside_which_others_were_busy_does_not_count(pearl):
    def disturbed_on_one(spec: Spec) -> CellResult:
        result = made_up(spec)
        if spec.pair == "all-cores/tensors":
            result.facts["others"] = [0.9, 0.9]
        return result

    result = fill_with(disturbed_on_one, pearl.table("table-1"), "measured")

    assert (*PEARL_CELL, "measured") in result.lacks_plain
    for row in lines_of_kind(result, "measured"):
        assert (row.metric, row.row) != (OVER_SAME_DEVICES, "PEARL (ours)")


def test_cells_ask_for_plain_decoding_once_per_conditions(pearl):
    cells = cells_to_run(pearl.table("table-1"), SMALL, ("measured",))
    plain, conditions = set(), set()
    for cell in cells:
        plain.update(cell.plain_specs)
        conditions.add((cell.spec.task, cell.spec.dtype))
    assert len(plain) == 2 * len(conditions)
