"""decode(): what users type, and what they are told when it is wrong."""

import subprocess
import sys

import pytest

import speclib
from speclib import SpeclibError
from speclib.data import latency, pairs
from speclib.data.toml_files import read_toml
from speclib.decoding.auto_settings import request_settings
from speclib.models import toy


@pytest.mark.parametrize(
    "wrong, names",
    [
        ({"prompt": ""}, ["prompt ''", "at least one token"]),
        ({"gamma": 0}, ["gamma is 0", "1 or more"]),
        ({"gamma": -2}, ["gamma is -2"]),
        ({"gamma": 2.5}, ["gamma is 2.5"]),
        ({"gamma": "fast"}, ["'fast'", "'auto'"]),
        ({"method": "autoregressive", "gamma": 3}, ["autoregressive", "no gamma"]),
        ({"temperature": -1.0}, ["temperature is -1.0", "0 or more"]),
        ({"top_p": 0.0}, ["top_p is 0.0"]),
        ({"top_k": -1}, ["top_k is -1"]),
        ({"max_new_tokens": 0}, ["max_new_tokens is 0"]),
        ({"max_new_tokens": 1 << 15}, ["max_new_tokens=32768", "shorten"]),
        ({"method": "medusa"}, ["'medusa'", "speculative", "pearl"]),
        ({"pair": "embedded/llama-7b"}, ["llama-7b'", "embedded/llama-7b-70b"]),
        ({"pair": None}, ["no pair given"]),
        ({"windows": 3}, ["'windows'", "known: gamma, without"]),
        ({"world": "cloud"}, ["'cloud'", "virtual, emulated, processes"]),
        ({"method": "dsi", "lookahead": 0}, ["lookahead is 0", "1 or more"]),
        ({"method": "dsi", "servers": 2.5}, ["servers is 2.5", "'auto'"]),
        ({"method": "dsi", "servers": True}, ["servers is True"]),
        ({"method": "dsi", "gamma": 3}, ["dsi", "no gamma"]),
        (
            {"method": "dsi", "lookahed": 3},
            ["'lookahed'", "known: gamma, lookahead, servers, test"],
        ),
        ({"cancel": "now"}, ["cancel is 'now'", "'immediate'", "'after-op'"]),
        ({"prompt": [{"role": "user", "content": "hi"}]}, ["chat template", "str"]),
    ],
)
def test_bad_input_is_named_with_the_next_step(wrong, names):
    call = {"prompt": "x", "pair": "toy", "method": "pearl", "world": "virtual"} | wrong
    with pytest.raises(SpeclibError) as error:
        speclib.decode(call.pop("prompt"), **call)
    assert all(name in str(error.value) for name in names), str(error.value)


def test_without_takes_only_the_two_ablations():
    with pytest.raises(SpeclibError, match="'everything'.*pre-verify"):
        speclib.decode(
            "x", pair="toy", world="virtual", method="pearl", without="everything"
        )


def test_streaming_hands_over_exactly_the_committed_tokens():
    heard = []
    result = speclib.decode("x", pair="toy", world="virtual", on_commit=heard.extend)
    assert tuple(heard) == result.tokens
    assert len(result.tokens) == 64


def test_auto_gamma_is_the_rounded_cost_ratio_of_the_latency_file():
    result = speclib.decode("x", pair="toy", world="virtual", method="pearl")
    assert result.trace.meta["gamma"] == round(49.34 / 9.20)  # PEARL, Table 10


@pytest.mark.parametrize("c, gamma", [(2.4, 2), (2.6, 3), (5.36, 5), (0.2, 1)])
def test_auto_gamma_rounds_to_the_nearest(c, gamma):
    with speclib.open_world("virtual", speclib.load_pair("toy")) as world:
        world.latency = speclib.Latency.ratio(c)
        result = speclib.decode("x", world=world, method="pearl")
    assert result.trace.meta["gamma"] == gamma


@pytest.mark.parametrize(
    "given, settled",
    [
        ({}, (1, 6)),
        ({"servers": 2}, (3, 2)),
        ({"servers": 3}, (2, 3)),
        ({"lookahead": 2}, (2, 3)),
        ({"lookahead": 6}, (6, 1)),
        ({"lookahead": 4, "servers": 3}, (4, 3)),
    ],
)
def test_auto_lookahead_and_servers_are_those_that_keep_up(given, settled):
    """Timor et al., section 3.1, at PEARL's Table 10: ceil(49.34 / 9.20 / servers)."""
    pair = speclib.load_pair("toy").model_copy(update={"latency": "pearl/llama2-7-70"})
    meta = speclib.decode(
        "x", pair=pair, world="virtual", method="dsi", **given
    ).trace.meta
    assert (meta["lookahead"], meta["servers"]) == settled
    assert len(meta["devices"]) == 1 + settled[1]


@pytest.mark.parametrize(
    "target_seconds, draft_seconds, servers",
    [(0.27, 0.09, 3), (0.54, 0.09, 6), (0.28, 0.09, 4), (0.02, 0.09, 1)],
)
def test_a_ratio_that_is_whole_but_for_its_last_digit_opens_no_further_server(
    target_seconds, draft_seconds, servers
):
    """The quotients of the first two, 3 and 6, come out too large in float64."""
    requested = request_settings("dsi", "auto", {"lookahead": 1})
    assert requested.servers_at(target_seconds / draft_seconds) == servers


