"""EasySpec's groups of layers, and a draft pass over devices.

Expected values come from the paper or from arithmetic.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from speclab.theory.layer_schedule import Part, group_labels, schedule, total_seconds


def own_attentions(parts: tuple[Part, ...]) -> list[Part]:
    """Returns the attentions, without copies of another device's work."""
    return [part for part in parts if part.kind == "attention" and not part.copy]


@pytest.mark.parametrize(
    "lp, printed",
    [
        (1, "0 1 2 3 4 5 6 7 8 9"),
        (2, "0 1-2 3-4 5-6 7-8 9"),
        (3, "0 1-3 4-6 7-8 9"),
        (4, "0 1-3 4-7 8 9"),
        (8, "0 1-3 4-8 9"),
    ],
)
def test_groups_have_the_notation_of_table_6(lp, printed):
    """With 10 layers: layer 0 alone, min(N, 3), N each, the rest, the last alone."""
    assert " ".join(group_labels(10, lp)) == printed


def test_llamas_groups_at_lp_size_4_equal_table_6():
    assert ", ".join(group_labels(32, 4)) == (
        "0, 1-3, 4-7, 8-11, 12-15, 16-19, 20-23, 24-27, 28-30, 31"
    )


def test_each_group_pays_for_one_gather_and_a_single_device_for_none():
    """At N = 4, 8 of the 10 groups share an input."""
    without_gather = total_seconds(schedule(32, 4, 4, 2.0, 1.0, 0.0))
    with_gather = total_seconds(schedule(32, 4, 4, 2.0, 1.0, 0.5))
    assert with_gather - without_gather == 4.0

    on_one_device = schedule(32, 4, 1, 2.0, 1.0, 0.5)
    assert total_seconds(on_one_device) == 32 * 3.0
    assert not [part for part in on_one_device if part.kind == "gather"]


def test_two_devices_divide_the_attentions_of_a_group():
    """Groups 0 | 1-3 | 4-7 | 8 | 9 take 1 + 2 + 2 + 1 + 1 attentions and 10 MLPs."""
    parts = schedule(10, 4, 2, 3.0, 1.0)
    assert total_seconds(parts) == 7 * 3 + 10
    on_second = [part.layer for part in own_attentions(parts) if part.device == 1]
    assert on_second == [2, 5, 7]


@pytest.mark.parametrize("lp, devices", [(1, 1), (3, 2), (4, 4), (5, 8)])
def test_a_device_computes_one_part_at_a_time_and_attention_precedes_mlp(lp, devices):
    parts = schedule(12, lp, devices, 2.0, 1.0, 0.25)
    for device in range(devices):
        parts_of_device = [part for part in parts if part.device == device]
        for part, next_part in pairwise(parts_of_device):
            assert part.end <= next_part.start
        mlps = [part.layer for part in parts_of_device if part.kind == "mlp"]
        assert mlps == list(range(12))

    attentions = own_attentions(parts)
    assert sorted(part.layer for part in attentions) == list(range(12))
    attention_ends = {part.layer: part.end for part in attentions}
    for part in parts:
        if part.kind == "mlp":
            assert attention_ends[part.layer] <= part.start
