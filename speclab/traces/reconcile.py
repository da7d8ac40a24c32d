"""Why a measured speed-up differs from the predicted one, cause by cause.

The virtual clock predicts a speed-up from the cost ratio c and the acceptance rate. We
replace its assumptions one by one with what a run recorded, until we arrive at the run
itself. Each replacement is a cause, and its share is how much it changes the speed-up:

    predicted        with c and alpha as you expected them
    cost ratio       with c as measured on this machine
    acceptance       with exactly this run's accepted and rejected drafts
    longer passes    a pass over several tokens takes longer than a pass over one
    both at work     draft and target slow each other down, because they share memory
                     or because no core is idle
    messages         requests travel to a device, and results travel back
    not explained    the rest: verification, and time when nothing happens

The causes from acceptance to messages are computed by replaying the run's trace, so no
model is needed.
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

LEVELS = ("printed", "predicted")  # speed-ups before the first cause
LONG = 4_000  # simulated tokens, enough to make noise negligible


class Cause(NamedTuple):
    """A cause, and the speed-up once it is included."""

    name: str
    speedup: float


class Change(NamedTuple):
    """The speed-up before and after including a cause."""

    cause: str
    before: float
    after: float


@dataclass(frozen=True)
class Reconciled:
    """The steps from the predicted to the measured speed-up of ``method``.

    A speed-up printed in a paper may come before the predicted one.
    """

    method: str
    causes: tuple[Cause, ...]

    @property
    def predicted(self) -> float:
        """The speed-up predicted from c and the acceptance rate."""
        return dict(self.causes)["predicted"]

    @property
    def measured(self) -> float:
        """The run's wall-clock speed-up over plain decoding."""
        return self.causes[-1].speedup

    @property
    def changes(self) -> list[Change]:
        """The change due to each cause, in order."""
        steps = pairwise(self.causes)
        return [
            Change(cause.name, before.speedup, cause.speedup)
            for before, cause in steps
            if cause.name not in LEVELS
        ]

    @property
    def shares(self) -> dict[str, float]:
        """How much each cause changed the speed-up."""
        return {change.cause: change.after - change.before for change in self.changes}

    @property
    def not_explained(self) -> float:
        """The unexplained change as a share of the measured speed-up."""
        return abs(self.shares["not explained"]) / self.measured

    def figure(self) -> go.Figure:
        """A waterfall chart of the steps, from top to bottom."""
        shares = self.shares
        names, texts, lengths, measures = [], [], [], []
        for name, speedup in (*self.causes, Cause("measured", self.measured)):
            is_level = name not in shares
            names.append(name)
            texts.append(f"{speedup:.2f}" if is_level else f"{shares[name]:+.2f}")
            lengths.append(speedup if is_level else shares[name])
            measures.append("absolute" if is_level else "relative")
        bars = go.Waterfall(
            orientation="h",
            y=names,
            x=lengths,
            text=texts,
            measure=measures,
            textposition="outside",
            cliponaxis=False,
        )
        figure = go.Figure(bars)
        figure.update_layout(
            title=f"{self.method}, times as fast as plain decoding",
            yaxis={"autorange": "reversed"},
            height=80 + 26 * len(names),
            margin={"l": 10, "r": 40, "t": 50, "b": 30},
            template="plotly_white",
        )
        return figure

    def _repr_mimebundle_(self, *given: Any, **asked: Any) -> Any:
        """The figure for a notebook, from plotly."""
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
    """Explains how the measured speed-up over ``plain`` differs from the predicted one.

    plain    plain decoding of the same prompt on the same devices
    run      the method's run
    alone    speculative decoding of the same prompt: its models take turns, so it shows
             how long passes take while the other device is idle. Without this run,
             "longer passes" and "both at work" are a single cause
    c        the expected cost ratio; None: the measured one
    alpha    the expected acceptance rate; None: the measured one

    Raises BadValue if the runs wrote different texts, or if the run has no passes of a
    draft model: then give ``alone``, or a run of a method with a draft model.
    """
    if plain.trace.meta.get("method") != "autoregressive":
        raise BadValue(
            f"plain is a run of {plain.trace.meta.get('method')!r}: give a run of "
            "'autoregressive'"
        )
    if plain.tokens != run.tokens:
        raise BadValue("the runs wrote different texts: give runs of the same prompt")
    method = str(run.trace.meta["method"])
    speed = _Speed(plain, run)
    target = _pass_over_one_token(plain.trace.operations)
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
    """Speed-ups of a run over plain decoding, from replays of both."""

    def __init__(self, plain: Result, run: Result):
        self.traces = plain.trace, run.trace

    def at(self, latency: Latency) -> float:
        """The speed-up if passes take the times in ``latency``."""
        return self._of(replay(trace, latency=latency) for trace in self.traces)

    def as_recorded(self, with_messages: bool = False) -> float:
        """The speed-up with recorded operations, with or without their messages."""
        traces: Iterable[Trace] = self.traces
        if with_messages:
            traces = map(_with_messages, traces)
        return self._of(map(replay, traces))

    @staticmethod
    def _of(traces: Iterable[Trace]) -> float:
        plain, run = map(stats, traces)
        return run.decode_speed / plain.decode_speed


def _simulated(run: Result, c: float, alpha: float) -> float:
    """The simulated speed-up on a long text, with the run's method and settings."""
    meta = run.trace.meta
    method = str(meta["method"])
    settings = {name: meta[name] for name in parameters(method) if name in meta}
    result = simulate(method, c=c, alpha=alpha, tokens=LONG, target=c, **settings)
    return result.stats.decode_speed * c


def _with_messages(trace: Trace) -> Trace:
    """Lengthens each operation to the time that the controller waited for it."""
    events = [
        event._replace(dur=event.dur + event.message_seconds) for event in trace.events
    ]
    return replace(trace, events=events)


# -- how long passes take --------------------------------------------------------------
def _pass_over_one_token(operations: Iterable[Event]) -> float:
    """The median time of a target pass over one token, in seconds."""
    return median(e.dur for e in operations if e.is_scoring and e.kept and e.fed == 1)


def _pass_of_draft(operations: Iterable[Event]) -> float:
    """The median time of a draft pass, in seconds, leaving out prefills."""
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


def _curve(operations: Iterable[Event], one_token: float) -> Curve:
    """How long a target pass takes, by the number of tokens fed to it."""
    by_fed: dict[int, list[float]] = {}
    for event in operations:
        if event.is_scoring and event.kept:
            by_fed.setdefault(event.fed, []).append(event.dur)
    points = {fed: median(seconds) for fed, seconds in by_fed.items()}
    return Curve(tuple(sorted((points | {1: one_token}).items())))
