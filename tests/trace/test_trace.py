"""Traces: invariants of every method's run, statistics recounted by hand, formats."""

from __future__ import annotations

import json
import random
from collections import Counter
from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speclib.core.sampling import Sampler
from speclib.data.latency import Latency
from speclib.methods import METHODS
from speclib.models.toy import Toy
from speclib.operations import OPERATIONS
from speclib.operations.payload import Payload
from speclib.trace.events import Event, Trace
from speclib.trace.metrics import Stats, stats, total

RUNS = settings(max_examples=25)
alphas, ratios = st.sampled_from([0.0, 0.3, 0.8, 0.95, 1.0]), st.floats(0.1, 30)
gammas, limits = st.integers(1, 8), st.integers(1, 40)
samplers = st.sampled_from([Sampler(), Sampler(1.0)])


def toys(alpha: float) -> dict:
    return {"draft": Toy(alpha, context=512), "target": Toy(context=512)}


def idle(trace: Trace, device: str) -> float:
    """Seconds between a device's operations, before the first and after the last."""
    lane = sorted((e.ts, e.ts + e.dur) for e in trace.operations if e.device == device)
    edges = [0.0, *(t for span in lane for t in span), trace.makespan]
    return sum(b - a for a, b in zip(edges[::2], edges[1::2], strict=True))


# -- invariants ------------------------------------------------------------------------
@RUNS
@given(alpha=alphas, gamma=gammas, c=ratios, limit=limits, sampler=samplers)
def test_a_device_does_one_thing_at_a_time_and_is_otherwise_idle(
    case, decode, alpha, gamma, c, limit, sampler
):
    for extra in case.at(gamma):
        _, trace = decode(
            case.method,
            toys(alpha),
            limit,
            latency=Latency.ratio(c),
            sampler=sampler,
            **extra,
        )
        slack = 1e-12 * trace.makespan
        for device in trace.devices:
            lane = sorted(
                (e.ts, e.ts + e.dur) for e in trace.operations if e.device == device
            )
            assert all(
                a[1] <= b[0] + slack for a, b in zip(lane, lane[1:], strict=False)
            )
            assert all(start <= end for start, end in lane)
            assert (
                abs(trace.busy(device) + idle(trace, device) - trace.makespan)
                <= 9 * slack
            )
        ends = [e.ts + e.dur for e in trace.events]
        assert all(a <= b + slack for a, b in zip(ends, ends[1:], strict=False))


@RUNS
@given(alpha=alphas, gamma=gammas, limit=limits, sampler=samplers)
def test_statistics_equal_a_recount_of_the_events(
    case, decode, alpha, gamma, limit, sampler
):
    for extra in case.at(gamma):
        output, trace = decode(
            case.method, toys(alpha), limit, sampler=sampler, **extra
        )
        events = json.loads(trace.to_json())["events"]
        outcomes = Counter(o for e in events for o in e["outcome"])
        ran = sum(len(e["tokens"]) for e in events if e["op"] == "propose")
        ran += sum(
            e["payload"]["fed"] + 1 for e in events if e["op"] == "draft_sequences"
        )
        ran += sum(
            levels(e["payload"]["parents"]) for e in events if e["op"] == "draft_tree"
        )
        drafted = sum(
            len(e["tokens"])
            for e in events
            if e["op"] not in ("score", "score_tree", "commit")
        )
        assert set(outcomes) <= {"accepted", "rejected", "wasted"}
        assert outcomes.total() == drafted
        s, commits = stats(trace), [e for e in events if e["op"] == "commit"]
        later = [e for e in events if e["round"] > 0]
        draft, target = (
            sum(e["dur"] for e in later if e["device"] == device)
            for device in ("draft", "target")
        )
        begun, ended = commits[0]["ts"], commits[-1]["ts"]
        covered = isclose(
            s.step_busy, covered_seconds(later, begun, ended), abs_tol=1e-9
        )
        assert len(commits) == 1 or covered
        assert [t for e in commits for t in e["tokens"]] == list(output)
        said = [e for e in commits if e["tokens"]]
        assert s == Stats(
            requests=1,
            tokens=limit,
            first_tokens=len(said[0]["tokens"]),
            seconds=said[-1]["ts"],
            ttft=said[0]["ts"],
            rounds=len(commits),
            drafted=drafted,
            accepted=outcomes["accepted"],
            rejected=outcomes["rejected"],
            draft_runs=ran,
            target_runs=sum(e["op"] in ("score", "score_tree") for e in events),
            draft_seconds=sum(e["dur"] for e in events if e["device"] == "draft"),
            target_seconds=sum(e["dur"] for e in events if e["device"] == "target"),
            operations=sum(e["device"] != "controller" for e in events),
            steps=len(commits) - 1,
            step_seconds=ended - begun,
            step_busy=s.step_busy,
            step_draft=draft,
            step_target=target,
            with_tail=s.with_tail,
            with_tail_seconds=s.with_tail_seconds,
        )


def levels(parents: list[int]) -> int:
    """The most nodes between the text and any node, that one included."""

    def depth(node: int) -> int:
        return 0 if node < 0 else 1 + depth(parents[node])

    return max(map(depth, range(len(parents))), default=0)


def covered_seconds(events: list[dict], begun: float, ended: float) -> float:
    """Seconds of ``begun`` .. ``ended`` in which any device works, one stretch after another."""
    edges = sorted(
        {
            begun,
            ended,
            *(
                t
                for e in events
                for t in (e["ts"], e["ts"] + e["dur"])
                if begun < t < ended
            ),
        }
    )
    return sum(
        b - a
        for a, b in zip(edges, edges[1:], strict=False)
        if any(e["ts"] <= a and b <= e["ts"] + e["dur"] and e["dur"] for e in events)
    )


