"""Requests in lock-step write what each writes alone, and share passes."""

from __future__ import annotations

import threading

import pytest

import speclib
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Curve, Latency
from speclib.errors import BadValue
from speclib.methods import METHODS, about, parameters
from speclib.models.toy import BOS, Toy
from speclib.operations.operation import Pass
from speclib.worlds.batch_world import Seat
from speclib.worlds.devices import DeviceFailed
from speclib.worlds.turns import Turn
from speclib.worlds.virtual_batch import VirtualBatch

# A target pass takes 10 s plus 1 s per token fed; a draft pass takes 2 s.
LATENCY = Latency(
    draft=Curve(((1, 2.0),)),
    target=Curve(((1, 10.0),), per_token=1.0),
)
COUNTS = ("rounds", "drafted", "accepted", "rejected", "draft_runs", "target_runs")
IN_STEP = [name for name in METHODS if "servers" not in parameters(name)]


def run(method, requests, seats, latency=LATENCY, alpha=1.0, tokens=8, **settings):
    """Runs toys with acceptance rate ``alpha``; returns traces and the final time."""
    steps = VirtualBatch(seats, latency)
    waiting = iter(range(requests))
    traces = {}

    def serve(seat: Seat) -> None:
        for number in waiting:
            toys = {"draft": Toy(alpha, seed=number), "target": Toy(seed=number)}
            steps.give_models(seat, toys)
            seat.begin((BOS,), sampler=Sampler(), coins=Coins(number), limit=tokens)
            METHODS[method](seat, **settings)
            traces[number] = seat.end()

    steps.run(serve)
    return [traces[number] for number in range(requests)], steps.now


# -- what a step costs -----------------------------------------------------------------
def test_a_plain_decoding_pass_is_fed_one_token_of_each_request():
    _, seconds = run("autoregressive", 4, 4)
    assert seconds == 8 * (10 + 4)


def test_a_round_of_speculative_decoding_feeds_all_windows_in_one_pass():
    """Two rounds of four tokens each: three drafts, then a pass for both requests."""
    _, seconds = run("speculative", 2, 2, gamma=3)
    assert seconds == 2 * (3 * 2 + (10 + 2 * 4))


def test_a_step_takes_as_long_as_its_slower_device():
    """PEARL drafts while the target scores one token of each request, later three.

    A last pass, over two tokens of each, tests the last of eight tokens.
    """
    traces, seconds = run("pearl", 2, 2, gamma=3)
    first, *later = [event.dur for event in traces[0].events if event.op == "score"]
    assert first == 10 + 2 * 1
    assert later == [10 + 2 * 3, 10 + 2 * 3, 10 + 2 * 2]
    assert seconds == 12 + 16 + 16 + 14
    _, of_slow_drafts = run("pearl", 2, 2, gamma=12, tokens=13)
    assert of_slow_drafts == 12 * 2 + max(12 * 2, 10 + 2 * 12)


def test_drafts_of_several_requests_are_made_in_the_same_passes():
    """They share the first pass, the second and so on; each has its own cache."""
    costly = Curve(((1, 1.0),), per_token=0.5, per_kept=0.25, once=7.0)
    latency = Latency(draft=costly, target=Curve(((1, 1.0),)))
    two_passes = [Pass(fed=2, kept=3), Pass(fed=1, kept=5)]
    one_pass = [Pass(fed=1, kept=8)]
    seconds = latency.seconds_together("draft", [two_passes, one_pass])
    first = 1 + 0.5 * 3 + 0.25 * 11
    second = 1 + 0.5 * 1 + 0.25 * 5
    assert seconds == 7 + first + second


def test_a_request_that_joins_others_takes_at_least_its_prefill():
    latency = Latency(draft=Curve(((1, 1.0),)), target=Curve(((1, 2.0),), prefill=9.0))
    starts, goes_on = [Pass(fed=5, kept=0)], [Pass(fed=1, kept=7)]
    assert latency.seconds_together("target", [starts, starts]) == 9
    assert latency.seconds_together("target", [starts, goes_on]) == 9
    assert latency.seconds_together("target", [goes_on, goes_on]) == 2


