"""Named devices, and futures for their operations.

This module does not depend on a clock or on hardware.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Generic, Protocol, TypeAlias, TypeVar

from speclib.arguments import Whole
from speclib.core.candidate_tree import CandidateTree
from speclib.core.features import Features
from speclib.core.sampling import Drafted, Rows
from speclib.core.settings import Role
from speclib.core.text import as_text
from speclib.errors import BadValue, SpeclibError
from speclib.operations.draft_dynamic_tree import DraftDynamicTree
from speclib.operations.draft_phrase import DraftPhrase, Phrase
from speclib.operations.draft_sequences import DraftSequences
from speclib.operations.draft_tree import DraftTree
from speclib.operations.fork import Branches, Fork
from speclib.operations.operation import Operation
from speclib.operations.propose import Propose
from speclib.operations.score import (
    RowsAndFeatures,
    Score,
    ScoreTree,
    ScoreTreeFeatures,
)

Value = TypeVar("Value")


# How torch and Python report that memory is full.
NO_MEMORY = "out of memory|allocate memory|not enough memory"


class DeviceLost(SpeclibError):
    """A device died or hung; the message names the device and the cause.

    A method with other devices may continue without it.
    """


class DeviceFailed(SpeclibError):
    """An operation raised an error; the message names the device and the cause.

    The device still works, or is replaced for the next request. The error ends the
    method even if the method is waiting for other operations: repeating this one would
    raise it again.
    """


class Cancelled(SpeclibError):
    """The operation ended early because its result was no longer wanted."""


class Future(Generic[Value]):
    """One operation that was submitted to a device.

    Once ``done``, it has a ``value``, or the ``error`` that prevented one. Times are
    seconds since the request began: ``start``, when the device began it; ``sent`` and
    ``received``, when the question left and the answer arrived (None on a clock where
    messages take no time). ``cancelled``: no longer wanted.
    """

    __slots__ = (
        "op",
        "device",
        "id",
        "round",
        "start",
        "sent",
        "received",
        "done",
        "cancelled",
        "value",
        "error",
    )

    def __init__(self, op: Operation, device: str, id: int, round: int):
        self.op = op
        self.device = device
        self.id = id
        self.round = round
        self.start = 0.0
        self.sent: float | None = None
        self.received: float | None = None
        self.done = False
        self.cancelled = False
        self.value: Value | None = None
        self.error: Exception | None = None

    def result(self) -> Value:
        """The value of a future that is done and has no error."""
        assert self.value is not None, f"{self.op.name} has no result"
        return self.value


AnyFuture: TypeAlias = "Future[Any]"


def cause_of(error: Exception) -> str:
    """The reason why an operation failed, in words."""
    is_our_own = isinstance(error, SpeclibError)
    cause = str(error) if is_our_own else f"{type(error).__name__}: {error}"
    if isinstance(error, MemoryError) or re.search(NO_MEMORY, cause):
        cause += (
            " (out of memory: free some, or give a smaller model or dtype='bfloat16')"
        )
    return cause


def failed(device: str, operation: Operation, cause: str) -> DeviceFailed:
    """Makes the error for an operation that failed on ``device`` for this ``cause``."""
    return DeviceFailed(f"device {device!r} failed in {operation.name}: {cause}")


def failed_by(device: str, operation: Operation, raised: Exception) -> DeviceFailed:
    """Like ``failed``, for an error ``raised`` in this process; keeps its traceback."""
    error = failed(device, operation, cause_of(raised))
    error.__cause__ = raised
    return error


# No paper uses more targets, and each of them is another copy of the model.
MOST_TARGETS = 1000
Servers: TypeAlias = Annotated[int, Whole(least=1, most=MOST_TARGETS)]


def device_names(targets: int = 1) -> tuple[str, ...]:
    """The names of one draft and ``targets`` targets: draft, target, target-2, ..."""
    if not Whole(least=1, most=MOST_TARGETS).allows(targets):
        raise BadValue(
            f"servers is {targets!r}: give at least 1 target server, and at most "
            f"{MOST_TARGETS:,}"
        )
    further = [f"target-{number}" for number in range(2, targets + 1)]
    return ("draft", "target", *further)


class Submits(Protocol):
    """The part of a world that a device needs."""

    @property
    def context(self) -> int:
        """The longest text, in tokens, that every model accepts."""
        ...

    @property
    def complete_length(self) -> int:
        """The length of the finished text, unless an end token comes first."""
        ...

    @property
    def mask(self) -> int | None:
        """The mask of a draft that writes all tokens in one pass; see ``Propose``."""
        ...

    def submit(self, device: str, op: Operation) -> AnyFuture:
        """Queues ``op`` on ``device``."""
        ...


class Device:
    """A named device for one model.

    It submits operations, and does not know when or where they run. It never drafts
    beyond the end of the text.

    ``role``: draft or target. ``index``: its number among the devices of its role,
    from 0.
    """

    def __init__(self, world: Submits, name: str):
        self.world = world
        self.name = name
        role, _, number = name.partition("-")  # "target-2": the second target
        self.role: Role = "draft" if role == "draft" else "target"
        self.index = int(number or 1) - 1

    def ask(self, operation: Operation) -> AnyFuture:
        """Submits ``operation``, shortened to fit the models' context."""
        tokens_left = max(0, self.world.context - len(operation.text))
        return self.world.submit(self.name, operation.within(tokens_left))

    def _useful(self, n: int, length: int) -> int:
        """The number of drafts after a text of ``length``, up to ``n`` or its end."""
        return max(0, min(n, self.world.complete_length - length))

    def propose(
        self,
        text: Sequence[int],
        n: int,
        index: int = 0,
        confidence: float | None = None,
    ) -> Future[tuple[Drafted, ...]]:
        """A future of ``n`` Drafted tokens after ``text`` (see ``Propose``).

        There are fewer if the text or the context ends first, or if the draft's
        probability of a token is lower than ``confidence``.
        """
        mask = self.world.mask
        useful = self._useful(n, len(text))
        return self.ask(Propose(as_text(text), useful, index, confidence, mask))

    def draft_phrase(
        self,
        text: Sequence[int],
        n: int,
        tokens: Sequence[int],
        parents: Sequence[int],
        candidates: int,
        likeliest_count: int = 0,
    ) -> Future[Phrase]:
        """A future of 1 to ``n`` Drafted tokens after ``text``, from one pass.

        ``tokens`` and ``parents`` describe a tree after ``text``. See ``DraftPhrase``
        for the other arguments.
        """
        whole = as_text(text) + tuple(tokens)
        useful = self._useful(n, len(text))
        return self.ask(
            DraftPhrase(whole, useful, tuple(parents), candidates, likeliest_count)
        )

    def draft_sequences(
        self, text: Sequence[int], budget: int, k: int | None = None, most: int = 8
    ) -> Future[tuple[tuple[Drafted, ...], ...]]:
        """A future of k sequences of Drafted tokens after ``text`` (see
        ``DraftSequences``).

        ``budget``: their tokens in total; fewer if the text or the context ends first.
        """
        useful = self._useful(budget, len(text))
        return self.ask(DraftSequences(as_text(text), useful, k, most))

    def fork(
        self,
        text: Sequence[int],
        n: int,
        fan: Sequence[int],
        index: int = 0,
        factor: float = 1.0,
        likeliest: int = 0,
    ) -> Future[Branches]:
        """A future of ``n`` Drafted tokens for each likely outcome of a test (see
        ``Fork``).

        ``text`` ends with the drafted tokens that are under test. There are fewer new
        drafts if the text or the context ends first.
        """
        window = len(fan) - 1
        shortest = len(text) - window + 1  # the shortest text that ends with a guess
        operation = Fork(
            as_text(text),
            self._useful(n, shortest),
            tuple(fan),
            index,
            factor,
            likeliest,
            self.world.mask,
        )
        return self.ask(operation)

    def draft_tree(
        self,
        text: Sequence[int],
        levels: int,
        width: int,
        budget: int | None = None,
        lp: int | None = None,
        calibrate: bool = True,
    ) -> Future[CandidateTree]:
        """A future of a tree of Drafted tokens after ``text`` (see ``DraftTree``).

        It has fewer levels if the text, the context or the ``budget`` ends first.
        """
        useful = self._useful(levels, len(text))
        operation = DraftTree(as_text(text), useful, width, budget, lp, calibrate)
        return self.ask(operation)

    def draft_dynamic_tree(
        self,
        text: Sequence[int],
        levels: int,
        width: int,
        budget: int,
        features: Features | None = None,
    ) -> Future[CandidateTree]:
        """A future of the ``budget`` likeliest nodes after ``text`` (see
        ``DraftDynamicTree``).

        It has fewer levels if the text or the context ends first.
        """
        useful = self._useful(levels, len(text))
        operation = DraftDynamicTree(as_text(text), useful, width, budget, features)
        return self.ask(operation)

    def score(self, text: Sequence[int], last: int = 0) -> Future[Rows]:
        """A future of rows [last + 1, V]: p after text[:-last] ... p after text."""
        return self.ask(Score(as_text(text), last))

    def score_tree(
        self,
        text: Sequence[int],
        tokens: Sequence[int],
        parents: Sequence[int],
        likeliest_count: int = 0,
        tested: bool = False,
    ) -> Future[Rows]:
        """A future of rows [len(tokens) + 1, V]: p after ``text``, and after each node.

        ``tokens`` and ``parents`` describe a tree after ``text``. See ``ScoreTree`` for
        ``likeliest_count`` and ``tested``.
        """
        whole = as_text(text) + tuple(tokens)
        operation = ScoreTree(whole, tuple(parents), likeliest_count, tested)
        return self.ask(operation)

    def score_tree_features(
        self, text: Sequence[int], tokens: Sequence[int], parents: Sequence[int]
    ) -> Future[RowsAndFeatures]:
        """Like ``score_tree``, plus the features of the tokens that the pass feeds."""
        whole = as_text(text) + tuple(tokens)
        return self.ask(ScoreTreeFeatures(whole, tuple(parents)))
