"""What every operation must provide.

An operation is one thing that a device can be asked to do: draft some tokens, score a
text. It is a value, contains the whole text it is about, and can be sent to another
process. A worker reuses what it can of its KV cache and feeds the rest, so no method
ever handles rollback.

An operation answers all questions about itself, so no other code branches on its name:

    on the controller   within, concerns          how far it fits, whether it matters
    in the worker       run                       what it computes
    on a clock          passes, until             its cost, its output when stopped
    on the controller   result, payload_type      for the method, and for the trace
    in a replay         recorded, is_recorded     its output, from a trace

This module uses no method, clock or world.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from speclib.core.sampling import CoinTosser, Drafted, Rows, Sampler, Tokens
from speclib.core.text import AnyText, begins_with

from .model import Model, Stopped
from .payload import OwnEvent, Payload


class DecodingRun(NamedTuple):
    """How the tokens of one text are chosen.

    ``number`` is unique: a new run starts with an empty KV cache.
    """

    number: int
    coins: CoinTosser
    sampler: Sampler
    eos: frozenset[int] = frozenset()


# -- results ---------------------------------------------------------------------------
class Output(NamedTuple):
    """What an operation computed: a small part, and an array that may be large."""

    small: Any
    rows: np.ndarray


class Performed(NamedTuple):
    """An operation that has ended; ``output``: None if it has none.

    ``kept``, ``fed``: tokens reused from the KV cache, and tokens added to it.
    """

    output: Output | None
    kept: int
    fed: int


NOTHING = Performed(None, 0, 0)


class Pass(NamedTuple):
    """``times`` forward passes that are fed ``fed`` tokens each.

    ``kept``: tokens cached before the first pass; 0 in the pass that starts a text
    (prefill). ``lp``: how many layers share an input; None in an exact pass.
    """

    fed: float
    kept: float = 1
    times: int = 1
    lp: int | None = None

    def each(self) -> Iterator[Pass]:
        """Its passes one by one; the tokens of each are cached for the next."""
        for number in range(self.times):
            yield Pass(self.fed, self.kept + number * self.fed, lp=self.lp)


class Given(NamedTuple):
    """What the method gets (``value``), and what the trace event records."""

    value: Any
    tokens: Tokens
    payload: Payload


class ToDrafts(Protocol):
    """Makes Drafted tokens from ids and q rows; without rows, q is one-hot."""

    def __call__(self, tokens: Tokens, rows: Rows | None) -> tuple[Drafted, ...]: ...


class RecordedRun(Protocol):
    """What the models of a recorded run computed, for its replay."""

    @property
    def vocab(self) -> int: ...

    def target_rows(
        self, texts: Sequence[AnyText], likeliest: Tokens, tested: bool = False
    ) -> Rows:
        """The rows after ``texts``, one-hot at what the target wrote there.

        The last rows are one-hot at ``likeliest`` instead. With ``tested``, this
        excludes rows whose text was committed.
        """
        ...


# -- operations ------------------------------------------------------------------------
@dataclass(frozen=True)
class Operation(ABC):
    """One thing that a device can be asked to do; see the top of this file."""

    text: AnyText

    name: ClassVar[str]
    payload_type: ClassVar[type[Payload]]

    # Whether its rows are distributions shaped by the sampler. With a greedy sampler
    # each row is one-hot, so only its token has to be sent.
    gives_distributions: ClassVar[bool] = False

    @property
    def last(self) -> int:
        """How many rows are wanted before the one after the whole text."""
        return 0

    @property
    def texts(self) -> tuple[AnyText, ...]:
        """The text before each of its rows; () if the target draws from no row."""
        return ()

    @property
    def most_drafts(self) -> int:
        """The most tokens that it may draft."""
        return 0

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing, so that its result is empty."""
        return False

    def within(self, tokens_left: int) -> Self:
        """The same operation, shortened to ``tokens_left`` tokens after the text."""
        return self

    def concerns(self, text: AnyText) -> bool:
        """Whether its result can still be useful once ``text`` is committed."""
        return begins_with(self.text, text)

    @abstractmethod
    def run(self, model: Model, run: DecodingRun) -> Output:
        """Runs it, in the worker. Raises Stopped if the model is stopped."""

    def passes(self, kept: int, fed: int) -> list[Pass]:
        """The forward passes of a run that reused ``kept`` tokens and fed ``fed``.

        The first pass feeds the part of the text that is not cached. All other tokens
        are fed one at a time.
        """
        first = len(self.text) - kept
        later = fed - first
        if later < 0:
            return []  # it failed before it had read its text
        passes = [Pass(fed=first, kept=kept)]
        if later:
            passes.append(Pass(fed=1, kept=len(self.text), times=later))
        return passes

    def until(self, done: Performed, share: float) -> Performed:
        """The part of ``done`` that exists after this ``share`` of its time."""
        return Performed(None, done.kept, 0)

    @abstractmethod
    def result(self, output: Output, kept: int, fed: int, to_drafts: ToDrafts) -> Given:
        """What the method gets and the trace shows, on the controller."""

    def unfinished(self) -> Payload:
        """What the trace shows if there is no output."""
        return self.payload_type()

    @abstractmethod
    def recorded(self, event: OwnEvent, recording: RecordedRun) -> Output:
        """Its output in a recorded run, from an ``event`` that has a result."""

    def is_recorded(self, event: OwnEvent) -> bool:
        """Whether a finished ``event`` of this name can belong to this operation."""
        if event.cancelled:
            return True  # it may have ended anywhere
        drafts_fed = event.payload.drafts_fed(event.tokens)
        whole = len(self.text) + drafts_fed
        return len(event.tokens) <= self.most_drafts and event.kept + event.fed == whole


def perform(operation: Operation, model: Model, run: DecodingRun) -> Performed:
    """Runs ``operation`` on ``model``, after emptying its cache if the run is new."""
    if model.run_number != run.number:
        model.run_number = run.number
        model.reset()
    kept = model.prefix.keep(operation.text, operation.last)
    if operation.is_empty:
        model.cut(kept)  # otherwise feeding does that
    count_before = model.prefix.count
    output: Output | None
    try:
        output = operation.run(model, run)
    except Stopped:
        output = None
    return Performed(output, kept, model.prefix.count - count_before)