@pytest.mark.parametrize(
    "c, lookahead, servers", [(7, 1, 7), (100, 1, 7), (100, 20, 5)]
)
def test_auto_opens_seven_servers_at_most_as_a_node_of_eight_gpus_has_beside_a_drafter(
    c, lookahead, servers
):
    """The node is that of the DSI paper; ceil(c / lookahead) where that is less."""
    requested = request_settings("dsi", "auto", {"lookahead": lookahead})
    assert requested.servers_at(c) == servers


@pytest.mark.parametrize("lookahead, servers", [(5, 1), (3, 2), (2, 3), (1, 3)])
def test_of_an_open_worlds_servers_auto_takes_those_that_keep_up(lookahead, servers):
    """ceil(5 / lookahead), of the three that there are."""
    pair = speclib.load_pair("toy")
    with speclib.open_world("virtual", pair, servers=3) as world:
        world.latency = speclib.Latency.ratio(5.0)
        result = speclib.decode("x", world=world, method="dsi", lookahead=lookahead)
    assert result.trace.meta["servers"] == servers


def test_of_an_open_worlds_servers_dsi_uses_no_more_than_it_is_told():
    pair = speclib.load_pair("toy")
    with speclib.open_world("virtual", pair, servers=3) as world:
        for servers in (1, 2, 3):
            trace = speclib.decode(
                "x", world=world, method="dsi", servers=servers, lookahead=1
            ).trace
            scorings = [e.device for e in trace.operations if e.is_scoring]
            assert len(set(scorings)) == servers


@pytest.mark.slow
@pytest.mark.parametrize("world", ["virtual", "emulated"])
def test_the_latency_file_is_read_once(monkeypatch, world):
    read = []

    def noting(folder, name, *further):
        read.append(name)
        return read_toml(folder, name, *further)

    monkeypatch.setattr(latency, "read_toml", noting)
    asked = {"method": "dsi", "servers": 1, "max_new_tokens": 4}
    speclib.decode("x", pair="toy", world=world, **asked)
    assert read == ["pearl/codellama-7-70"]


def test_an_open_world_with_too_few_targets_or_another_policy_is_refused_by_numbers():
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
def test_what_was_settled_when_a_world_was_opened_is_not_said_otherwise(other, says):
    with speclib.open_world("virtual", speclib.load_pair("toy")) as world:
        with pytest.raises(SpeclibError, match=says):
            speclib.decode("x", world=world, max_new_tokens=4, **other)
        for same in ({"pair": "toy"}, {"dtype": "float32"}, {"dtype": "auto"}, {}):
            result = speclib.decode("x", world=world, max_new_tokens=4, **same)
            assert result.trace.meta["pair"] == "toy"


def test_a_pair_of_the_same_name_that_is_another_one_is_told_apart():
    toy = speclib.load_pair("toy")
    other = toy.model_copy(
        update={"draft": toy.draft.model_copy(update={"alpha": 0.1})}
    )
    with (
        speclib.open_world("virtual", toy) as world,
        pytest.raises(SpeclibError, match="opened for 'toy', which is another"),
    ):
        speclib.decode("x", world=world, pair=other)


@pytest.mark.parametrize("method", ["lookahead", "prompt_lookup", "rest"])
@pytest.mark.parametrize(
    "idle",
    [{"alpha": 0.5}, {"doubt": 0.5}, {"fuzzy": 0.5}],
    ids=str,
)
def test_a_draft_is_not_described_to_a_method_that_has_none(method, idle):
    (name,) = idle
    with pytest.raises(SpeclibError, match="no draft model: leave out alpha"):
        speclib.simulate(method, tokens=8, **idle)
    assert speclib.simulate(method, tokens=8).tokens
    _, speculative, _ = speclib.compare(method, tokens=8, **idle)  # it is the others'
    assert speculative.trace.meta[name]


def test_eagle_is_not_run_with_a_draft_that_is_no_head():
    with pytest.raises(SpeclibError, match="'eagle' drafts with a head.*head = true"):
        speclib.decode(
            "x", pair="embedded/once", world="virtual", method="eagle", max_new_tokens=4
        )


def test_a_pair_file_with_an_unknown_key_names_file_and_key(tmp_path, monkeypatch):
    (tmp_path / "pairs").mkdir()
    odd = 'target = {model = "toy"}\ndraft = {model = "toy"}\nspeed = 3'
    (tmp_path / "pairs" / "odd.toml").write_text(odd)
    monkeypatch.setattr(pairs, "DATA", tmp_path)
    with pytest.raises(SpeclibError, match=r"odd\.toml(.|\n)*speed"):
        speclib.load_pair("odd")


def test_toys_reject_impossible_settings():
    with pytest.raises(SpeclibError, match="alpha is 1.5"):
        toy.Toy(alpha=1.5)
    with pytest.raises(SpeclibError, match="vocab is 2"):
        toy.Toy(vocab=2)


def test_importing_speclib_is_fast_and_without_torch():
    code = (
        "import time; begun = time.process_time(); import speclib; "
        "print(time.process_time() - begun); import sys; "
        "assert 'torch' not in sys.modules and 'pandas' not in sys.modules"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    # 0.5 s is the aim of `make bench`; this only catches torch.
    assert float(out.stdout) < 2.0


def test_a_world_goes_by_durations_that_it_is_given():
    """A target pass of 2 s, alone, writes a token: four tokens take 8 s."""
    pair = speclib.load_pair("toy")
    durations = latency.Latency.ratio(4.0, 2.0)
    with speclib.open_world("virtual", pair, latency=durations) as world:
        run = speclib.decode(
            "toy", world=world, method="autoregressive", max_new_tokens=4
        )
    assert run.trace.makespan == pytest.approx(8.0)
