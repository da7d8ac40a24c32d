"""The seam between methods and devices.

A method has one thread of decisions and several busy devices. So it is a plain function
that submits operations to devices and waits for their futures. It contains no async
code, and knows neither time nor hardware. A world runs it:

    devices   have names, and each does one operation at a time, first come, first
              served. A world has a ``draft`` and a ``target``; ``drafts`` and
              ``targets`` list all of each kind
    submit    queues an operation on a device and returns a Future
    all       waits for all the given futures and returns their results in order
    first     waits until one of the given futures is done and returns it
    earliest  waits as ``first`` does, and returns every future that is done by then
    cancel    marks results as no longer wanted. The cancel policy decides when a
              busy device is free again: at once ("immediate"), or when its operation
              ends ("after-op")
    errors    if an operation raises an error, the method's next wait raises
              DeviceFailed and so ends the method. The only failure that a method need
              handle is the loss of a device
    commit    is the only way to emit tokens. It cuts at an end token and at the limit
              exactly as plain decoding would, and records the time. When the text is
              complete, it sets ``going`` to False, which ends the method's loop

This file contains everything that must not differ between clocks. A subclass (Virtual,
RealDevices) is a clock. It provides ``now``, ``cost_ratio``, ``vocab``, ``_start``
(begins an operation), ``_step`` (waits until one ends) and ``_abort``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import count
from typing import Any, NoReturn, Self, TypeVar, overload

import numpy as np

from speclib.core.sampling import (
    CoinTosser,
    Drafted,
    Row,
    Rows,
    Sampler,
    Tokens,
    certain,
)
from speclib.core.settings import EndTokens, end_token_set
from speclib.core.text import Text
from speclib.errors import BadValue, SpeclibError
from speclib.operations.operation import DecodingRun, Operation, Performed
from speclib.trace.events import COMMIT, CONTROLLER, LOOKUP, Event, Trace

from .cost_ratio import CostRatio
from .devices import AnyFuture, Cancelled, Device, DeviceFailed, DeviceLost, Future
from .owner import Owner, WorldNotFree, check_answer

CANCEL_POLICIES = ("immediate", "after-op")

A = TypeVar("A")
B = TypeVar("B")


class World:
    """The world that a method runs in; see the top of this file.

    ``names``: the devices' names. ``cancel``: the cancel policy. ``opened``: the
    OpenPair whose models the devices run (``models.open_pair``), if any. It is untyped
    here, because toys on a simulated clock need none of its code. ``context``: the
    longest text, in tokens, that every model accepts. ``mask``: the mask token of a
    draft that writes all its tokens in one pass (see ``Propose``). ``dtype``: the
    models' dtype.
    """

    kind = "abstract"  # "virtual", "emulated" or "measured"
    context = 1 << 30
    mask: int | None = None
    dtype = "auto"

    _run_numbers = count()  # unique in this process

    def __init__(
        self,
        names: Sequence[str],
        cancel: str = "after-op",
        opened: Any = None,
    ):
        self.owner = Owner()
        self.opened = opened
        if opened is not None:
            self.context = opened.context
            self.mask = opened.pair.draft.mask
        if cancel not in CANCEL_POLICIES:
            raise BadValue(f"cancel is {cancel!r}: give 'immediate' or 'after-op'")
        self.cancel_policy = cancel
        self.devices = {name: Device(self, name) for name in names}
        self.drafts = self._devices_of("draft")
        self.targets = self._devices_of("target")
        if not self.drafts or not self.targets:
            raise BadValue(
                f"the devices are {list(names)}: a world needs a 'draft' and a 'target'"
            )
        self.draft = self.drafts[0]
        self.target = self.targets[0]
        self.text = Text([], 0)

        self._queue: dict[str, deque[AnyFuture]] = {name: deque() for name in names}
        self._running: dict[str, AnyFuture | None] = dict.fromkeys(names)
        self._events: list[Event] = []
        self._failure: DeviceFailed | None = None  # to be raised in the next wait

    @cached_property
    def datastore(self) -> Any:
        """The texts that REST searches, opened on first use.

        None: it searches the request's own text.
        """
        return None if self.opened is None else self.opened.datastore

    @property
    def eos(self) -> frozenset[int]:
        """The tokens that end the text."""
        return self.run.eos

    @property
    def complete_length(self) -> int:
        """The length of the finished text, unless an end token comes first."""
        return len(self.text) + self.left

    def _devices_of(self, role: str) -> tuple[Device, ...]:
        return tuple(d for d in self.devices.values() if d.role == role)

    # -- one request -------------------------------------------------------------------
    def begin(
        self,
        prompt: Sequence[int],
        *,
        sampler: Sampler,
        coins: CoinTosser,
        limit: int,
        eos: EndTokens = (),
        on_commit: Callable[[Tokens], object] | None = None,
    ) -> None:
        """Starts a request: empty KV caches, the clock at zero, ``prompt`` as the text.

        ``limit``: the most tokens to commit. ``eos``: tokens that end the text.
        ``on_commit``: called with the tokens of every commit, unless it is empty.

        Raises WorldNotFree if another thread's request is running, if called by
        ``on_commit``, if the world is closed, or if another process opened the world.
        """
        end_tokens = end_token_set(eos)
        self.owner.take()
        try:
            self._make_ready()
        except BaseException:
            self.owner.give_back()
            raise
        number = next(World._run_numbers)
        self.run = DecodingRun(number, coins, sampler, end_tokens)
        self.coins = coins
        self._log = list(prompt)  # followed by the committed tokens
        self.text = Text(self._log, len(self._log))
        self.round = 0
        self.limit = limit
        self.left = limit  # tokens that may still be committed
        self.going = True
        self._on_commit = on_commit

        self._failure = None
        self._events = []
        self._event_ids = count()
        self._outcomes: dict[int, list[str]] = {}  # the fate of drafts, by event id
        self._marked: list[Drafted] = []  # tested since the last commit
        self._zero()
        self._answered = self.now  # when the method's last wait ended

    def end(self, **meta: Any) -> Trace:
        """Ends the request and returns its trace.

        Drops queued operations and waits for running ones. ``meta``: further entries
        for the trace's ``meta``.
        """
        self._drain()
        events = []
        for event in self._events:
            outcome = tuple(self._outcomes.get(event.id, ()))
            events.append(event._replace(outcome=outcome))
        own_meta = {
            "devices": list(self.devices),
            "clock": self.kind,
            "cancel": self.cancel_policy,
            "limit": self.limit,
            "eos": sorted(self.eos),
        }
        if self.mask is not None:
            own_meta["mask"] = self.mask
        trace = Trace(events, own_meta | self._facts() | meta)
        self.owner.give_back()
        return trace

    def give_up(self) -> None:
        """Ends a failed request; the next ``begin`` ends its running operations."""
        self.going = False
        self.owner.give_back()

    def _facts(self) -> dict[str, Any]:
        """The entries that a subclass adds to a trace's ``meta``."""
        return {}

    def _make_ready(self) -> None:
        """Makes every device idle and available."""
        self._drain()

    def _drain(self) -> None:
        """Makes every device idle."""
        unwanted: list[AnyFuture] = []
        for queue in self._queue.values():
            unwanted += queue
        for running in self._running.values():
            if running is not None:
                unwanted.append(running)
        self.cancel(*unwanted)
        while any(self._running.values()):
            self._step()

    # -- tokens ------------------------------------------------------------------------
    def commit(self, tokens: Sequence[int]) -> None:
        """Emits ``tokens``, if any, and ends the round.

        A method calls it once per iteration. Tokens after an end token or beyond the
        limit are not emitted; drafts among them count as never tested.
        """
        committed, is_over = self._allowed(tuple(tokens))
        self._log += committed
        self.text = Text(self._log, len(self._log))
        self.left -= len(committed)
        if is_over or self.left <= 0:
            self.going = False

        for drafted in self._marked[len(committed) :]:
            self._outcomes[drafted.operation][drafted.nth] = "discarded"
        self._marked.clear()

        self._record(COMMIT, next(self._event_ids), self._answered, self.now, committed)
        self.round += 1
        if self._on_commit and committed:
            self.owner.is_in_callback = True
            try:
                check_answer(self._on_commit(committed))
            finally:
                self.owner.is_in_callback = False

    def _allowed(self, tokens: Tokens) -> tuple[Tokens, bool]:
        """The tokens that may be committed, and whether an end token is among them."""
        tokens = tokens[: self.left]
        end = None
        for index, token in enumerate(tokens):
            if token in self.eos:
                end = index
                break

        is_over = end is not None
        if not self.going:
            return (), is_over
        if end is not None:
            tokens = tokens[: end + 1]
        return tokens, is_over

    def mark(self, drafted: Drafted, outcome: str) -> None:
        """Records what became of a drafted token: "accepted" or "rejected".

        Methods mark drafts in the order of the text, before they commit.
        """
        self._marked.append(drafted)
        self._outcomes[drafted.operation][drafted.nth] = outcome

    def guess(
        self, tokens: Iterable[int], row: Row | None = None
    ) -> tuple[Drafted, ...]:
        """Turns ``tokens`` into drafts that follow the text, without a model.

        ``row``: the distribution that each was drawn from; None: q is one-hot. The
        drafts stop before an end token, before a token outside the vocabulary, and at
        the end of the context. The trace records them as a lookup.
        """
        tokens_left = max(0, self.context - len(self.text))
        guessed: list[int] = []
        for token in tokens:
            is_end = token in self.eos
            if token >= self.vocab or is_end or len(guessed) == tokens_left:
                break
            guessed.append(token)

        lookup = next(self._event_ids)
        if guessed:
            now = self.now
            self._record(LOOKUP, lookup, now, now, tuple(guessed))
        rows = None if row is None else np.tile(row, (len(guessed), 1))
        return self._make_drafts(lookup, tuple(guessed), rows)

    def _record(
        self, op: str, id: int, start: float, end: float, tokens: Tokens
    ) -> None:
        """Records a step of the controller as an event."""
        event = Event(
            ts=start,
            dur=end - start,
            device=CONTROLLER,
            op=op,
            id=id,
            round=self.round,
            tokens=tokens,
            outcome=(),
            clock=self.kind,
        )
        self._events.append(event)

    def _make_drafts(
        self, operation: int, tokens: Tokens, rows: Rows | None = None
    ) -> tuple[Drafted, ...]:
        """Makes Drafted tokens, not tested yet, for the event with id ``operation``."""
        self._outcomes[operation] = ["discarded"] * len(tokens)
        if rows is None:
            rows = certain(tokens, self.vocab)
        drafted = []
        for nth, (token, q) in enumerate(zip(tokens, rows, strict=False)):
            drafted.append(Drafted(token, q, operation, nth))
        return tuple(drafted)

    # -- operations --------------------------------------------------------------------
    def submit(self, device: str, op: Operation) -> AnyFuture:
        """Queues ``op`` on ``device``; it begins at once if the device is idle."""
        future: AnyFuture = Future(op, device, next(self._event_ids), self.round)
        if self._running[device] is None:
            self._launch(future)
        else:
            self._queue[device].append(future)
        return future

    @overload
    def all(self, first: Future[A], second: Future[B], /) -> tuple[A, B]: ...
    @overload
    def all(self, *futures: AnyFuture) -> tuple[Any, ...]: ...
    def all(self, *futures: AnyFuture) -> tuple[Any, ...]:
        """Waits for all ``futures`` and returns their results in order.

        Raises the error of a future that failed.
        """
        for future in futures:
            while not future.done:
                self._wait_on()
            if future.error is not None:
                raise future.error
        self._answered = self.now
        return tuple(future.value for future in futures)

    def wait(self, future: Future[A]) -> A:
        """Waits for one future, and returns its result."""
        self.all(future)
        return future.result()

    def first(self, *futures: AnyFuture) -> AnyFuture:
        """Waits until one of ``futures`` is done, and returns it.

        Unlike ``all``, it raises neither for a lost device nor for a cancelled future.
        """
        while True:
            for future in futures:
                if future.done:
                    self._answered = self.now
                    return future
            self._wait_on()

    def earliest(self, *futures: AnyFuture) -> list[AnyFuture]:
        """Waits until one of ``futures`` is done; returns all that are done by then.

        On the virtual clock, these are all the futures that end at the same moment, in
        the order given. So the method's decision does not depend on which one the clock
        handles first. On a real clock, no two end at the same moment. Raises the same
        errors as ``first``.
        """
        self.first(*futures)
        self._end_moment()
        self._raise_failure()
        self._answered = self.now
        return [future for future in futures if future.done]

    def _wait_on(self) -> None:
        """Waits until an operation ends. Raises the error of any that failed.

        Otherwise, a method that waits for other operations might never see the error.
        """
        if not any(self._running.values()):
            raise SpeclibError(
                "the method waits for an operation that was cancelled or never "
                "submitted: nothing is running"
            )
        self._step()
        self._raise_failure()

    def _raise_failure(self) -> None:
        """Raises, once, the error of a failed operation that was not cancelled."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def cancel(self, *futures: AnyFuture) -> None:
        """Marks the results of ``futures`` as no longer wanted."""
        unfinished = []
        for future in dict.fromkeys(futures):
            if not future.done and not future.cancelled:
                unfinished.append(future)

        # Drop queued operations first: an aborted device starts the next in its queue.
        running = []
        for future in unfinished:
            if self._running[future.device] is future:
                running.append(future)
            else:
                self._queue[future.device].remove(future)
        for future in unfinished:
            future.cancelled = True
        for future in running:
            if self.cancel_policy == "immediate":
                self._abort(future)

    def _launch(self, future: AnyFuture) -> None:
        self._running[future.device] = future
        future.start = self.now
        self._start(future)

    def _finish(
        self,
        future: AnyFuture,
        performed: Performed,
        end: float,
        error: Exception | None = None,
        overrun: bool = False,
    ) -> None:
        """Stores the result of an operation that ended, and starts the next one."""
        future.done = True
        future.error = error
        self._running[future.device] = None
        if isinstance(error, DeviceFailed) and not future.cancelled:
            self._failure = self._failure or error

        tokens: Tokens = ()
        output, kept, fed = performed
        if output is None:
            payload = future.op.unfinished()
        else:  # an aborted operation may still have drafted something
            make_drafts = partial(self._make_drafts, future.id)
            given = future.op.result(output, kept, fed, make_drafts)
            future.value, tokens, payload = given

        self._events.append(
            Event(
                ts=future.start,
                dur=end - future.start,
                device=future.device,
                op=future.op.name,
                id=future.id,
                round=future.round,
                tokens=tokens,
                outcome=(),
                clock=self.kind,
                kept=kept,
                fed=fed,
                payload=payload,
                sent=future.sent,
                received=future.received,
                overrun=overrun,
                lost=isinstance(error, DeviceLost),
                cancelled=isinstance(error, Cancelled),
            )
        )
        if self._queue[future.device]:
            self._launch(self._queue[future.device].popleft())

    # -- what a clock provides ---------------------------------------------------------
    @property
    def now(self) -> float:
        """Seconds since the request began."""
        raise NotImplementedError

    @property
    def cost_ratio(self) -> CostRatio:
        """c, the target's time per pass divided by the draft's, and its spread."""
        raise NotImplementedError

    @property
    def ratio(self) -> float:
        """c as a number."""
        return self.cost_ratio.value

    @property
    def drafts_per_target_pass(self) -> float:
        """The number of drafts that take as long as a target pass, messages included.

        This is c, unless the devices are on several machines. A message to the target
        may then take longer than one to the draft.
        """
        return self.ratio

    @property
    def vocab(self) -> int:
        """The size of the target's vocabulary, and so of every distribution."""
        raise NotImplementedError

    def _zero(self) -> None:
        """Sets the clock to zero."""

    def _start(self, future: AnyFuture) -> None:
        """Begins an operation on an idle device."""
        raise NotImplementedError

    def _step(self) -> None:
        """Waits until an operation ends, and calls ``_finish`` for it."""
        raise NotImplementedError

    def _end_moment(self) -> None:
        """Handles all that ends at this moment. On a real clock, this does nothing."""

    def _abort(self, future: AnyFuture) -> None:
        """Frees a device from an operation that is no longer wanted."""
        raise NotImplementedError

    # -- closing -----------------------------------------------------------------------
    def close(self) -> None:
        """Releases the devices for good. In a forked child, leaves them alone."""
        self.owner.close()

    def __reduce__(self) -> NoReturn:
        raise WorldNotFree(
            "a world cannot be copied or sent to another process: open one there"
        )

    def __enter__(self) -> Self:
        self.owner.check()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
