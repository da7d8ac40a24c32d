"""The seam between methods and devices.

A method has one thread of decisions and several busy devices. So it is a plain function that
submits operations to devices and waits for their futures; nothing in it is async, and it knows
neither time nor hardware. A world runs it:

    devices   named; each does one operation at a time, first come, first served; ``draft`` and
              ``target``, and where there are more of a kind ``drafts`` and ``targets``
    submit    queue an operation on a device, get a Future
    all       wait for every one of some futures, return their results in order
    first     wait until any of some futures is done, return that future
    cancel    the result is not wanted any more; a device that runs it is freed by the world's
              ``cancel`` policy: "immediate" at once, "after-op" when its operation ends
    commit    the only way to emit tokens: cuts at EOS and at the limit exactly as plain decoding
              would, stamps the time; ``going`` then ends the method's loop

Subclasses provide ``now``, ``ratio``, ``vocab``, ``_start`` (an idle device begins an operation),
``_step`` (something ends), ``_abort``. What must not differ between clocks is here.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import count, islice, repeat, takewhile

from speclib.core.sampling import Coins, Drafted, Sampler, certain
from speclib.errors import SpeclibError
from speclib.operations.operation import Request
from speclib.trace.events import Event, Trace

from .devices import Cancelled, Device, DeviceLost, Future


class World:
    kind = "abstract"  # "virtual", "emulated" or "measured"
    context = 1 << 30  # the longest text, in tokens, that every model accepts
    vocab: int  # the rows that every model has
    now: float  # seconds since the request began
    ratio: float  # c: seconds of one target pass over one of the draft
    runs = count()

    def __init__(self, names: tuple[str, ...], cancel: str = "after-op"):
        if cancel not in ("immediate", "after-op"):
            raise SpeclibError(f"cancel is {cancel!r}: give 'immediate' or 'after-op'")
        self.cancel_policy = cancel
        self.devices = {name: Device(self, name) for name in names}
        self.drafts = tuple(d for d in self.devices.values() if d.role == "draft")
        self.targets = tuple(d for d in self.devices.values() if d.role == "target")
        self.draft, self.target = self.drafts[0], self.targets[0]
        self._queue = {name: deque() for name in names}
        self._running: dict[str, Future | None] = dict.fromkeys(names)
        self.text, self._events = (), []

    # -- one request ------------------------------------------------------------------------
    def begin(
        self,
        prompt,
        *,
        sampler: Sampler,
        coins: Coins,
        limit: int,
        eos: frozenset = frozenset(),
        on_commit=None,
    ) -> None:
        """Starts a request: empty KV caches, clock at zero, ``prompt`` as the text."""
        self._drain()
        self.request = Request(next(World.runs), coins, sampler, eos)
        self.coins, self.text, self.round = coins, tuple(prompt), 0
        self.limit = self.left = limit  # tokens to commit, and those still allowed
        self._on_commit, self._ids, self.going = on_commit, count(), True
        self._events, self._outcomes, self._marked = [], {}, []
        self._zero()
        self._answered = self.now  # when the method last had what it waited for

    def end(self, **meta) -> Trace:
        """Ends the request: drops what is queued, waits for what runs, returns the trace."""
        self._drain()
        events = [
            e._replace(outcome=tuple(self._outcomes.get(e.id, ())))
            for e in self._events
        ]
        return Trace(
            events,
            {
                "devices": list(self.devices),
                "clock": self.kind,
                "cancel": self.cancel_policy,
                "limit": self.limit,
                "eos": sorted(self.request.eos),
                **meta,
            },
        )

    def _drain(self) -> None:
        """Leaves every device idle."""
        queued = (f for queue in self._queue.values() for f in queue)
        self.cancel(*queued, *filter(None, self._running.values()))
        while any(self._running.values()):
            self._step()

    def commit(self, tokens) -> None:
        """Emits ``tokens`` (one call per iteration; none is allowed) and ends the round. What lies
        beyond EOS or the limit is not emitted, and its drafts count as never tested."""
        tokens = tuple(tokens)[: self.left]
        stop = next((i for i, t in enumerate(tokens) if t in self.request.eos), None)
        tokens = (
            () if not self.going else tokens if stop is None else tokens[: stop + 1]
        )
        self.text += tokens
        self.left -= len(tokens)
        self.going &= stop is None and self.left > 0
        for drafted in self._marked[len(tokens) :]:
            self._outcomes[drafted.op][drafted.index] = "wasted"
        self._marked.clear()
        self._events.append(
            Event(
                self._answered,
                self.now - self._answered,
                "controller",
                "commit",
                next(self._ids),
                self.round,
                tokens,
                (),
                self.kind,
            )
        )
        self.round += 1
        if self._on_commit and tokens:
            self._on_commit(tokens)

    def mark(self, drafted: Drafted, outcome: str) -> None:
        """A method's verdict on a drafted token, in the order of the text, before its commit."""
        self._marked.append(drafted)
        self._outcomes[drafted.op][drafted.index] = outcome

    def guess(self, tokens) -> tuple[Drafted, ...]:
        """``tokens`` after the text as drafts that no model made (q is one-hot), as far as the
        vocabulary, the context and the next end token allow; the trace's "lookup"."""
        fit = takewhile(lambda t: t < self.vocab and t not in self.request.eos, tokens)
        tokens, op = (
            tuple(islice(fit, max(0, self.context - len(self.text)))),
            next(self._ids),
        )
        if tokens:
            self._events.append(
                Event(
                    self.now,
                    0.0,
                    "controller",
                    "lookup",
                    op,
                    self.round,
                    tokens,
                    (),
                    self.kind,
                )
            )
        return self._drafted(op, tokens)

    def _drafted(self, op: int, tokens, rows=None) -> tuple[Drafted, ...]:
        self._outcomes[op] = ["wasted"] * len(tokens)
        rows = (
            certain(tokens, self.vocab) if rows is None else rows
        )  # the draft is sure
        return tuple(map(Drafted, tokens, rows, repeat(op), count()))

    # -- operations -------------------------------------------------------------------------
    def submit(self, device: str, op) -> Future:
        future = Future(op, device, next(self._ids), self.round)
        if self._running[device] is None:
            self._launch(future)
        else:
            self._queue[device].append(future)
        return future

    def all(self, *futures: Future) -> tuple:
        for future in futures:
            while not future.done:
                self._step()
            if future.error is not None:
                raise future.error
        self._answered = self.now
        return tuple(f.value for f in futures)

    def wait(self, future: Future):
        """The result of one future."""
        return self.all(future)[0]

    def first(self, *futures: Future) -> Future:
        while True:
            for future in futures:
                if future.done:
                    self._answered = self.now
                    return future
            self._step()

    def cancel(self, *futures: Future) -> None:
        live = [f for f in dict.fromkeys(futures) if not (f.done or f.cancelled)]
        waiting = [f for f in live if self._running[f.device] is not f]
        for future in waiting:  # first these: an aborted device starts its next one
            self._queue[future.device].remove(future)
        for future in live:
            future.cancelled = True
            if future not in waiting and self.cancel_policy == "immediate":
                self._abort(future)

    def _launch(self, future: Future) -> None:
        self._running[future.device] = future
        future.start = self.now
        self._start(future)

    def _finish(
        self,
        future: Future,
        value,
        end: float,
        kept: int,
        fed: int,
        error=None,
        overrun: bool = False,
    ) -> None:
        """A device's operation ended: record it, hand over its result, start the next one."""
        future.done, future.error, op = True, error, future.op
        self._running[future.device], shown = (
            None,
            self._result(future, value, kept, fed),
        )
        self._events.append(
            Event(
                future.start,
                end - future.start,
                future.device,
                op.name,
                future.id,
                future.round,
                (),
                (),
                self.kind,
                kept,
                fed,
                getattr(op, "last", 0),
                overrun,
                isinstance(error, DeviceLost),
                isinstance(error, Cancelled),
            )._replace(**shown)
        )
        if self._queue[future.device]:
            self._launch(self._queue[future.device].popleft())

    def _result(self, future: Future, value, kept: int, fed: int) -> dict:
        """Sets the future's value; what its event shows of it."""
        if value is None:
            return {}
        future.value, shown = future.op.result(
            value, kept, fed, partial(self._drafted, future.id)
        )
        return shown

    # -- what a clock provides --------------------------------------------------------------
    def _zero(self) -> None: ...
    def _start(self, future: Future) -> None: ...
    def _step(self) -> None: ...
    def _abort(self, future: Future) -> None: ...

    def close(self) -> None:
        """Gives devices back, for good."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


__all__ = ["Cancelled", "Device", "DeviceLost", "Future", "World"]
