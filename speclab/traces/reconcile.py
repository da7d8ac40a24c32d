"""Why a measured speed-up differs from the predicted one, cause by cause.

The virtual clock predicts a speed-up from the cost ratio c and the acceptance rate. Its
inputs are replaced, one after the other, by what a run shows, until the run itself is
all that is left. Each replacement moves the speed-up, and that is its cause's share:

    predicted        by c and alpha as you expected them
    cost ratio       c as the passes of this machine have it
    acceptance       the very drafts of this run pass or fail
    longer passes    a pass over several tokens takes longer than one over one
    both at work     draft and target slow each other down, since they share a memory,
                     or the cores are not idle
    messages         what is asked of a device travels there, and the answer back
    not explained    what is left: verification, and time in which nobody does anything

Replays of the run's own trace give all but the first two, so no model is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from plotly import graph_objects as go

from speclib.arguments import Ratio, Share, checked
from speclib.data.latency import Curve, Latency
from speclib.decoding.decode import Result
from speclib.decoding.replay import replay
from speclib.decoding.simulate import simulate
from speclib.errors import BadValue
from speclib.methods import parameters
from speclib.trace.events import Event, Trace
from speclib.trace.metrics import stats

LEVELS = ("printed", "predicted")  # speed-ups on the way that are no cause
LONG = 4_000  # tokens of the simulated text, for a prediction without chance


class Cause(NamedTuple):
    """One cause, and the speed-up once it is counted in."""

    name: str
    speedup: float


class Change(NamedTuple):
    """What one cause changes: the speed-up before and after it is counted in."""

    cause: str
    before: float
    after: float


@dataclass(frozen=True)
class Reconciled:
    """The way to the measured speed-up of ``method``: from the predicted one, or from
    the printed one by the predicted one."""

    method: str
    causes: tuple[Cause, ...]

    @property
    def predicted(self) -> float:
        """The speed-up that c and the acceptance rate promise."""
        return dict(self.causes)["predicted"]

    @property
    def measured(self) -> float:
        """The speed-up of the run over plain decoding, by the clock."""
        return self.causes[-1].speedup

    @property
    def changes(self) -> list[Change]:
        """What each cause changes, in order."""
        steps = pairwise(self.causes)
        return [
            Change(cause.name, before.speedup, cause.speedup)
            for before, cause in steps
            if cause.name not in LEVELS
        ]

    @property
    def shares(self) -> dict[str, float]:
        """By how much each cause changed the speed-up."""
        return {change.cause: change.after - change.before for change in self.changes}

    @property
    def not_explained(self) -> float:
        """What no cause accounts for, over the measured speed-up."""
        return abs(self.shares["not explained"]) / self.measured

    def figure(self) -> go.Figure:
        """The way as a waterfall."""
        shares = self.shares
        names, texts, heights, measures = [], [], [], []
        for name, speedup in (*self.causes, Cause("measured", self.measured)):
            is_level = name not in shares
            names.append(name)
            texts.append(f"{speedup:.2f}" if is_level else f"{shares[name]:+.2f}")
            heights.append(speedup if is_level else shares[name])
            measures.append("absolute" if is_level else "relative")
        bars = go.Waterfall(
            x=names, y=heights, text=texts, measure=measures, textposition="outside"
        )
        figure = go.Figure(bars)
        figure.update_layout(
            title=f"{self.method}: from the {names[0]} to the measured speed-up",
            yaxis_title="times as fast as plain decoding",
            showlegend=False,
        )
        return figure

    def _repr_mimebundle_(self, *given: Any, **asked: Any) -> Any:
        """The figure where a notebook shows it, as plotly has it."""
        return self.figure()._repr_mimebundle_(*given, **asked)

    def __str__(self) -> str:
        shares = self.shares
        lines = [f"{self.method}, times as fast as plain decoding"]
        for name, speedup in (*self.causes, Cause("measured", self.measured)):
            is_level = name not in shares
            number = f"{speedup:5.2f}" if is_level else f"       {shares[name]:+.2f}"
            lines.append(f"  {name:<28}{number}")
        return "\n".join(lines)


@checked
def reconcile(
    plain: Result,
    run: Result,
    alone: Result | None = None,
    *,
    c: Ratio | None = None,
    alpha: Share | None = None,
) -> Reconciled:
    """From the speed-up that was predicted to the one that ``run`` has over ``plain``.

    plain    plain decoding of the same prompt on the same devices
    run      the method's run
    alone    speculative decoding of the same prompt: its models take turns, so it shows
             what passes take while the other device rests. Without it "longer passes"
             and "both at work" are one cause
    c        the cost ratio that was expected; None: the measured one
    alpha    the acceptance rate that was expected; None: the measured one

    Raises BadValue where the runs are not of one text, or where the draft's passes
    cannot be told: give ``alone``, or a run of a method with a draft model.
    """
    if plain.trace.meta.get("method") != "autoregressive":
        raise BadValue(
            f"plain is a run of {plain.trace.meta.get('method')!r}: give one of "
            "'autoregressive'"
        )
    if plain.tokens != run.tokens:
        raise BadValue("the runs wrote different texts: give runs of the same prompt")
    method = str(run.trace.meta["method"])
    speed = _Speed(plain, run)
    target = _of_one_token(plain.trace.operations)
    draft = _pass_of_draft((alone or run).trace.operations)
    measured_c = target / draft

    expected_rate = run.stats.acceptance_rate if alpha is None else alpha
    at_measured_c = _simulated(run, measured_c, expected_rate)
    predicted = at_measured_c if c is None else _simulated(run, c, expected_rate)
    causes = [
        Cause("predicted", predicted),
        Cause("cost ratio", at_measured_c),
        Cause("acceptance", speed.at(Latency.ratio(measured_c, target))),
    ]
    if alone:
        curve = _curve([*plain.trace.operations, *alone.trace.operations], target)
        at_its_length = Latency(draft=Curve(((1, draft),)), target=curve)
        causes.append(Cause("longer passes", speed.at(at_its_length)))
    both = "both at work" if alone else "longer passes, both at work"
    causes += [
        Cause(both, speed.as_recorded()),
        Cause("messages", speed.as_recorded(with_messages=True)),
        Cause("not explained", run.stats.decode_speed / plain.stats.decode_speed),
    ]
    return Reconciled(method, tuple(causes))


class _Speed:
    """The speed-up of a run over plain decoding, both replayed."""

    def __init__(self, plain: Result, run: Result):
        self.traces = plain.trace, run.trace

    def at(self, latency: Latency) -> float:
        """With passes that last as ``latency`` says."""
        return self._of(replay(trace, latency=latency) for trace in self.traces)

    def as_recorded(self, with_messages: bool = False) -> float:
        """With operations that last what they lasted, messages counted in or not."""
        traces: Iterable[Trace] = self.traces
        if with_messages:
            traces = map(_with_messages, traces)
        return self._of(map(replay, traces))

    @staticmethod
    def _of(traces: Iterable[Trace]) -> float:
        plain, run = map(stats, traces)
        return run.decode_speed / plain.decode_speed


def _simulated(run: Result, c: float, alpha: float) -> float:
    """The speed-up that a long text has, by the method at the run's own settings."""
    meta = run.trace.meta
    method = str(meta["method"])
    settings = {name: meta[name] for name in parameters(method) if name in meta}
    result = simulate(method, c=c, alpha=alpha, tokens=LONG, target=c, **settings)
    return result.stats.decode_speed * c


