"""The models of one device that serves several requests, and their shared passes.

The operations of all seats are performed side by side: each runs until its model needs
a pass. Then one pass is made for all of them::

    seat 0    propose 3    pass    pass    pass
    seat 1    propose 1    pass
                            |       |       |
    the network          2 texts  1 text  1 text
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speclib.core.settings import Role
from speclib.models.open_pair import OpenPair
from speclib.operations.operation import (
    NOTHING,
    DecodingRun,
    Given,
    Operation,
    Output,
    Pass,
    Performed,
    RecordedRun,
    ToDrafts,
    perform,
)
from speclib.operations.payload import OwnEvent, Payload

from .turns import Turn

if TYPE_CHECKING:
    from speclib.models.batched import Feed, SharedNetwork


class SeatTask(NamedTuple):
    """A seat's operation, with its text, and the run that it belongs to."""

    seat: int
    operation: Operation
    run: DecodingRun


@dataclass(frozen=True)
class Together(Operation):
    """The tasks of several seats for one device in a step, as a single operation.

    Its own text is empty. No trace contains it: the seats' traces contain its parts.
    """

    tasks: tuple[SeatTask, ...] = ()

    name = "together"
    payload_type = Payload

    def run(self, model: Any, run: DecodingRun) -> Output:
        """Performs the tasks in order; ``model``: SeatedModels."""
        return Output(model.perform(self.tasks), np.empty(0))

    def result(self, output: Output, kept: int, fed: int, to_drafts: ToDrafts) -> Given:
        return Given(output.small, (), self.unfinished())

    def recorded(self, event: OwnEvent, recording: RecordedRun) -> Output:
        raise NotImplementedError("no trace contains the operations of a batch")


class SeatedModels:
    """The models of ``role``, one for each seat; see ``OpenPair.build_seats``."""

    def __init__(
        self, opened: OpenPair, role: Role, seats: int, dtype: str, dilated: bool
    ):
        self._turn: Turn | None = None  # of the seat that is running
        self._network: SharedNetwork | None = None
        self._feeds: list[tuple[Turn, Feed]] = []  # of the next pass
        self._logits: dict[Turn, Any] = {}
        self._models = opened.build_seats(
            role, seats, dtype, dilated=dilated, ask=self._ask
        )

    def perform(self, tasks: Sequence[SeatTask]) -> list[Performed | Exception]:
        """Performs all tasks; returns the outcome of each, or its error."""
        outcomes: list[Performed | Exception] = [NOTHING] * len(tasks)

        def perform_one(number: int) -> None:
            seat, operation, run = tasks[number]
            try:
                outcomes[number] = perform(operation, self._models[seat], run)
            except Exception as error:
                outcomes[number] = error

        turns = [Turn(partial(perform_one, number)) for number in range(len(tasks))]
        try:
            while not all(turn.is_over for turn in turns):
                for turn in turns:
                    if not turn.is_over:
                        self._turn = turn
                        turn.resume()
                self._make_pass()
        finally:
            for turn in turns:
                turn.give_up()
        return outcomes

    def _ask(self, network: SharedNetwork, feed: Feed) -> Any:
        """Called in a seat's turn; returns its logits once the shared pass is made."""
        turn = self._turn
        assert turn is not None, "a seat runs in its turn"
        self._network = network
        self._feeds.append((turn, feed))
        turn.pause()
        return self._logits.pop(turn)

    def _make_pass(self) -> None:
        """Makes the pass that seats wait for, if any."""
        feeds, self._feeds = self._feeds, []
        if not feeds:
            return
        assert self._network is not None, "a feed comes with its network"
        logits = self._network.logits([feed for _, feed in feeds])
        for (turn, _), own in zip(feeds, logits, strict=True):
            self._logits[turn] = own


def passes_of(
    operations: Sequence[Operation], outcomes: Sequence[Performed | Exception]
) -> list[list[Pass]]:
    """The passes of each operation that did not fail."""
    passes = []
    for operation, outcome in zip(operations, outcomes, strict=True):
        if isinstance(outcome, Performed):
            passes.append(operation.passes(outcome.kept, outcome.fed))
    return passes
