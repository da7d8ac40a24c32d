"""Named devices and the futures of what they were asked to do. They know neither time nor place."""

from __future__ import annotations

from speclib.errors import SpeclibError
from speclib.operations.draft_sequences import Branch
from speclib.operations.draft_tree import Grow
from speclib.operations.propose import Propose
from speclib.operations.score import Score
from speclib.operations.score_tree import Tree


class DeviceLost(SpeclibError):
    """A device died, hung or failed; its message names the device and the cause."""


class Cancelled(SpeclibError):
    """The operation ended before its time because its result was wanted no more."""


class Future:
    """One submitted operation; once ``done``, ``value`` is its result or ``error`` why not."""

    __slots__ = (
        "op",
        "device",
        "id",
        "round",
        "start",
        "done",
        "cancelled",
        "value",
        "error",
    )

    def __init__(self, op, device: str, id: int, round: int):
        self.op, self.device, self.id, self.round = op, device, id, round
        self.start, self.value, self.error = 0.0, None, None
        self.done = self.cancelled = False


def named(targets: int = 1) -> tuple[str, ...]:
    """The names of a draft and ``targets`` targets: draft, target, target-2, ..."""
    if isinstance(targets, bool) or not isinstance(targets, int) or targets < 1:
        raise SpeclibError(f"servers is {targets!r}: give 1 target server or more")
    return "draft", "target", *(f"target-{i}" for i in range(2, targets + 1))


class Device:
    """A named place where one model runs. Submits; knows nothing of when or where."""

    def __init__(self, world, name: str):
        self.world, self.name = world, name
        self.role, _, number = name.partition("-")  # "target-2": the second target
        self.index = int(number or 1) - 1

    def propose(
        self, text, n: int, index: int = 0, confidence: float | None = None
    ) -> Future:
        """Future of ``n`` Drafted tokens after ``text``; fewer where the models' context ends, or
        where ``confidence`` ends them (see Propose)."""
        room = max(0, self.world.context - len(text))
        return self.world.submit(
            self.name, Propose(tuple(text), min(n, room), index, confidence)
        )

    def branch(self, text, budget: int, k: int | None = None, most: int = 8) -> Future:
        """Future of k sequences of Drafted tokens after ``text``, ``budget`` in all (see Branch);
        shorter where the models' context ends."""
        room = max(0, self.world.context - len(text))
        return self.world.submit(
            self.name, Branch(tuple(text), min(budget, room), k, most)
        )

    def grow(
        self,
        text,
        levels: int,
        width: int,
        budget: int | None = None,
        lp: int | None = None,
        calibrate: bool = True,
    ) -> Future:
        """Future of (Drafted nodes, their parents), a tree after ``text`` (see Grow); of fewer
        levels where the models' context or the ``budget`` ends."""
        room = max(0, self.world.context - len(text))
        n = min(levels, room) if budget is None else min(levels, room, budget)
        return self.world.submit(
            self.name, Grow(tuple(text), n, width, budget, lp, calibrate)
        )

    def score(self, text, last: int = 0) -> Future:
        """Future of rows [last + 1, V]: p after text[:-last] ... p after text."""
        return self.world.submit(self.name, Score(tuple(text), last))

    def tree(self, text, tokens, parents, looked: int = 0) -> Future:
        """Future of rows [len(tokens) + 1, V]: p after ``text``, then after the path to each node
        of the tree of ``tokens`` that grows there (see Tree)."""
        return self.world.submit(
            self.name, Tree((*text, *tokens), tuple(parents), looked)
        )
