"""What-ifs of DSI and DuoDecoding.

Counts follow the formulas, the text never changes, and lost devices cost time.
"""

from __future__ import annotations

import pytest

from speclib import Latency, SpeclibError, compare, simulate
from speclib.worlds.devices import DeviceLost


def settings(result) -> dict:
    names = ("gamma", "lookahead", "servers")
    meta = result.trace.meta
    return {name: meta[name] for name in names if name in meta}


@pytest.mark.parametrize(
    "given, servers, lookahead",
    [
        ({"servers": 3}, 3, 2),
        ({"lookahead": 2}, 3, 2),
        ({}, 5, 1),
        ({"servers": 2, "lookahead": 9}, 2, 9),
        ({"c": 10}, 7, 2),
        # 1 / (1 / 49) is 49.00000000000001 in floating point.
        ({"latency": Latency.ratio(49), "servers": 49}, 49, 1),
    ],
)
def test_omitted_settings_are_the_smallest_that_keep_up(given, servers, lookahead):
    """The formula is ceil(t_target / (lookahead * t_draft)), at most 7 (section 5)."""
    made = simulate("dsi", **{"c": 5, "tokens": 8, **given})
    assert settings(made) == {"servers": servers, "lookahead": lookahead}
    targets = [name for name in made.trace.devices if name.startswith("target")]
    expected = ["target"]
    for number in range(2, servers + 1):
        expected.append(f"target-{number}")
    assert targets == expected


def test_every_setting_writes_the_same_text_and_uncancelled_stale_work_costs_time():
    plain = simulate("autoregressive", alpha=0.6)
    seconds = {}
    for cancel in ("immediate", "after-op"):
        for servers in (1, 2, 4):
            made = simulate(
                "dsi", alpha=0.6, servers=servers, lookahead=2, cancel=cancel
            )
            assert made.tokens == plain.tokens
            assert made.trace.meta["cancel"] == cancel
            seconds[cancel, servers] = made.stats.seconds
    assert max(seconds.values()) <= plain.stats.seconds + 1e-9
    assert seconds["immediate", 4] < seconds["after-op", 4]


def test_compare_passes_each_setting_to_the_methods_that_have_it():
    asked = {"gamma": 3, "lookahead": 2, "servers": 4, "without": "pre-verify"}
    plain, speculative, dsi = compare("dsi", tokens=8, **asked)
    assert settings(plain) == {}
    assert settings(speculative) == {"gamma": 3}
    assert settings(dsi) == {"lookahead": 2, "servers": 4}

    _, _, pearl = compare("pearl", tokens=8, **asked)
    assert settings(pearl) == {"gamma": 3}
    assert pearl.trace.meta["without"] == "pre-verify"

    with pytest.raises(SpeclibError, match="gamma is 0"):
        compare("pearl", gamma=0)


def test_compare_passes_duodecoding_its_sequences_and_its_first_budget():
    asked = {"gamma": 6, "c": 6, "alpha": 0.7, "doubt": 0.6}
    results = compare("duodecoding", k=3, first=6, tokens=12, **asked)
    assert [result.trace.meta.get("k") for result in results] == [None, None, 3]
    assert len({result.tokens for result in results}) == 1
    assert sequence_counts(results[2])[:2] == [3, 3]

    _, _, dynamic = compare("duodecoding", tokens=60, **asked)
    counts = set(sequence_counts(dynamic))
    assert len(counts) > 1
    assert counts <= {1, 2, 3, 6}


def test_a_certain_draft_never_splits_its_budget_and_doubt_does_not_change_the_rate():
    what = {"alpha": 0.7, "tokens": 2000}
    sure = simulate("duodecoding", gamma=6, c=6, doubt=0.0, **what)
    unsure = simulate("duodecoding", gamma=6, c=6, doubt=0.6, **what)
    plainly_unsure = simulate("speculative", gamma=1, doubt=0.6, **what)

    assert splits(sure) == 0 < splits(unsure)
    for run in (plainly_unsure, sure):  # 0.05 is 4 standard errors for 1,200 drafts
        assert run.stats.acceptance_rate == pytest.approx(0.7, abs=0.05)


def splits(result) -> int:
    """Counts how often the budget was split among several sequences."""
    return sum(count > 1 for count in sequence_counts(result))


def sequence_counts(result) -> list[int]:
    """Returns the number of sequences in each drafting."""
    draftings = [event for event in result.trace.operations if event.is_drafting]
    return [len(drafting.sequences) for drafting in draftings]


def test_a_lost_target_costs_time_but_no_token():
    healthy = simulate("dsi", c=5, alpha=0.9, servers=3, lookahead=2)
    dying = simulate(
        "dsi", c=5, alpha=0.9, servers=3, lookahead=2, lost={"target-2": 0.3}
    )
    assert dying.tokens == healthy.tokens
    assert dying.stats.seconds > healthy.stats.seconds

    ends = [e.end for e in dying.trace.operations if e.device == "target-2"]
    assert max(ends) == pytest.approx(0.3)
    later_devices = {e.device for e in dying.trace.operations if e.ts > 0.3}
    assert later_devices == {"draft", "target", "target-3"}


def test_the_loss_of_an_idle_device_is_noticed_at_its_next_operation():
    """Four drafts of 0.02 s each give the second target its first work at 0.08 s."""
    dying = simulate("dsi", c=5, servers=2, lookahead=4, lost={"target-2": 0.05})
    (asked,) = [e for e in dying.trace.operations if e.device == "target-2"]
    assert asked.lost
    assert asked.ts == pytest.approx(0.08)
    assert asked.dur == 0
    ends = [event.end for event in dying.trace.events]
    assert ends == sorted(ends)


def test_without_a_drafter_it_is_plain_decoding_and_without_a_target_it_ends():
    plain = simulate("autoregressive")
    alone = simulate("dsi", servers=2, lost={"draft": 0.0})
    assert alone.stats.seconds == pytest.approx(plain.stats.seconds)
    with pytest.raises(DeviceLost, match="target died at 0.2 s"):
        simulate("dsi", servers=1, lost={"target": 0.2})
