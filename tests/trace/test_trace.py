"""Traces: invariants of every method's run, recounted statistics, and formats."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from itertools import pairwise
from math import isnan
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speclab.traces.counts import Counts, counts_of
from speclib.core.sampling import Sampler
from speclib.data.latency import Latency
from speclib.methods import METHODS
from speclib.models.toy import Toy
from speclib.operations import OPERATIONS
from speclib.operations.operation import Operation
from speclib.operations.payload import Payload
from speclib.operations.score import Scored
from speclib.trace.events import Event, Trace
from speclib.trace.metrics import Stats, stats, total

RUNS = settings(max_examples=25)
alphas = st.sampled_from([0.0, 0.3, 0.8, 0.95, 1.0])
ratios = st.floats(0.1, 30)
gammas = st.integers(1, 8)
limits = st.integers(1, 40)
samplers = st.sampled_from([Sampler(), Sampler(1.0)])


def toys(alpha: float) -> dict[str, Toy]:
    return {"draft": Toy(alpha, context=512), "target": Toy(context=512)}


# -- invariants ------------------------------------------------------------------------
class Span(NamedTuple):
    """An operation's start and end."""

    start: float
    end: float


def lane_of(trace: Trace, device: str) -> list[Span]:
    """Returns the spans of a device's operations, in order of their starts."""
    events = [event for event in trace.operations if event.device == device]
    return sorted(Span(event.ts, event.ts + event.dur) for event in events)


def idle_seconds(lane: list[Span], makespan: float) -> float:
    """Returns the seconds before the first operation, between operations, and after."""
    idle = 0.0
    free_since = 0.0
    for span in lane:
        idle += span.start - free_since
        free_since = span.end
    return idle + makespan - free_since


@RUNS
@given(alpha=alphas, gamma=gammas, c=ratios, limit=limits, sampler=samplers)
def test_a_device_runs_one_operation_at_a_time_and_is_otherwise_idle(
    main_case, decode, alpha, gamma, c, limit, sampler
):
    for variant in main_case.at(gamma):
        _, trace = decode(
            main_case.method,
            toys(alpha),
            limit,
            latency=Latency.ratio(c),
            sampler=sampler,
            **variant,
        )
        rounding = 1e-12 * trace.makespan
        for device in trace.devices:
            lane = lane_of(trace, device)
            assert all(span.start <= span.end for span in lane)
            for earlier, later in pairwise(lane):
                assert earlier.end <= later.start + rounding

            seconds = trace.busy(device) + idle_seconds(lane, trace.makespan)
            assert abs(seconds - trace.makespan) <= 9 * rounding

        ends = [event.ts + event.dur for event in trace.events]
        for earlier, later in pairwise(ends):
            assert earlier <= later + rounding


@pytest.mark.slow
@RUNS
@given(alpha=alphas, gamma=gammas, limit=limits, sampler=samplers)
def test_statistics_equal_a_recount_of_the_events(
    main_case, decode, alpha, gamma, limit, sampler
):
    """The recount reads only the trace's JSON."""
    for variant in main_case.at(gamma):
        output, trace = decode(
            main_case.method, toys(alpha), limit, sampler=sampler, **variant
        )
        events = json.loads(trace.to_json())["events"]
        commits = [event for event in events if event["op"] == "commit"]
        with_tokens = [commit for commit in commits if commit["tokens"]]
        computed = counts_of(trace)

        committed = []
        for commit in commits:
            committed += commit["tokens"]
        assert committed == list(output)

        outcomes = Counter()
        for event in events:
            outcomes.update(event["outcome"])
        drafted = count_drafted(events)
        assert set(outcomes) <= {"accepted", "rejected", "discarded"}
        assert outcomes.total() == drafted

        # Only rounds after the first, which includes prefill.
        later = [event for event in events if event["round"] > 0]
        start, end = commits[0]["ts"], commits[-1]["ts"]
        if len(commits) > 1:
            busy = covered_seconds(later, start, end)
            assert computed.step_busy == pytest.approx(busy, abs=1e-9)

        assert computed == Counts(
            requests=1,
            tokens=limit,
            first_tokens=len(with_tokens[0]["tokens"]),
            seconds=with_tokens[-1]["ts"],
            ttft=with_tokens[0]["ts"],
            rounds=len(commits),
            drafted=drafted,
            accepted=outcomes["accepted"],
            rejected=outcomes["rejected"],
            draft_runs=count_draft_passes(events),
            target_runs=sum(event["op"] in SCORING for event in events),
            draft_seconds=seconds_of("draft", events),
            target_seconds=seconds_of("target", events),
            operations=sum(event["device"] != "controller" for event in events),
            steps=len(commits) - 1,
            step_seconds=end - start,
            step_busy=computed.step_busy,
            step_draft=seconds_of("draft", later),
            step_target=seconds_of("target", later),
            with_tail=computed.with_tail,
            with_tail_seconds=computed.with_tail_seconds,
        )


