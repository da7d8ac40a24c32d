"""Replays: a trace's own decisions and durations, with nothing in between."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import speclib
from speclib import replay
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Curve, Latency
from speclib.errors import SpeclibError
from speclib.methods import METHODS, about
from speclib.models.toy import Random, Toy
from speclib.trace.events import LOOKUP, Trace
from speclib.worlds.processes import Processes
from speclib.worlds.virtual import Virtual

EXACT = Latency(
    Curve(((1, 0.25), (3, 0.5)), 1.0), Curve(((1, 1.5), (9, 3.5)), 4.0)
)  # dyadic


class Noisy(Latency):
    """Random durations: no two operations alike."""

    def __init__(self, seed: int):
        super().__init__(**vars(Latency.ratio(3)))
        self.draw = random.Random(seed)

    def seconds(self, device, op, kept, fed) -> float:
        return self.draw.expovariate(1.0)


def toys(alpha: float = 0.8) -> dict:
    return {"draft": Toy(alpha, context=512), "target": Toy(context=512)}


def named(trace: Trace, case) -> Trace:
    return replace(trace, meta={**trace.meta, "method": case.name})


# -- virtual ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "sampler", [Sampler(), Sampler(1.0)], ids=["greedy", "sampled"]
)
def test_the_replay_of_a_virtual_trace_is_that_trace(case, decode, sampler):
    for settings in case.at(1, 3, 6):
        for limit, eos in ((1, ()), (40, ()), (40, (5, 9))):
            _, trace = decode(
                case.method,
                toys(),
                limit,
                sampler=sampler,
                latency=EXACT,
                eos=frozenset(eos),
                **settings,
            )
            trace = named(trace, case)
            assert replay(trace) == trace
            assert replay(Trace.from_json(trace.to_json())).events == trace.events


def test_a_replay_keeps_the_choices_of_the_traces_coins():
    """Its end tokens are larger than every token in the trace."""
    what = dict(method="ssd", backup="random", gamma=4, alpha=0.4, tokens=60)
    for seed in range(5):
        trace = speclib.simulate(seed=seed, **what).trace
        assert [event for event in trace.events if event.op == LOOKUP]
        assert replay(trace) == trace
        named_ends = replace(trace, meta={**trace.meta, "eos": [10**5]})
        assert replay(named_ends).events == trace.events


@pytest.mark.parametrize("name", ["pearl", "duodecoding"])
def test_a_run_that_fills_its_context_is_replayed(decode, name):
    """At the end, the run asks for drafts that do not fit and gets none."""
    models = {"draft": Toy(1.0, context=16), "target": Toy(context=16)}
    output, trace = decode(METHODS[name], models, 15, latency=EXACT, gamma=5)
    draft_sizes = [len(e.tokens) for e in trace.operations if e.is_drafting]
    assert len(output) == 15
    assert 0 in draft_sizes
    assert replay(trace, name) == trace


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds",
    [range(3), pytest.param(range(3, 5), marks=pytest.mark.thorough)],
    ids=["three seeds", "two more"],
)
def test_the_makespan_is_replayed_for_any_durations(case, decode, seeds):
    for settings in case.at(1, 3, 6):
        for seed in seeds:
            models = {"draft": Random(3, seed), "target": Random(3, seed + 50)}
            _, trace = decode(case.method, models, 25, latency=Noisy(seed), **settings)
            again = replay(trace, case.name)
            assert again.makespan == pytest.approx(trace.makespan, rel=1e-12)
            committed = [commit.tokens for commit in trace.commits]
            assert [commit.tokens for commit in again.commits] == committed


def test_with_a_latency_it_is_the_run_on_those_devices(case, decode):
    if about(case.name).depends_on_timing:
        pytest.skip("on other devices it asks for other things")
    for settings in case.at(4):
        _, slow = decode(case.method, toys(), 30, latency=Noisy(1), **settings)
        _, direct = decode(case.method, toys(), 30, latency=EXACT, **settings)
        assert replay(slow, case.name, latency=EXACT) == direct


# -- wall-clock ------------------------------------------------------------------------
SWIFT = Latency(Curve(((1, 0.004),), 0.0), Curve(((1, 0.012),), 0.0))


@pytest.fixture(scope="module")
def emulated():
    with Processes(speclib.load_pair("toy"), emulate=SWIFT) as world:
        yield world


def test_the_replay_of_an_emulated_trace_omits_only_orchestration(case, emulated):
    if about(case.name).depends_on_timing:
        pytest.skip("without its orchestration it may ask for other things")
    for settings in case.at(3):
        trace = speclib.decode(
            "x", method=case.name, world=emulated, max_new_tokens=16, **settings
        ).trace
        again = replay(trace)
        ideal = replay(trace, latency=SWIFT)  # waits may be longer, never shorter
        assert ideal.makespan - 1e-6 <= again.makespan <= trace.makespan
        assert [e.id for e in again.commits] == [e.id for e in trace.commits]
        for device in trace.devices:
            assert again.busy(device) == pytest.approx(trace.busy(device))
        assert {e.clock for e in again.events} == {"virtual"}


# -- methods that decide by time -------------------------------------------------------
def racing(world, n: int):
    """Drafts on both devices; the first to finish counts, the other is cancelled."""
    while world.going:
        asked = [
            world.draft.propose(world.text, n),
            world.draft.propose(world.text, 1),
            world.target.score(world.text),
        ]
        first = world.first(*asked)
        asked.remove(first)
        world.cancel(*asked)

        (row,) = world.wait(world.target.score(world.text))
        world.commit((int(row.argmax()),))


@pytest.mark.parametrize("cancel", ["immediate", "after-op"])
@pytest.mark.parametrize("n", [1, 9])
def test_cancelled_operations_are_cancelled_again(cancel, n, monkeypatch):
    monkeypatch.setitem(METHODS, "racing", racing)
    world = Virtual(toys(), EXACT, cancel=cancel)
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=6)
    racing(world, n)
    trace = world.end(method="racing", prompt=[0], n=n)
    assert replay(trace) == trace
    assert any(e.cancelled for e in trace.operations) == (cancel == "immediate")


def test_an_operation_that_never_finished_is_not_waited_for(monkeypatch):
    monkeypatch.setitem(METHODS, "racing", racing)
    world = Virtual(toys(), EXACT)
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=3)
    racing(world, 9)
    trace = world.end(method="racing", prompt=[0], n=9)
    lost = []
    for event in trace.events:
        if event.op == "score":
            event = event._replace(tokens=(), fed=0)
        lost.append(event)
    with pytest.raises(
        SpeclibError, match="'target', which did not finish in the trace"
    ):
        replay(replace(trace, events=lost))


def cancelling(world):
    """Cancels a draft, and waits for its device's answer."""
    drafting = world.draft.propose(world.text, 19)
    rows = world.wait(world.target.score(world.text))
    world.cancel(drafting)
    world.first(drafting)
    world.commit((int(rows[0].argmax()),))


