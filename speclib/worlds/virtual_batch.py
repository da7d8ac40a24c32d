"""Requests in lock-step on a simulated clock; only durations are simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from speclib.core.settings import ROLES
from speclib.data.latency import Latency
from speclib.models.open_pair import OpenPair
from speclib.operations.model import Model
from speclib.operations.operation import Performed, perform

from .batch_world import BatchWorld, Seat, StepAnswers
from .cost_ratio import CostRatio
from .devices import DeviceFailed, failed_by
from .seated_models import SeatedModels, SeatTask, passes_of


class VirtualBatch(BatchWorld):
    """Seats on a simulated clock, whose passes take the times in ``latency``.

    Each seat has its own models (``give_models``). ``opened``: see World. Raises
    BadValue if draft and target share devices in ``latency``.
    """

    kind = "virtual"

    def __init__(self, seats: int, latency: Latency, opened: Any = None):
        self.latency = latency
        self._now = 0.0
        self._models: dict[int, Mapping[str, Model]] = {}
        super().__init__(seats, opened)

    def give_models(self, seat: Seat, models: Mapping[str, Model]) -> None:
        """Sets the models that compute a seat's next request, by device name.

        On a real machine, all seats share the weights, and each has its own cache.
        """
        self._models[seat.number] = models
        seat.context = min(model.context for model in models.values())

    @property
    def now(self) -> float:
        return self._now

    def _zero(self) -> None:
        self._now = 0.0

    def vocab(self, seat: Seat) -> int:
        return self._models[seat.number]["target"].vocab

    @property
    def cost_ratio(self) -> CostRatio:
        return CostRatio.known(self.latency.c_of_batch(len(self.seats)))

    @property
    def drafts_per_target_pass(self) -> float:
        return self.latency.drafts_per_target_pass(len(self.seats))

    def _perform(
        self, tasks_of: Mapping[str, Sequence[SeatTask]]
    ) -> dict[str, StepAnswers]:
        answers = {}
        for name, tasks in tasks_of.items():
            computed = self._compute(name, tasks)
            operations = [task.operation for task in tasks]
            passes = passes_of(operations, computed)
            seconds = self.latency.seconds_together(name, passes)
            seconds += 2 * self.latency.message_to(name)

            outcomes: list[Performed | DeviceFailed] = []
            for operation, outcome in zip(operations, computed, strict=True):
                if isinstance(outcome, Exception):
                    outcome = failed_by(name, operation, outcome)
                outcomes.append(outcome)
            answers[name] = StepAnswers(outcomes, seconds)
        self._now += max((each.seconds for each in answers.values()), default=0.0)
        return answers

    def _compute(
        self, name: str, tasks: Sequence[SeatTask]
    ) -> list[Performed | Exception]:
        """Computes the outcome of each task on a device, or its error."""
        outcomes: list[Performed | Exception] = []
        for seat, operation, run in tasks:
            try:
                model = self._models[seat][name]
                outcomes.append(perform(operation, model, run))
            except Exception as raised:  # to be raised when the method waits
                outcomes.append(raised)
        return outcomes


class VirtualPairBatch(VirtualBatch):
    """``seats`` requests of a pair, whose undilated models run in this process.

    All seats share the weights. Raises BadValue as ``OpenPair.check_seats`` does.
    """

    def __init__(self, opened: OpenPair, seats: int, latency: Latency, dtype: str):
        self._of_role = {}
        for role in ROLES:
            self._of_role[str(role)] = SeatedModels(
                opened, role, seats, dtype, dilated=False
            )
        opened.set_threads()
        super().__init__(seats, latency, opened)

    def vocab(self, seat: Seat) -> int:
        return int(self.opened.vocab)

    def _compute(
        self, name: str, tasks: Sequence[SeatTask]
    ) -> list[Performed | Exception]:
        return self._of_role[name].perform(tasks)
