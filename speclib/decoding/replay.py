"""Replays a trace on the virtual clock: how long its operations alone take.

The method makes the same decisions, because every model repeats its answers from the
trace. Every operation takes as long as in the trace, and no time passes between
operations. So the makespan is the run's time without orchestration, and the ratio of
measured to replayed time is the cost of our orchestration.

A replay works with any sampler, since the target's answers are the committed tokens. It
uses no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from inspect import Parameter, signature
from math import inf
from typing import Any

from speclib.arguments import checked
from speclib.core.sampling import Coins, Drafted, Row, Rows, Sampler, Tokens, certain
from speclib.core.text import AnyText
from speclib.data.latency import Latency, Step
from speclib.errors import BadValue, unknown_name
from speclib.methods import METHODS
from speclib.operations.model import Model
from speclib.operations.operation import Performed
from speclib.trace.events import LOOKUP, Event, Trace
from speclib.worlds.devices import DeviceLost, Future
from speclib.worlds.virtual import Virtual

WORLDS_META = (
    "devices",
    "clock",
    "cancel",
    "limit",
    "eos",
    "mask",
)  # the keys that a world adds itself
NEEDED_META = ("prompt", "limit", "eos", "cancel")
BLAME = (
    "Was it recorded with this method, these settings and this version of the method?"
)


@checked
def replay(
    trace: Trace,
    method: str | None = None,
    *,
    latency: Latency | None = None,
) -> Trace:
    """Runs ``trace`` again on the virtual clock.

    >>> run = speclib.simulate("pearl", c=5, alpha=1, tokens=20)
    >>> twice_as_slow = speclib.Latency.ratio(5, 0.2)
    >>> again = speclib.replay(run.trace, latency=twice_as_slow)
    >>> round(again.makespan / run.trace.makespan, 6)
    2.0

    ``method``: a registered name; by default the trace's own. The settings are the
    trace's. ``latency``: other durations for the operations, as if the same run had
    used other devices.

    Raises SpeclibError if the trace lacks information, or if the method submits
    operations that differ from the trace's. That happens with another method or
    setting, or if the method's decisions depend on time and results now arrive in
    another order.
    """
    name = method or trace.meta.get("method")
    if name not in METHODS:
        raise unknown_name(f"no method {name!r} to replay with", name, METHODS)
    settings = _settings_of(name, trace.meta)

    world = Replayed(trace, latency)
    world.begin(
        trace.meta["prompt"],
        sampler=Sampler(),
        coins=Coins(),
        limit=trace.meta["limit"],
        eos=frozenset(trace.meta["eos"]),
    )
    METHODS[name](world, **settings)

    meta = {k: v for k, v in trace.meta.items() if k not in WORLDS_META}
    replayed = world.end(**meta)
    if world.not_asked_for:
        raise BadValue(
            "the replay ends before the trace: it never asks for operations "
            f"{sorted(world.not_asked_for)}. {BLAME}"
        )
    return replayed


def _settings_of(name: str, meta: dict[str, Any]) -> dict[str, Any]:
    """The method's arguments, from the trace's ``meta``."""
    _world, *parameters = signature(METHODS[name]).parameters.values()
    needed = list(NEEDED_META)
    needed += [p.name for p in parameters if p.default is Parameter.empty]
    lacking = [key for key in needed if key not in meta]
    if lacking:
        raise BadValue(
            f"the trace's meta lacks {', '.join(lacking)}, which a replay with method "
            f"{name!r} needs: give a trace that speclib.decode made, and its method"
        )
    return {p.name: meta[p.name] for p in parameters if p.name in meta}


class Silent(Model):
    """Replaces a model whose operations are answered from a trace."""

    def __init__(self, vocab: int):
        self.vocab = vocab

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Never called: the trace contains the answers."""
        raise NotImplementedError

    def cut(self, length: int) -> None:
        """There is no cache."""

    def reset(self) -> None:
        """There is no cache."""