@pytest.mark.parametrize(
    "end", [{"limit": 2}, {"limit": 9, "eos": frozenset({2})}], ids=str
)
def test_a_drafted_token_beyond_the_end_is_not_counted_as_accepted(decode, end):
    """Only committed tokens exist for metrics: two are, so at most two drafts were accepted."""
    words = (1, 2, 3, 4, 5, 6, 7, 8)
    models = {"draft": Toy(1.0, words=words), "target": Toy(words=words)}
    output, trace = decode(METHODS["speculative"], models, gamma=5, **end)
    assert output == (1, 2) and stats(trace).accepted <= 2


# -- replay ----------------------------------------------------------------------------
class Noisy:
    """Random durations, remembered per device in order of starting."""

    c = 3.0

    def __init__(self, seed: int):
        self.draw, self.given = random.Random(seed), {"draft": [], "target": []}

    def seconds(self, device, op, kept, fed):
        self.given[device].append(self.draw.expovariate(1.0))
        return self.given[device][-1]


def test_a_makespan_is_the_sum_of_its_rounds_slowest_devices(decode):
    """PEARL joins its devices once a round, SD puts them in a row: arithmetic on the durations."""
    for name, longest in (("pearl", max), ("speculative", sum)):
        _, trace = decode(METHODS[name], toys(0.8), 30, latency=Noisy(7), gamma=4)
        rounds = {e.round for e in trace.operations}
        expected = sum(
            longest([e.dur for e in trace.operations if e.round == r]) for r in rounds
        )
        assert trace.makespan == pytest.approx(expected, rel=1e-12)


# -- statistics ------------------------------------------------------------------------
def event(ts, dur, device, op, tokens=(), outcome=(), round=0):
    payload = OPERATIONS[op].payload_type() if op in OPERATIONS else Payload()
    return Event(
        ts,
        dur,
        device,
        op,
        0,
        round,
        tuple(tokens),
        tuple(outcome),
        "virtual",
        payload=payload,
    )


HAND = Trace(
    [
        event(0, 2, "draft", "propose", (1, 2, 3), ("accepted", "rejected", "wasted")),
        event(2, 4, "target", "score", (0, 1, 2, 3)),
        event(6, 0, "controller", "commit", (1, 9)),
        event(
            6, 2, "draft", "propose", (4, 5, 6), ("accepted", "accepted", "accepted")
        ),
        event(8, 4, "target", "score", (9, 4, 5, 6)),
        event(12, 0, "controller", "commit", (4, 5, 6, 7)),
    ]
)


def test_every_ratio_of_a_trace_made_by_hand():
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
        "draft_idle": 2 / 3,
        "target_idle": 1 / 3,
    }
    assert {k: getattr(s, k) for k in expected} == pytest.approx(expected)


def test_a_steps_time_is_drafting_target_verifying_and_the_rest_communication():
    step = [
        event(10, 4, "draft", "propose", (1, 2), ("accepted",) * 2, round=1),
        event(10.5, 5, "target", "score", (1, 2), round=1),  # both done at 15.5
        event(16, 1, "controller", "commit", (1, 2), round=1),
    ]
    first = [
        event(0, 7, "target", "score", (0,)),
        event(8, 2, "controller", "commit", (0,)),
    ]
    s = stats(Trace(first + step))
    assert (s.steps, s.ttft, s.seconds, s.step_seconds) == (1, 10, 17, 7)
    assert (s.step_draft, s.step_target, s.step_verify) == (4, 5, 1)
    assert (s.step_busy, s.communication) == (5.5, 0.5)


def test_requests_add_up_and_ratios_are_of_the_sums():
    both = total([stats(HAND), stats(HAND), Stats(requests=1, accepted=2, rejected=4)])
    assert (both.requests, both.tokens, both.seconds) == (3, 12, 24)
    assert both.acceptance_rate == pytest.approx(10 / 16)


def test_what_never_happened_has_no_rate():
    s = stats(Trace([]))
    assert Trace([]).makespan == 0 and s.tokens == 0
    assert all(
        value != value for value in (s.acceptance_rate, s.mat, s.decode_speed, s.tpot)
    )


# -- formats ---------------------------------------------------------------------------
def test_json_gives_back_the_same_trace(case, decode):
    for extra in case.at(3):
        _, trace = decode(case.method, toys(0.8), 20, **extra)
        back = Trace.from_json(trace.to_json())
        assert back == trace and back.to_json() == trace.to_json()
        assert stats(back) == stats(trace)


def test_an_event_has_the_contracts_fields_in_seconds(decode):
    _, trace = decode(METHODS["pearl"], toys(0.8), 10, gamma=3)
    for raw in json.loads(trace.to_json())["events"]:
        assert {
            "ts",
            "dur",
            "device",
            "op",
            "id",
            "round",
            "tokens",
            "outcome",
            "clock",
        } <= raw.keys()
        assert raw["clock"] == "virtual" and raw["op"] in ("propose", "score", "commit")
    assert trace.devices == ["draft", "target"]
    assert len({e.id for e in trace.events}) == len(trace.events)


def test_perfetto_gets_complete_events_in_microseconds_on_named_lanes(decode, tmp_path):
    _, trace = decode(METHODS["pearl"], toys(0.8), 10, gamma=3)
    trace.save_perfetto(tmp_path / "trace.json")
    raw = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    lanes = {e["tid"]: e["args"]["name"] for e in raw if e["ph"] == "M"}
    slices = [e for e in raw if e["ph"] == "X"]
    assert sorted(lanes.values()) == ["controller", "draft", "target"]
    assert [(lanes[e["tid"]], e["name"], e["ts"], e["dur"]) for e in slices] == [
        (e.device, e.op, e.ts * 1e6, e.dur * 1e6) for e in trace.events
    ]