SCORING = ("score", "score_tree", "score_tree_features")


def count_drafted(events: list[dict]) -> int:
    """Counts the tokens that a draft model wrote or that were looked up."""
    drafted = 0
    for event in events:
        if event["op"] not in (*SCORING, "commit"):
            drafted += len(event["tokens"])
    return drafted


def count_draft_passes(events: list[dict]) -> int:
    """Counts draft passes.

    There is one per token of a sequence, per phrase, per token fed for several
    sequences, and per level of a tree, even if all its nodes were omitted.
    """
    passes = 0
    for event in events:
        if event["op"] == "propose":
            passes += len(event["tokens"])
        elif event["op"] == "draft_phrase":
            passes += 1
        elif event["op"] == "draft_sequences":
            passes += event["payload"]["fed"] + (1 if event["tokens"] else 0)
        elif event["op"] == "fork":
            guesses = event["payload"]["guesses"]
            levels = len(event["tokens"]) // len(guesses) if guesses else 0
            passes += levels + (1 if event["fed"] else 0)  # one pass over the window
        elif event["op"] == "draft_tree":
            passes += count_levels(event["payload"]["parents"])
        elif event["op"] == "draft_dynamic_tree":
            passes += event["payload"]["levels"]
    return passes


def count_levels(parents: list[int]) -> int:
    """Returns the largest number of nodes on a path to a node, including that node."""

    def depth(node: int) -> int:
        return 0 if node < 0 else 1 + depth(parents[node])

    return max((depth(node) for node in range(len(parents))), default=0)


def seconds_of(device: str, events: list[dict]) -> float:
    return sum(event["dur"] for event in events if event["device"] == device)


def covered_seconds(events: list[dict], start: float, end: float) -> float:
    """Returns the seconds between ``start`` and ``end`` in which any device is busy.

    Time is cut wherever an event begins or ends; between two cuts, a device is either
    busy or idle throughout.
    """
    cuts = {start, end}
    for event in events:
        for moment in (event["ts"], event["ts"] + event["dur"]):
            if start < moment < end:
                cuts.add(moment)

    covered = 0.0
    for left, right in pairwise(sorted(cuts)):
        if any(works_throughout(event, left, right) for event in events):
            covered += right - left
    return covered


def works_throughout(event: dict, left: float, right: float) -> bool:
    ends = event["ts"] + event["dur"]
    return event["dur"] > 0 and event["ts"] <= left and right <= ends


@pytest.mark.parametrize(
    "end", [{"limit": 2}, {"limit": 9, "eos": frozenset({2})}], ids=str
)
def test_a_drafted_token_beyond_the_end_is_not_counted_as_accepted(decode, end):
    """Two tokens are committed, so at most two drafts were accepted."""
    words = (1, 2, 3, 4, 5, 6, 7, 8)
    models = {"draft": Toy(1.0, words=words), "target": Toy(words=words)}
    output, trace = decode(METHODS["speculative"], models, gamma=5, **end)
    assert output == (1, 2)
    assert stats(trace).accepted <= 2


# -- replay ----------------------------------------------------------------------------
class Noisy(Latency):
    """Operations have random durations."""

    def __init__(self, seed: int):
        super().__init__(**vars(Latency.ratio(3)))
        self.dice = random.Random(seed)

    def seconds(self, device: str, op: Operation, kept: int, fed: int) -> float:
        return self.dice.expovariate(1.0)


@pytest.mark.parametrize("name, round_takes", [("pearl", max), ("speculative", sum)])
def test_a_makespan_is_the_sum_of_its_rounds(decode, name, round_takes):
    """Devices work in parallel in PEARL, and in turn in speculative decoding."""
    _, trace = decode(METHODS[name], toys(0.8), 30, latency=Noisy(7), gamma=4)
    seconds_of_round = defaultdict(list)
    for event in trace.operations:
        seconds_of_round[event.round].append(event.dur)
    expected = sum(round_takes(seconds) for seconds in seconds_of_round.values())
    assert trace.makespan == pytest.approx(expected, rel=1e-12)


# -- statistics ------------------------------------------------------------------------
def event(ts, dur, device, op, tokens=(), outcome=(), round=0) -> Event:
    """Returns a hand-made event with its operation's default payload."""
    payload = OPERATIONS[op].payload_type() if op in OPERATIONS else Payload()
    return Event(
        ts=ts,
        dur=dur,
        device=device,
        op=op,
        id=0,
        round=round,
        tokens=tuple(tokens),
        outcome=tuple(outcome),
        clock="virtual",
        payload=payload,
    )