class Replayed(Virtual):
    """The devices of ``trace``, which repeat their answers.

    An operation that did not finish in the trace lasts until it is cancelled. An
    operation whose device was lost fails at the same time as in the trace.
    ``not_asked_for``: maps ids to events, for the operations that the method has not
    submitted yet.
    """

    def __init__(self, trace: Trace, latency: Latency | None):
        committed = [token for commit in trace.commits for token in commit.tokens]
        self.whole_text = (*trace.meta["prompt"], *committed)
        self._vocab: int = 1 + max((*self.whole_text, *trace.meta["eos"]))
        for event in trace.events:
            for token in (*event.tokens, *event.payload.likeliest):
                self._vocab = max(self._vocab, 1 + token)

        models = dict.fromkeys(trace.devices, Silent(self._vocab))
        unused = Latency.ratio(1)
        super().__init__(models, latency or unused, cancel=trace.meta["cancel"])
        self._lasts_as_recorded = latency is None
        self.mask = trace.meta.get("mask")
        self.not_asked_for = {event.id: event for event in trace.operations}
        self.guessed_in_round: dict[int, Tokens] = {}
        for event in trace.events:
            if event.op == LOOKUP:
                self.guessed_in_round[event.round] = event.tokens

    @property
    def vocab(self) -> int:
        return self._vocab

    def guess(
        self, tokens: Iterable[int], row: Row | None = None
    ) -> tuple[Drafted, ...]:
        """``tokens`` as drafts; the trace's own if coins draw them from ``row``."""
        if row is not None:
            tokens = self.guessed_in_round.get(self.round, ())
        return super().guess(tokens, row)

    def _start(self, future: Future[Any]) -> None:
        event = self._take_event(future)
        if event.lost:
            died = DeviceLost(f"{future.device} was lost in the trace")
            until_then = [Step(event.dur)]
            self._carry_out(
                future, until_then, Performed(None, event.kept, event.fed), died
            )
            return

        operation = future.op
        output = None
        found_nothing = operation.is_empty or _had_no_tokens_left(event)
        has_result = bool(event.tokens) or found_nothing
        if has_result:
            output = operation.recorded(event, self)

        steps = [Step(inf)]
        if has_result and not event.cancelled:
            steps = self._steps_of(future, event)
        self._carry_out(future, steps, Performed(output, event.kept, event.fed))

    def _steps_of(self, future: Future[Any], event: Event) -> list[Step]:
        if self._lasts_as_recorded:
            return [Step(event.dur)]
        return self.latency.steps(future.device, future.op, event.kept, event.fed)

    def _stop(self, future: Future[Any]) -> None:
        """Stops an operation, unless its device was lost before it could stop."""
        if not isinstance(self._progress[future].error, DeviceLost):
            super()._stop(future)

    def _until_now(self, future: Future[Any]) -> Performed:
        """What a stopped operation has done: the same as in the trace."""
        return self._progress[future].done

    def _step(self) -> None:
        if self._heap and self._heap[0].time == inf:
            future = self._heap[0].future
            if self._running[future.device] is future:
                raise BadValue(
                    f"the replay waits for operation {future.id} of {future.device!r}, "
                    "which did not finish in the trace"
                )
        super()._step()

    def _take_event(self, future: Future[Any]) -> Event:
        """The trace's event for this operation; raises BadValue if they differ."""
        event = self.not_asked_for.pop(future.id, None)
        if event is not None and _is_of(event, future):
            return event

        operation = future.op
        found = "nothing"
        if event is not None:
            found = (
                f"a {event.op} by {event.device!r} in round {event.round}, "
                f"{len(event.tokens)} tokens, {event.kept} kept, {event.fed} fed"
            )
        raise BadValue(
            f"the replay leaves the trace at operation {future.id}: it asks for "
            f"a {operation.name} by {future.device!r} in round {future.round} after "
            f"{len(operation.text)} tokens; the trace has {found}. {BLAME}"
        )

    def target_rows(
        self, texts: Sequence[AnyText], likeliest: Tokens, tested: bool = False
    ) -> Rows:
        """The target's answer after each of ``texts``: the next committed token.

        After the last texts the answers are ``likeliest`` instead; with ``tested``,
        only after those that contradict the committed text. No decision depends on the
        answer after any other contradicting text, or beyond the committed text's end.
        """
        first_of_last = len(texts) - len(likeliest)
        answers = []
        for text in texts[:first_of_last]:
            answers.append(self._committed_at(len(text), otherwise=0))
        for text, best in zip(texts[first_of_last:], likeliest, strict=True):
            is_committed = tested and text == self.whole_text[: len(text)]
            if is_committed:
                answers.append(self._committed_at(len(text), otherwise=best))
            else:
                answers.append(best)
        return certain(answers, self.vocab)

    def _committed_at(self, position: int, otherwise: int) -> int:
        """The committed token at ``position``; beyond the text's end, ``otherwise``."""
        is_known = position < len(self.whole_text)
        return self.whole_text[position] if is_known else otherwise


def _had_no_tokens_left(event: Event) -> bool:
    """Whether a draft operation found no room left in the context."""
    has_finished = not event.cancelled and not event.lost
    return event.is_drafting and not event.tokens and has_finished


def _is_of(event: Event, future: Future[Any]) -> bool:
    """Whether ``event`` can be the operation of ``future``."""
    operation = future.op
    same_source = (event.device, event.round) == (future.device, future.round)
    if not same_source or event.op != operation.name:
        return False
    return not event.tokens or operation.is_recorded(event)