def test_a_device_that_was_lost_before_it_could_stop_is_lost_again(monkeypatch):
    monkeypatch.setitem(METHODS, "cancelling", cancelling)
    world = Virtual(toys(), EXACT, cancel="immediate")
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=20)
    cancelling(world)
    trace = world.end(method="cancelling", prompt=[0])
    (cancelled,) = [event for event in trace.operations if event.cancelled]
    lost = cancelled._replace(
        tokens=(), outcome=(), cancelled=False, lost=True, dur=cancelled.dur + 0.5
    )
    events = [lost if event == cancelled else event for event in trace.events]

    again = replay(replace(trace, events=events))
    (drafting,) = [event for event in again.operations if event.device == "draft"]
    assert drafting.lost
    assert not drafting.cancelled
    assert drafting.end == lost.end


@pytest.mark.parametrize("device", ["target-2", "draft"])
@pytest.mark.parametrize("dies", [0.0, 0.3, 0.9])
def test_a_device_that_was_lost_is_lost_at_the_same_moment(device, dies):
    what_if = speclib.simulate(
        "dsi", c=5, alpha=0.7, servers=3, lookahead=2, lost={device: dies}
    )
    assert any(event.lost for event in what_if.trace.operations)
    assert replay(what_if.trace).events == what_if.trace.events


# -- where it leaves the trace ---------------------------------------------------------
@pytest.fixture
def pearl(decode) -> Trace:
    _, trace = decode(METHODS["pearl"], toys(), 20, gamma=3)
    meta = {
        "method": "pearl",
        "prompt": [0],
        "limit": 20,
        "eos": [],
        "gamma": 3,
        "cancel": "immediate",
        "devices": ["draft", "target"],
    }
    return replace(trace, meta=meta)


@pytest.mark.parametrize(
    "change, says",
    [
        (
            {"gamma": 2},
            "leaves the trace at operation 1: it asks for a propose by 'draft' in "
            "round 0",
        ),
        ({"method": "speculative"}, "leaves the trace at operation 0"),
        ({"limit": 99}, "the trace has nothing"),
        ({"method": "perl"}, "no method 'perl' to replay with; known: autoregressive"),
    ],
    ids=str,
)
def test_a_run_that_is_not_the_traces_is_refused(pearl, change, says):
    assert replay(pearl).makespan == pearl.makespan
    with pytest.raises(SpeclibError, match=says):
        replay(replace(pearl, meta=pearl.meta | change))


@pytest.mark.parametrize("key", ["prompt", "gamma"])
def test_an_incomplete_trace_is_refused_and_names_the_missing_key(pearl, key):
    meta = {k: v for k, v in pearl.meta.items() if k != key}
    with pytest.raises(SpeclibError, match=f"meta lacks {key}"):
        replay(replace(pearl, meta=meta))


@pytest.mark.parametrize("kind", ["propose", "score"])
def test_a_trace_with_an_operation_altered_or_missing_is_refused(pearl, kind):
    indices = []
    for index, event in enumerate(pearl.events):
        if event.op == kind and len(event.tokens) > 1:
            indices.append(index)
    last = indices[-1]
    event = pearl.events[last]
    changed = {
        "shorter": [event._replace(tokens=event.tokens[:-1])],
        "missing": [],
        "other device": [event._replace(device="elsewhere")],
        "later": [event._replace(round=event.round + 1)],
        "longer": [event._replace(tokens=event.tokens + (1,), fed=event.fed + 1)],
    }
    for replacement in changed.values():
        events = [*pearl.events[:last], *replacement, *pearl.events[last + 1 :]]
        with pytest.raises(SpeclibError, match="leaves the trace"):
            replay(replace(pearl, events=events))
