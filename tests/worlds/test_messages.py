"""Messages take time on the virtual clock; expected times are summed by hand."""

import pytest

import speclib
from speclib.data.latency import Latency, load_latency
from speclib.errors import BadValue
from speclib.methods import takes_gamma

AGREEING = speclib.pair(
    {"model": "toy", "vocab": 8}, {"model": "toy", "vocab": 8, "alpha": 1.0}
)
TOY = speclib.load_pair("toy")

# A target pass takes 0.4 s and a draft pass 0.1 s; a message takes 0.01 s to the draft
# and 0.02 s to a target.
LATENCY = Latency.ratio(4, 0.4).over_network(draft=0.01, target=0.02)


def run(method, pair=AGREEING, latency=LATENCY, cancel=None, **settings):
    with speclib.open_world("virtual", pair, latency=latency, cancel=cancel) as world:
        return speclib.decode("x", world=world, method=method, **settings)


def test_plain_decoding_pays_for_two_messages_per_token():
    trace = run("autoregressive", max_new_tokens=10).trace
    assert trace.commits[-1].end == pytest.approx(10 * (0.02 + 0.4 + 0.02))


def test_speculative_decoding_pays_for_four_messages_per_round():
    """Every draft is accepted, so a round with gamma 3 writes 4 tokens."""
    trace = run("speculative", gamma=3, max_new_tokens=12).trace
    a_round = (0.01 + 3 * 0.1 + 0.01) + (0.02 + 0.4 + 0.02)
    assert trace.commits[-1].end == pytest.approx(3 * a_round)


def test_pearl_waits_for_the_slower_model_including_its_messages():
    """Both start together; the target's 0.44 s exceed the draft's 0.42 s."""
    trace = run("pearl", gamma=4, max_new_tokens=12).trace
    rounds = len(trace.commits)
    assert trace.commits[-1].end == pytest.approx(rounds * (0.02 + 0.4 + 0.02))


def test_a_message_arrives_when_its_operation_starts_and_after_it_ends():
    for event in run("pearl", gamma=4, max_new_tokens=20).trace.operations:
        message = 0.01 if event.device == "draft" else 0.02
        assert event.ts - event.sent == pytest.approx(message)
        assert event.received - event.end == pytest.approx(message)
        assert event.message_seconds == pytest.approx(2 * message)


def test_a_stop_takes_a_message_too():
    """A cancelled draft operation of DSI runs until STOP arrives, 0.01 s later.

    The draft is free once its answer arrives, another 0.01 s later.
    """
    trace = run("dsi", pair=TOY, lookahead=3, max_new_tokens=40).trace
    stopped = [e for e in trace.operations if e.cancelled and e.device == "draft"]
    assert stopped
    starts = sorted(e.sent for e in trace.operations if e.device == "draft")
    stops = [commit.end for commit in trace.commits]
    for event in stopped:
        assert any(event.end == pytest.approx(stop + 0.01) for stop in stops)
        later = [start for start in starts if start > event.sent]
        assert not later or later[0] >= event.received - 1e-9


def test_without_message_times_a_trace_has_no_messages():
    trace = run("pearl", latency=Latency.ratio(4, 0.4), gamma=4).trace
    assert all(event.sent is event.received is None for event in trace.operations)
    assert all(event.message_seconds == 0 for event in trace.operations)


@pytest.mark.parametrize("temperature, cancel", [(0.0, "after-op"), (1.0, "immediate")])
@pytest.mark.parametrize("method", speclib.METHODS)
def test_no_method_loses_a_token_to_slow_messages(method, temperature, cancel):
    """Greedy tokens equal plain decoding's; sampled tokens equal those without delay.

    DSI's default test compares drafts with the target's choice, and other methods run
    in lock step, so no timing changes their tokens.
    """
    asked = {"method": method, "temperature": temperature, "seed": 3, "pair": TOY}
    asked |= {"gamma": 3} if takes_gamma(method) else {}
    asked |= {"lookahead": 2, "servers": 1} if method == "dsi" else {}
    slow = run(cancel=cancel, **asked)
    quick = run(cancel=cancel, latency=Latency.ratio(4, 0.4), **asked)
    assert slow.tokens == quick.tokens
    assert len(slow.tokens) == 64
    if temperature == 0:
        assert slow.tokens == run("autoregressive", pair=TOY).tokens


def test_a_what_if_can_place_its_targets_on_another_machine():
    """Each token takes a pass of 0.1 s and two messages of 0.03 s."""
    latency = Latency.ratio(5, 0.1).over_network(draft=0, target=0.03)
    trace = speclib.simulate("autoregressive", tokens=10, latency=latency)
    assert trace.trace.commits[-1].end == pytest.approx(10 * 0.16)


def test_a_server_death_in_a_what_if_is_noticed_when_its_answer_is_due():
    """A server dies at 0.3 s; answers sent before that still arrive, 0.02 s later."""
    latency = Latency.ratio(5, 0.1).over_network(draft=0, target=0.02)
    setting = {"lookahead": 2, "servers": 3, "alpha": 0.8, "latency": latency}
    healthy = speclib.simulate("dsi", **setting)
    dying = speclib.simulate("dsi", **setting, lost={"target-2": 0.3})
    assert healthy.tokens == dying.tokens
    of_dead = [e for e in dying.trace.operations if e.device == "target-2"]
    assert sum(event.lost for event in of_dead) == 1
    for event in of_dead:
        assert event.end <= 0.3 or event.lost
        assert event.received == pytest.approx(event.end + 0.02)


@pytest.mark.parametrize(
    "draft, target, gamma",
    [
        (0.0, 0.0, 4),  # c = 4
        (0.0, 0.1, 6),  # results arrive 0.2 s later: time for two drafts
        (0.05, 0.1, 5),
        (0.1, 0.1, 4),
        (0.5, 0.0, 1),  # no length makes up for so distant a draft
    ],
)
def test_the_automatic_draft_length_fills_the_time_of_the_messages(
    draft, target, gamma
):
    """PEARL never waits if gamma drafts take as long as the target's pass."""
    latency = Latency.ratio(4, 0.4).over_network(draft=draft, target=target)
    trace = run("pearl", latency=latency, gamma="auto").trace
    assert trace.meta["gamma"] == gamma


# -- files -----------------------------------------------------------------------------
HEAD = "[draft]\nforward = [[1, 0.1]]\n[target]\nforward = [[1, 0.4]]\n"


@pytest.fixture
def latency_file(tmp_path, monkeypatch):
    monkeypatch.setattr("speclib.data.latency.DATA", tmp_path)
    (tmp_path / "latency").mkdir()
    return tmp_path / "latency" / "net.toml"


def test_a_latency_file_gives_the_duration_of_a_message(latency_file):
    latency_file.write_text(HEAD + "[message]\ndraft = 0.01\ntarget = 0.02\n")
    assert load_latency("net").message == LATENCY.message
    latency_file.write_text(HEAD)
    assert load_latency("net").message.target == 0


@pytest.mark.parametrize(
    "part",
    [
        "draft = 0.01",
        "draft = -1\ntarget = 0",
        "draft = 0\ntarget = nan",
        "draft = 0\ntarget = 0\nserver = 1",
        'draft = "fast"\ntarget = 0',
    ],
)
def test_an_invalid_message_part_is_refused(latency_file, part):
    latency_file.write_text(f"{HEAD}[message]\n{part}\n")
    with pytest.raises(BadValue, match=r"\[message\] needs draft and target"):
        load_latency("net")