HAND = Trace(
    [
        event(
            0, 2, "draft", "propose", (1, 2, 3), ("accepted", "rejected", "discarded")
        ),
        event(2, 4, "target", "score", (0, 1, 2, 3)),
        event(6, 0, "controller", "commit", (1, 9)),
        event(
            6, 2, "draft", "propose", (4, 5, 6), ("accepted", "accepted", "accepted")
        ),
        event(8, 4, "target", "score", (9, 4, 5, 6)),
        event(12, 0, "controller", "commit", (4, 5, 6, 7)),
    ]
)


def test_every_ratio_of_a_hand_made_trace():
    s = stats(HAND)
    expected = {
        "tokens": 6,
        "first_tokens": 2,
        "seconds": 12,
        "ttft": 6,
        "rounds": 2,
        "drafted": 6,
        "accepted": 4,
        "rejected": 1,
        "draft_runs": 6,
        "target_runs": 2,
        "draft_seconds": 4,
        "target_seconds": 8,
        "acceptance_rate": 4 / 5,
        "drafts_used": 4 / 6,
        "mat": 2,
        "run_length": 4,
        "decode_speed": 4 / 6,
        "decode_speed_e2e": 0.5,
        "tpot": 1.5,
        "tokens_per_target_run": 3,
        "device_seconds_per_token": 2,
    }
    assert {k: getattr(s, k) for k in expected} == pytest.approx(expected)


def test_a_steps_time_is_drafting_scoring_verification_and_communication():
    step = [
        event(10, 4, "draft", "propose", (1, 2), ("accepted",) * 2, round=1),
        event(10.5, 5, "target", "score", (1, 2), round=1),  # both end at 15.5
        event(16, 1, "controller", "commit", (1, 2), round=1),
    ]
    first = [
        event(0, 7, "target", "score", (0,)),
        event(8, 2, "controller", "commit", (0,)),
    ]
    s = counts_of(Trace(first + step))
    assert (s.steps, s.ttft, s.seconds, s.step_seconds) == (1, 10, 17, 7)
    assert (s.step_draft, s.step_target, s.step_verify) == (4, 5, 1)
    assert (s.step_busy, s.communication) == (5.5, 0.5)


def test_a_pass_catches_up_on_tokens_before_its_candidates_and_the_last_token():
    """Only if another target has read them: not in prefill, nor with one target."""
    prefill = event(0, 5, "target", "score")._replace(fed=9)
    late_prefill = event(1, 5, "target-2", "score")._replace(fed=12)
    next_pass = event(6, 4, "target", "score")._replace(kept=9, fed=6)
    next_pass = next_pass._replace(payload=Scored(tested=2))  # catches up on 6 - 2 - 1
    up_to_date = event(7, 4, "target-2", "score")._replace(kept=12, fed=3)
    up_to_date = up_to_date._replace(payload=Scored(tested=2))
    trace = Trace([prefill, late_prefill, next_pass, up_to_date])
    assert stats(trace).caught_up == 3

    alone = Trace([prefill, next_pass])
    assert stats(alone).caught_up == 0


def test_drafts_made_during_the_last_pass_are_the_tail_of_an_output_cut_by_the_limit():
    """PEARL's first pass commits the first of three drafts; two await the target."""
    for outcome, tail in (("accepted", 2), ("rejected", 0)):
        trace = Trace(
            [
                event(0, 3, "target", "score", (0,)),
                event(0, 3, "draft", "propose", (3, 4, 5))._replace(
                    id=1, outcome=(outcome, "discarded", "discarded")
                ),
                event(3, 0, "controller", "commit", (3,)),
            ],
            {"limit": 1},
        )
        counts = counts_of(trace)
        assert (counts.with_tail, counts.with_tail_seconds) == (1 + tail, 3)


def test_totals_of_requests_are_sums_and_ratios_use_the_sums():
    both = total([stats(HAND), stats(HAND), Stats(requests=1, accepted=2, rejected=4)])
    assert (both.requests, both.tokens, both.seconds) == (3, 12, 24)
    assert both.acceptance_rate == pytest.approx(10 / 16)


def test_an_empty_trace_has_no_rates():
    s = stats(Trace([]))
    assert Trace([]).makespan == 0
    assert s.tokens == 0
    for rate in (s.acceptance_rate, s.mat, s.decode_speed, s.tpot):
        assert isnan(rate)


# -- formats ---------------------------------------------------------------------------
def test_a_trace_is_unchanged_by_json(case, decode):
    for extra in case.at(3):
        _, trace = decode(case.method, toys(0.8), 20, **extra)
        back = Trace.from_json(trace.to_json())
        assert back == trace
        assert back.to_json() == trace.to_json()
        assert stats(back) == stats(trace)
