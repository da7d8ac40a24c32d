"""Requests in lock-step on a simulated clock, with real models that share weights."""

from __future__ import annotations

from collections.abc import Sequence

from speclib.core.settings import ROLES
from speclib.data.latency import Latency
from speclib.models.open_pair import OpenPair

from .lockstep import Answered, Asked, Seat, VirtualLockstep, answers_of
from .seated_models import SeatedModels, Task


class VirtualPair(VirtualLockstep):
    """``seats`` requests of a pair: its models write the tokens here, undilated.

    Raises BadValue as ``build_seats`` does.
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

    def _compute_all(self, name: str, asked: Sequence[Asked]) -> list[Answered]:
        tasks = [Task(seat.number, f.op, seat.request) for seat, f in asked]
        return answers_of(name, asked, self._of_role[name].perform(tasks))
