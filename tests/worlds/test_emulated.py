"""Emulated devices are real processes whose operations are timed by a latency file."""

from __future__ import annotations

from multiprocessing import Pipe

import pytest
from helpers.announced import HandClock

import speclib
from speclib.core.sampling import Coins, Sampler
from speclib.core.text import Text, TextSender
from speclib.data.latency import Curve, Latency
from speclib.models.toy import Toy
from speclib.operations.operation import DecodingRun
from speclib.operations.score import Score
from speclib.trace.events import Trace
from speclib.worlds import performer
from speclib.worlds.processes import Processes

TOY = speclib.load_pair("toy")
QUICK = Latency(Curve(((1, 0.004),), 0.0), Curve(((1, 0.012),), 0.0), "quick")


@pytest.fixture(scope="module")
def emulated():
    with Processes(TOY, emulate=QUICK, servers=2) as world:
        yield world


def decisions(trace: Trace) -> list[tuple]:
    """Returns all operations in order of submission, without their times."""
    events = sorted(trace.events, key=lambda event: event.id)
    return [
        (
            event.device,
            event.op,
            event.round,
            event.tokens,
            event.outcome,
            event.kept,
            event.fed,
        )
        for event in events
    ]


def test_emulation_makes_the_virtual_clocks_tokens_and_decisions(case, emulated):
    for settings in case.at(3):
        how = {"pair": TOY, "method": case.name, "max_new_tokens": 16, **settings}
        ours = speclib.decode("x", world=emulated, **how)
        virtual = speclib.decode("x", world="virtual", **how)
        assert ours.tokens == virtual.tokens
        if case.name != "dsi":  # its decisions depend on the order of events
            assert decisions(ours.trace) == decisions(virtual.trace)
        assert {event.clock for event in ours.trace.events} == {"emulated"}
        assert_no_operation_is_too_short(ours.trace)


def assert_no_operation_is_too_short(trace: Trace) -> None:
    """Asserts that every operation lasts at least as long as its latency."""
    for event in trace.operations:
        if event.fed == 0 and not event.tokens:
            continue  # there was nothing left to draft
        passes = len(event.tokens) if event.op == "propose" else 1
        if event.kept == 0:
            passes -= 1  # the prefill takes no time
        seconds = {"draft": 0.004, "target": 0.012, "target-2": 0.012}[event.device]
        assert event.dur >= passes * seconds - 1e-6


class SlowToy(Toy):
    """A toy whose passes each take ``seconds`` on a clock that the test controls."""

    def __init__(self, clock: HandClock, seconds: float):
        super().__init__(alpha=None)
        self.clock = clock
        self.seconds = seconds

    def rows(self, text, last, sampler):
        self.clock.seconds += self.seconds
        return super().rows(text, last, sampler)


def answer_of_one_pass(latency: Latency, computing: float) -> performer.Reply:
    """Returns an emulated target's reply to a pass that computes for ``seconds``."""
    clock = HandClock()
    _, pipe = Pipe()
    text = TextSender().pack(Text([0, 1], 2))
    request = DecodingRun(-1, Coins(), Sampler())
    answer = performer.Performer(
        SlowToy(clock, computing),
        performer.DeviceSpec("target", "target", 0, "auto", latency),
        lambda rows: rows,
        clock=clock,
    )
    return answer(performer.Question(Score(()), text, request), pipe)


@pytest.mark.parametrize("computing, is_overrun", [(0.5, True), (0.49, False)])
def test_an_operation_takes_the_longer_of_its_latency_and_its_computation(
    computing, is_overrun
):
    reply = answer_of_one_pass(Latency.ratio(2, 0.495), computing)
    assert reply.end - reply.start == pytest.approx(max(0.495, computing))
    assert reply.overrun is is_overrun


def test_an_operation_that_outlasts_its_latency_is_an_overrun():
    impossible = Latency(Curve(((1, 1e-9),)), Curve(((1, 1e-9),)), "impossible")
    with Processes(TOY, emulate=impossible) as world:
        late = speclib.decode(
            "x", method="speculative", gamma=2, world=world, max_new_tokens=9
        )
    assert late.stats.overruns == late.stats.operations > 0


def test_a_prefill_that_a_paper_leaves_out_is_no_overrun():
    without_prefill = Curve(((1, 0.5),), prefill=0.0)
    latency = Latency(without_prefill, without_prefill)
    reply = answer_of_one_pass(latency, computing=0.2)
    assert not reply.overrun
    assert reply.end - reply.start == pytest.approx(0.2)


@pytest.mark.parametrize("method, gamma", [("pearl", 4), ("easyspec", 5)])
def test_gamma_auto_is_the_emulated_cost_ratio_except_for_easyspec(method, gamma):
    with Processes(TOY, emulate=Latency.ratio(4, 0.02)) as world:
        assert world.ratio == pytest.approx(4)
        result = speclib.decode("x", method=method, world=world, max_new_tokens=4)
    assert result.trace.meta["gamma"] == gamma