def _with_messages(trace: Trace) -> Trace:
    """The trace with each operation as long as it kept the controller waiting."""
    events = [
        event._replace(dur=event.dur + event.message_seconds) for event in trace.events
    ]
    return replace(trace, events=events)


# -- seconds of passes -----------------------------------------------------------------
def _of_one_token(operations: Iterable[Event]) -> float:
    """Seconds of a target pass over one token, the middle one of all."""
    return median(e.dur for e in operations if e.is_scoring and e.kept and e.fed == 1)


def _pass_of_draft(operations: Iterable[Event]) -> float:
    """Seconds of a draft pass, the middle one of all operations but prefills."""
    passes = [
        event.dur / event.pass_count
        for event in operations
        if event.is_drafting and event.kept and event.pass_count and event.tokens
    ]
    if not passes:
        raise BadValue(
            "the run has no passes of a draft model: give a run of speculative "
            "decoding as `alone`"
        )
    return median(passes)


def _curve(operations: Iterable[Event], of_one: float) -> Curve:
    """Seconds of a target pass by the tokens it is fed."""
    by_fed: dict[int, list[float]] = {}
    for event in operations:
        if event.is_scoring and event.kept:
            by_fed.setdefault(event.fed, []).append(event.dur)
    points = {fed: median(seconds) for fed, seconds in by_fed.items()}
    return Curve(tuple(sorted((points | {1: of_one}).items())))
