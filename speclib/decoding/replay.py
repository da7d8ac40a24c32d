"""A trace run again on the virtual clock: the time its decisions and devices alone take.

The same method makes the same decisions, because every model says what the trace says it said;
every operation lasts what it lasted, and between operations no time passes. So the makespan is what
the run would take if orchestration cost nothing, and measured over replayed is what ours costs.
Knows no model: decisions of any sampler are replayed, since the target "says" what was committed.
"""

from __future__ import annotations

from heapq import heappush
from inspect import Parameter, signature
from math import inf

import numpy as np

from speclib.core.sampling import Coins, Sampler, certain
from speclib.data.latency import Latency
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.operations.operation import Done
from speclib.trace.events import Event, Trace
from speclib.trace.metrics import passes
from speclib.worlds.devices import Cancelled
from speclib.worlds.virtual import Virtual

OURS = (
    "devices",
    "clock",
    "cancel",
    "limit",
    "eos",
)  # of a trace's meta: the world's part


def replay(
    trace: Trace, method: str | None = None, *, latency: Latency | None = None
) -> Trace:
    """``trace`` again on the virtual clock, by ``method`` (a registered name; default: the trace's
    own), with the settings the trace names. With a ``latency`` operations last as long as it says:
    the same run on other devices.

    Raises SpeclibError where the trace does not say enough, or where the method asks for anything
    else than the trace has: another method or setting, or one that decides by time and now meets
    its results in another order.
    """
    name = method or trace.meta.get("method")
    if name not in METHODS:
        raise SpeclibError(
            f"no method {name!r} to replay with; known: {', '.join(METHODS)}"
        )
    missing = {"prompt", "limit", "eos", "cancel"} - trace.meta.keys()
    if missing:
        raise SpeclibError(
            f"the trace's meta lacks {', '.join(sorted(missing))}: replay one that "
            "speclib.decode made"
        )
    world, settings = Replayed(trace, latency), _settings(name, trace.meta)
    world.begin(
        trace.meta["prompt"],
        sampler=Sampler(),
        coins=Coins(),
        limit=trace.meta["limit"],
        eos=frozenset(trace.meta["eos"]),
    )
    METHODS[name](world, **settings)
    again = world.end(**{k: v for k, v in trace.meta.items() if k not in OURS})
    if world.recorded:
        raise SpeclibError(
            f"the replay ends before the trace: it never asks for operations "
            f"{sorted(world.recorded)}. {BLAME}"
        )
    return again


BLAME = (
    "Was it recorded with this method, these settings and this version of the method?"
)


def _settings(name: str, meta: dict) -> dict:
    """The method's arguments, as far as the trace names them."""
    known = dict(list(signature(METHODS[name]).parameters.items())[1:])
    needed = [
        k for k, p in known.items() if p.default is Parameter.empty and k not in meta
    ]
    if needed:
        raise SpeclibError(
            f"the trace's meta lacks {', '.join(needed)}, which method {name!r} "
            "needs: replay it with the method it was made with"
        )
    return {k: meta[k] for k in known if k in meta}


class Silent:
    """Stands where a model would: its operations are answered from a trace."""

    def __init__(self, vocab: int):
        self.vocab = vocab

    def cut(self, length: int) -> None: ...


class Replayed(Virtual):
    """The devices of ``trace``, which answer as they did there. An operation that did not finish
    there lasts until it is cancelled. ``recorded``: id -> event, of those not asked for yet."""

    def __init__(self, trace: Trace, latency: Latency | None):
        said = (*trace.meta["prompt"], *(t for e in trace.commits for t in e.tokens))
        vocab = 1 + max((*said, *(t for e in trace.events for t in e.tokens + e.said)))
        super().__init__(
            dict.fromkeys(trace.devices, Silent(vocab)),
            latency,
            cancel=trace.meta["cancel"],
        )
        self.said, self.recorded = said, {e.id: e for e in trace.operations}

    def _start(self, future) -> None:
        event, op, value = self._event(future), future.op, None
        ended = not event.cancelled and (event.tokens or not getattr(op, "n", 1))
        if op.name == "propose":
            value = event.tokens, certain(event.tokens, self.vocab)
        elif op.name == "branch":
            value = event.drafts, event.chances
        elif op.name == "grow":
            value = (event.tokens, event.parents), certain(event.tokens, self.vocab)
        elif ended:
            value = self._rows(op.texts, event.said)
        seconds = (
            inf
            if not ended
            else event.dur
            if self.latency is None
            else self.latency.seconds(future.device, op, event.kept, event.fed)
        )
        heappush(
            self._heap,
            (
                self._now + seconds,
                next(self._sequence),
                future,
                Done(value, event.kept, event.fed),
            ),
        )

    def _abort(self, future) -> None:
        """It had got there as far as the trace says."""
        value, kept, fed = next(
            done for *_, waiting, done in self._heap if waiting is future
        )
        self._finish(future, value, self._now, kept, fed, error=Cancelled("cancelled"))

    def _step(self) -> None:
        future = self._heap[0][2] if self._heap and self._heap[0][0] == inf else None
        if future and self._running[future.device] is future:
            raise SpeclibError(
                f"the replay waits for operation {future.id} of {future.device!r}, "
                "which did not finish in the trace"
            )
        super()._step()

    def _event(self, future) -> Event:
        """What the trace has of this operation; an error if it has another."""
        event, op = self.recorded.pop(future.id, None), future.op
        same = event is not None and (event.device, event.op, event.round) == (
            future.device,
            op.name,
            future.round,
        )
        if same and event.tokens and op.name == "score":
            same = (event.tokens, event.last) == (op.text[event.kept :], op.last)
        elif (
            same and event.tokens and not event.cancelled
        ):  # may stop early; last: not fed
            fed = event.last if op.name == "grow" else passes(event) - 1
            most = op.n * op.width if op.name == "grow" else op.n
            same = (
                len(event.tokens) <= most
                and event.kept + event.fed == len(op.text) + fed
            )
        if not same:
            there = (
                "nothing"
                if event is None
                else f"a {event.op} by {event.device!r} in round {event.round}, {len(event.tokens)} "
                f"tokens, {event.kept} kept, {event.fed} fed"
            )
            raise SpeclibError(
                f"the replay leaves the trace at operation {future.id}: it asks for "
                f"a {op.name} by {future.device!r} in round {future.round} after "
                f"{len(op.text)} tokens; the trace has {there}. {BLAME}"
            )
        return event

    def _rows(
        self, texts: tuple[tuple[int, ...], ...], likeliest: tuple[int, ...]
    ) -> np.ndarray:
        """What the target says after ``texts``: there, what was committed there; after the last of
        them what was ``likeliest``. Off the committed text, and beyond its end, no verdict depends
        on it."""
        places = map(len, texts[: len(texts) - len(likeliest)])
        said = (self.said[n] if n < len(self.said) else 0 for n in places)
        return certain((*said, *likeliest), self.vocab)
