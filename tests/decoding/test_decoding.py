"""The arguments of ``decode``, and the errors for wrong ones."""

import pytest

import speclib
from speclib import SpeclibError
from speclib.data import latency


def test_streaming_yields_exactly_the_committed_tokens():
    heard = []
    result = speclib.decode("x", pair="toy", world="virtual", on_commit=heard.extend)
    assert tuple(heard) == result.tokens
    assert len(result.tokens) == 64


def test_auto_gamma_is_the_rounded_cost_ratio_of_the_latency_file():
    result = speclib.decode("x", pair="toy", world="virtual", method="pearl")
    assert result.trace.meta["gamma"] == round(49.34 / 9.20)  # PEARL, Table 10


@pytest.mark.parametrize(
    "given, settled",
    [
        ({}, (1, 6)),
        ({"servers": 2}, (3, 2)),
        ({"lookahead": 2}, (2, 3)),
        ({"lookahead": 4, "servers": 3}, (4, 3)),
    ],
)
def test_auto_chooses_a_lookahead_and_servers_that_keep_up(given, settled):
    """Timor et al., section 3.1, and PEARL's Table 10: ceil(49.34 / 9.20 / servers)."""
    pair = speclib.load_pair("toy").model_copy(update={"latency": "pearl/llama2-7-70"})
    meta = speclib.decode(
        "x", pair=pair, world="virtual", method="dsi", **given
    ).trace.meta
    assert (meta["lookahead"], meta["servers"]) == settled
    assert len(meta["devices"]) == 1 + settled[1]


@pytest.mark.parametrize("lookahead, servers", [(5, 1), (3, 2), (2, 3), (1, 3)])
def test_auto_uses_the_fewest_servers_that_keep_up(lookahead, servers):
    """That number is ceil(5 / lookahead), but at most the three that exist."""
    pair = speclib.load_pair("toy")
    with speclib.open_world("virtual", pair, servers=3) as world:
        world.latency = speclib.Latency.ratio(5.0)
        result = speclib.decode("x", world=world, method="dsi", lookahead=lookahead)
    assert result.trace.meta["servers"] == servers


def test_dsi_uses_no_more_of_an_open_worlds_servers_than_requested():
    pair = speclib.load_pair("toy")
    with speclib.open_world("virtual", pair, servers=3) as world:
        for servers in (1, 2, 3):
            trace = speclib.decode(
                "x", world=world, method="dsi", servers=servers, lookahead=1
            ).trace
            scorings = [e.device for e in trace.operations if e.is_scoring]
            assert len(set(scorings)) == servers


def test_too_few_targets_or_another_policy_are_refused_with_their_values():
    with speclib.open_world("virtual", speclib.load_pair("toy"), servers=2) as world:
        assert speclib.decode("x", world=world, method="dsi").trace.meta["servers"] == 2
        with pytest.raises(
            SpeclibError, match="servers is 5.*has 2 target devices.*servers=5"
        ):
            speclib.decode("x", world=world, method="dsi", servers=5)
        with pytest.raises(SpeclibError, match="'after-op'.*opened with 'immediate'"):
            speclib.decode("x", world=world, method="dsi", cancel="after-op")
    with pytest.raises(SpeclibError, match="servers is 0"):
        speclib.open_world("virtual", speclib.load_pair("toy"), servers=0)


@pytest.mark.parametrize(
    "other, says",
    [
        ({"pair": "embedded/once"}, "pair is 'embedded/once'.*opened for 'toy'"),
        ({"pair": "no such pair"}, "no such pair"),
        ({"dtype": "bfloat16"}, "dtype is 'bfloat16'.*opened with 'float32'"),
        ({"dtype": "flot32"}, "unknown dtype 'flot32'"),
    ],
    ids=str,
)
def test_settings_that_contradict_an_open_world_are_refused(other, says):
    with speclib.open_world("virtual", speclib.load_pair("toy")) as world:
        with pytest.raises(SpeclibError, match=says):
            speclib.decode("x", world=world, max_new_tokens=4, **other)
        for same in ({"pair": "toy"}, {"dtype": "float32"}, {"dtype": "auto"}, {}):
            result = speclib.decode("x", world=world, max_new_tokens=4, **same)
            assert result.trace.meta["pair"] == "toy"


def test_two_different_pairs_with_one_name_are_told_apart():
    toy = speclib.load_pair("toy")
    other = toy.model_copy(
        update={"draft": toy.draft.model_copy(update={"alpha": 0.1})}
    )
    with (
        speclib.open_world("virtual", toy) as world,
        pytest.raises(SpeclibError, match="opened for 'toy', a different pair"),
    ):
        speclib.decode("x", world=world, pair=other)


@pytest.mark.parametrize("method", ["lookahead", "prompt_lookup", "rest"])
@pytest.mark.parametrize(
    "idle",
    [{"alpha": 0.5}, {"doubt": 0.5}, {"fuzzy": 0.5}],
    ids=str,
)
def test_a_drafts_settings_are_refused_for_a_method_without_a_draft(method, idle):
    (name,) = idle
    with pytest.raises(SpeclibError, match="no draft model: leave out alpha"):
        speclib.simulate(method, tokens=8, **idle)
    assert speclib.simulate(method, tokens=8).tokens
    _, speculative, _ = speclib.compare(method, tokens=8, **idle)  # others use it
    assert speculative.trace.meta[name]


def test_eagle_refuses_a_draft_that_is_not_a_head():
    with pytest.raises(SpeclibError, match="'eagle' drafts with a head.*head = true"):
        speclib.decode(
            "x", pair="embedded/once", world="virtual", method="eagle", max_new_tokens=4
        )


def test_a_world_uses_the_given_durations():
    """A target pass of 2 s writes one token, so four tokens take 8 s."""
    pair = speclib.load_pair("toy")
    durations = latency.Latency.ratio(4.0, 2.0)
    with speclib.open_world("virtual", pair, latency=durations) as world:
        run = speclib.decode(
            "toy", world=world, method="autoregressive", max_new_tokens=4
        )
    assert run.trace.makespan == pytest.approx(8.0)
