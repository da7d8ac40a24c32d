"""The cost of plain decoding on several devices, compared with printed speeds."""

from __future__ import annotations

import re
import tomllib

import pytest

from speclab.papers.load_papers import load_paper
from speclab.theory.hardware import BYTES_PER_WEIGHT, load_hardware
from speclab.theory.plain_decoding import BOUNDS, PlainPass, plain_pass
from speclib.data.latency import load_latency
from speclib.errors import SpeclibError
from speclib.paths import DATA

A100 = tomllib.loads((DATA / "hardware" / "a100.toml").read_text("utf-8"))
WEIGHTS = {"Llama-2-7B": 6.74e9, "Llama-2-70B": 68.98e9}
LAYERS = {"Llama-2-7B": 32, "Llama-2-70B": 80}


def reading(weights: float) -> float:
    return weights * BYTES_PER_WEIGHT / A100["bandwidth"]


# -- arithmetic ------------------------------------------------------------------------
def test_a_pass_by_hand():
    # Of 10 s, 6 are divided, and joining takes 1: 4 + 6/2 + 1, 4 + 6/3 + 1.
    shared = PlainPass(alone=10, divided=6, joining=1)
    assert [shared.seconds(n) for n in (1, 2, 3)] == [10, 8, 7]
    assert shared.gain(3) == pytest.approx(10 / 7)


def test_a_device_that_would_only_cost_time_stays_idle():
    costly = PlainPass(alone=10, divided=4, joining=2.5)
    assert costly.seconds(2) > 10
    assert costly.fewest_of_the_best(2) == 1
    assert costly.gain(2) == 1
    assert costly.fewest_of_the_best(8) == 8  # 6 + 4/8 + 2.5 is less than 10


def test_all_computation_is_divided_but_nothing_on_a_shared_bus():
    gains = {}
    for bound in BOUNDS:
        gains[bound] = plain_pass(bound, 10, 6, layers=5, join=0).gain(4)
    assert gains == pytest.approx(
        {"bandwidth": 10 / 5.5, "compute": 4, "shared memory": 1}
    )


def test_reading_is_never_longer_than_the_pass():
    assert plain_pass("bandwidth", 1.0, 3.0, layers=1, join=0).gain(2) == 2


@pytest.mark.parametrize(
    "change, words",
    [
        ({"bound": "luck"}, "bandwidth, compute, shared memory"),
        ({"alone": 0.0}, "give a pass above 0"),
        ({"join": -1.0}, "at least 0"),
    ],
)
def test_impossible_arguments_are_named(change, words):
    right = {"bound": "compute", "alone": 1.0, "reading": 1.0, "layers": 1, "join": 0.0}
    with pytest.raises(SpeclibError, match=words):
        plain_pass(**(right | change))


# -- printed speeds --------------------------------------------------------------------
@pytest.mark.parametrize("model", ["Llama-2-7B", "Llama-2-70B"])
def test_the_model_gives_printed_speeds_of_tensor_parallelism_within_3_percent(model):
    """For gpt-fast's table, the first number is given and the others are predicted.

    The joining time was fitted to Llama-2-7B's three numbers. Llama-2-70B's were not
    used.
    """
    (first, first_speed), *others = A100["printed"][model]
    read = reading(WEIGHTS[model])
    joining = LAYERS[model] * A100["join"]
    alone = 1 / first_speed
    if first > 1:
        alone += read * (1 - 1 / first) - joining

    shared = plain_pass("bandwidth", alone, read, LAYERS[model], A100["join"])
    for devices, speed in others:
        assert 1 / shared.seconds(devices) == pytest.approx(speed, rel=0.03)


@pytest.mark.parametrize("model, weights", [("L3-70B", 70.55e9), ("Q2-72B", 72.71e9)])
def test_easyspecs_times_match_the_model_on_two_gpus_but_not_on_eight(model, weights):
    """In EasySpec's Table 1, two GPUs are within 3 %, four and eight far slower."""
    table = load_paper("easyspec").table("table-1")
    (row,) = [label for label in table.row_labels if model in label]
    speeds = {}
    for column in table.column_labels:
        gpus = int(re.search(r"\d+", column)[0])
        speeds[gpus] = table.printed(row, column)

    shared = plain_pass("bandwidth", 1 / speeds[1], reading(weights), 80, A100["join"])

    assert 1 / shared.seconds(2) == pytest.approx(speeds[2], rel=0.03)
    assert 1 / shared.seconds(8) > 1.5 * speeds[8]


# -- files -----------------------------------------------------------------------------
def test_pearls_devices_and_layers_match_its_appendix_and_table_10():
    hardware = load_hardware("pearl/llama2-7-70")
    assert (hardware.draft, hardware.target) == (1, 3)
    assert hardware.devices(drafts=True) == 4
    assert hardware.devices(drafts=False) == 3
    assert load_hardware("pearl/codellama-7-34").devices(drafts=True) == 3

    table_10 = load_paper("pearl").table("table-10")
    layers = {row: table_10.printed(row, "Layers") for row in table_10.row_labels}
    for name in ("codellama-7-34", "codellama-7-70", "deepseek-1.3-33", "llama31-8-70"):
        path = DATA / "latency" / "pearl" / f"{name}.toml"
        target = tomllib.loads(path.read_text("utf-8"))["target"]
        assert load_hardware(f"pearl/{name}").layers == layers[target["model"]]


def test_every_papers_latency_files_have_known_and_plausible_hardware():
    """Files measured here on a GPU, and files from engines, state it themselves."""
    for path in DATA.glob("latency/*/*.toml"):
        name = path.relative_to(DATA / "latency").with_suffix("").as_posix()
        hardware = load_hardware(name)
        if hardware is None or hardware.alone is not None:
            engines = ("ssd/", "nanopearl/", "specdecode-bench/", "amusd/")
            assert name.startswith(("easyspec/", "dsi/c-", "h200/", *engines))
            continue
        alone = load_latency(name).target(1)
        assert 0 < hardware.reading < alone  # memory bandwidth bounds the pass
        assert 1 < hardware.plain_pass(alone).gain(4) < 4


def test_each_target_server_has_its_own_devices():
    hardware = load_hardware("dsi/vicuna-13b-alpaca")
    assert hardware.devices(drafts=True, servers=7) == 8


def test_a_draft_on_a_cpu_does_not_count_as_a_device():
    assert load_hardware("duodecoding/llama2-7b").devices(drafts=True) == 1