@pytest.mark.parametrize("method", ["autoregressive", "speculative", "pearl", "ssd"])
def test_a_single_seat_has_the_times_of_a_single_request(method):
    what = dict(method=method, alpha=0.7, tokens=40, doubt=0.5)
    (of_seat,) = speclib.simulate_batch(**what, batch=1).results
    assert of_seat.stats == speclib.simulate(**what).stats


# -- outputs ---------------------------------------------------------------------------
@pytest.mark.parametrize("method", IN_STEP)
def test_each_request_does_in_lockstep_what_it_does_alone(method):
    """Every variant writes equal tokens in equal rounds, whenever requests begin."""
    for settings in about(method).variants:
        what = dict(method=method, tokens=20, **settings)
        if about(method).uses_draft:
            what |= dict(alpha=0.7, doubt=0.5)
        results = speclib.simulate_batch(**what, batch=3, requests=5).results
        assert len(results) == 5
        for number, result in enumerate(results):
            alone = speclib.simulate(**what, seed=number)
            assert result.tokens == alone.tokens
            for count in COUNTS:
                assert getattr(result.stats, count) == getattr(alone.stats, count)


def test_a_seat_takes_the_next_request_or_stays_empty():
    """Three requests of eight tokens, in two seats, take two turns of eight passes.

    The second turn serves a single request.
    """
    traces, seconds = run("autoregressive", 3, 2)
    assert seconds == 8 * (10 + 2) + 8 * (10 + 1)
    assert [trace.meta["limit"] for trace in traces] == [8, 8, 8]
    starts = [trace.events[0].ts for trace in traces]
    assert starts == [0, 0, 0]  # each on its own clock


def test_a_what_if_can_charge_for_each_token_of_a_pass():
    """Each token after the first costs a tenth of a pass: five requests cost 1.4."""
    latency = Latency.ratio(5, 0.1).lengthened(0.1)
    what = dict(batch=5, tokens=8, latency=latency)
    batch = speclib.simulate_batch("autoregressive", **what)
    assert batch.seconds == pytest.approx(8 * 0.14)


# -- bad input -------------------------------------------------------------------------
@pytest.mark.parametrize(
    "wrong, message",
    [
        (dict(batch=0), "batch is 0"),
        (dict(batch=2, requests=0), "requests is 0"),
        (dict(method="dsi", batch=2), "one at a time"),
        (dict(batch=2, lost={"draft": 1.0}), "no parameter 'lost'"),
        (dict(batch=2, latency=Latency.ratio(5).sharing(2)), "share devices"),
    ],
)
def test_unsuitable_requests_are_refused(wrong, message):
    with pytest.raises(BadValue, match=message):
        speclib.simulate_batch(**wrong)


def test_a_method_that_waits_for_the_first_of_several_is_refused():
    steps = VirtualBatch(2, LATENCY)

    def serve(seat: Seat) -> None:
        steps.give_models(seat, {"draft": Toy(0.5), "target": Toy()})
        seat.begin((BOS,), sampler=Sampler(), coins=Coins(), limit=4)
        seat.first(seat.target.score(seat.text))

    with pytest.raises(BadValue, match="one at a time"):
        steps.run(serve)


def test_a_failure_in_one_seat_ends_all_and_leaves_no_thread():
    class Failing(Toy):
        def rows(self, *_):
            raise ValueError("no rows today")

    steps = VirtualBatch(3, LATENCY)

    def serve(seat: Seat) -> None:
        target = Failing() if seat.number == 1 else Toy()
        steps.give_models(seat, {"draft": Toy(0.5), "target": target})
        seat.begin((BOS,), sampler=Sampler(), coins=Coins(), limit=50)
        METHODS["pearl"](seat, gamma=2)

    before = threading.active_count()
    with pytest.raises(DeviceFailed, match="'target' failed in score.*no rows today"):
        steps.run(serve)
    assert threading.active_count() <= before


# -- turns -----------------------------------------------------------------------------


def test_an_abandoned_turn_cleans_up():
    said = []

    def wait() -> None:
        try:
            turn.pause()
            said.append("went on")
        finally:
            said.append("cleaned up")

    turn = Turn(wait)
    turn.resume()
    turn.give_up()
    assert said == ["cleaned up"]
    assert turn.is_over
