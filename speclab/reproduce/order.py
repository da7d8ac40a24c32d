"""In which order work is done: this page alone decides it.

Work is done in rounds. The first one takes every cell of real processes to one request,
those of the main tables to two, and each later one to twice as many. Between two rounds
it is asked which claims are open: only the cells that these ask for are taken further,
so that time goes where it settles something. Within a round comes

    opening       the virtual numbers of the main tables
    virtual       what the other tables have of the virtual clock, and scripts: such
                  numbers cost little, and settle claims
    main tables   what is left of them, paper by paper: what is measured first
    the rest      of all other tables, what is measured first

Papers stand in their order. In the main tables so do their pairs; in the rest the pairs
of all papers take turns. What a pair measures stands together, so that its workers
start once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from speclab.experiment.spec import Spec, WorkerPool

from .batches import FIRST_REQUESTS, Batch

KINDS = ("virtual", "script", "measured", "emulated")


@dataclass(frozen=True)
class Piece:
    """A batch's next requests: those that bring each of its cells to ``requests``.

    ``is_opening``: whether it belongs to the first numbers of a paper's main table.
    """

    batch: Batch
    requests: int
    is_opening: bool = False

    @property
    def next_requests(self) -> int:
        """To how many requests its next step takes the cells: one further, mostly."""
        one_further = self.batch.fewest_requests + 1
        return min(self.requests, max(self.batch.first_requests, one_further))


class Stage(IntEnum):
    """The parts of a round."""

    OPENING = 0
    VIRTUAL = 1
    MAIN_TABLES = 2
    REST = 3


def pieces_in_order(
    batches: Sequence[Batch],
    in_rounds: bool,
    ask_what_is_open: Callable[[], Container[Spec] | None] = lambda: None,
) -> Iterator[Piece]:
    """All pieces of some papers, in the order in which they are to be run.

    Without ``in_rounds``, as where there is time for everything, each batch is one
    piece. ``ask_what_is_open`` is asked before each round but the first one: the cells
    of which more requests are wanted, None for all.
    """
    if not in_rounds:
        for batch in Order(batches).of_a_round:
            yield Piece(batch, batch.most_requests, batch.is_main)
        return

    for batch in Order(batches).of_a_round:
        requests = min(batch.first_requests, batch.most_requests)
        yield Piece(batch, requests, batch.is_main)
    most = max((batch.most_requests for batch in batches), default=0)
    goal = FIRST_REQUESTS
    while goal < most:
        goal *= 2
        wanted = ask_what_is_open()
        for batch in batches:
            batch.wanted = wanted if batch.has_requests else None
        for batch in Order(batches).of_a_round:
            if batch.most_requests > goal // 2 and goal > batch.first_requests:
                yield Piece(batch, min(goal, batch.most_requests))


class Order:
    """The order of some batches in a round.

    Papers stand as their batches do, and so do the pairs of a paper.
    """

    def __init__(self, batches: Sequence[Batch]):
        self._papers = list(dict.fromkeys(batch.paper for batch in batches))
        self._turns = _turns(batches)
        self.of_a_round = sorted(batches, key=self._rank)

    def stage(self, batch: Batch) -> Stage:
        """The part of a round to which a batch belongs."""
        if batch.kind in ("virtual", "script"):
            return Stage.OPENING if batch.is_main else Stage.VIRTUAL
        return Stage.MAIN_TABLES if batch.is_main else Stage.REST

    def _rank(self, batch: Batch) -> tuple[int, ...]:
        """What a batch is sorted by within a round."""
        paper = self._papers.index(batch.paper)
        turn = 0 if batch.pool is None else self._turns[batch.pool]
        stage = self.stage(batch)
        if stage is Stage.MAIN_TABLES:
            return stage, paper, KINDS.index(batch.kind), turn
        return stage, KINDS.index(batch.kind), turn, paper


def _turns(batches: Sequence[Batch]) -> dict[WorkerPool, int]:
    """The turn of each pair: the first of every paper, then the second of each."""
    pools_of: dict[str, list[WorkerPool]] = {}
    seen: set[WorkerPool] = set()
    for batch in batches:
        if batch.pool is not None and batch.pool not in seen:
            seen.add(batch.pool)
            pools_of.setdefault(batch.paper, []).append(batch.pool)

    longest = max(map(len, pools_of.values()), default=0)
    in_turns = []
    for number in range(longest):
        for pools in pools_of.values():
            in_turns += pools[number : number + 1]
    return {pool: turn for turn, pool in enumerate(in_turns)}
