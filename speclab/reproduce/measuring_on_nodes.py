"""Measured pieces on the nodes of a cluster: which node runs which.

A pair's cells stay on the node where they began, so that they are compared with plain
decoding there. They go to another one where that node is lost, or cannot run the pair.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from speclab.experiment.on_nodes import Answer, Nodes
from speclab.experiment.run_cells import Runner, stored
from speclab.experiment.spec import Spec, WorkerPool
from speclib.errors import SpeclibError

from .batches import Batch
from .order import Piece
from .pace import Pace


class MeasuringOnNodes:
    """Runs measured pieces on ``nodes``.

    ``runner`` is told which cells failed, and has the display of progress.
    ``describe_rest``: says how much longer everything will take.
    """

    def __init__(
        self,
        nodes: Nodes,
        runner: Runner,
        pace: Pace,
        describe_rest: Callable[[], str],
    ):
        self.nodes = nodes
        self.runner = runner
        self.pace = pace
        self._describe_rest = describe_rest
        self._node_of_pool: dict[WorkerPool, str] = {}  # where a pair's cells are done
        # Nodes that could do none of a pair's cells, and whether they were lost.
        self._refused: dict[WorkerPool, dict[str, bool]] = {}

    @property
    def are_all_lost(self) -> bool:
        """Whether no node is left."""
        return not self.nodes.names

    def run(
        self, pieces: Sequence[Piece], until: float | None, *, again: bool = False
    ) -> None:
        """Has the nodes run pieces.

        Each node that is idle gets the first one that fits, of a pair that is on no
        other node. ``again``: what other programs disturbed, once more.
        """
        for piece in pieces:
            self._fail_what_cannot_be_asked(piece.batch)
            piece.batch.count_done(self.runner.errors)

        waiting = list(pieces)
        under_way: dict[str, Piece] = {}  # by node
        while True:
            for node in self.nodes.idle:
                next_piece = self._next_piece(node, waiting, under_way, until, again)
                if next_piece is not None:
                    waiting.remove(next_piece)
                    under_way[node] = next_piece
                    self._order(node, next_piece, until, again)
            if not under_way:
                return
            answer = self.nodes.wait_for_answer()
            piece = under_way.pop(answer.node)
            goes_on = self._take(answer, piece)
            if goes_on:
                waiting.insert(0, piece)

    def _fail_what_cannot_be_asked(self, batch: Batch) -> None:
        """Cells that have no name, since their pair or their prompts do not exist."""
        for spec in batch.specs:
            try:
                stored(spec)
            except Exception as error:
                self.runner.errors.setdefault(spec, error)

    def _next_piece(
        self,
        node: str,
        waiting: Sequence[Piece],
        under_way: Mapping[str, Piece],
        until: float | None,
        again: bool,
    ) -> Piece | None:
        """The first piece that a node may run and that would end in time."""
        taken = {piece.batch.pool for piece in under_way.values()}
        for piece in waiting:
            batch = piece.batch
            if batch.pool in taken or not self._may_measure(node, batch.pool):
                continue
            if all(spec in self.runner.errors for spec in batch.specs):
                continue
            units = batch.units_of_a_request if again else _units_of_order(piece)
            seconds = self.pace.expect(batch.kind, batch.alike, units)
            if units > 0 and (until is None or time.monotonic() + seconds <= until):
                return piece
        return None

    def _may_measure(self, node: str, pool: WorkerPool | None) -> bool:
        """Whether a pair's cells may be done on a node: a pair stays where it began,
        unless that node is lost or could not run it."""
        assert pool is not None, "what is measured has workers"
        refused = self._refused.get(pool, {})
        if node in refused:
            return False
        began = self._node_of_pool.get(pool, node)
        has_ended = began not in self.nodes.names or began in refused
        return began == node or has_ended

    def _order(self, node: str, piece: Piece, until: float | None, again: bool) -> None:
        """Has a node run a piece."""
        batch = piece.batch
        assert batch.pool is not None, "what is measured has workers"
        self.runner.bar.rename(f"{batch.name} on {node}, {self._describe_rest()}")
        self.runner.bar.grow(1)
        wanted = batch.specs_to(piece.requests)
        specs = [spec for spec in wanted if spec not in self.runner.errors]
        self._node_of_pool[batch.pool] = node
        self.nodes.order_cells(node, specs, piece.next_requests, until, again)

    def _take(self, answer: Answer, piece: Piece) -> bool:
        """Notes what came of a piece; says whether some node should go on with it."""
        batch, report = piece.batch, answer.report
        self.runner.bar.step(f"{batch.name}: {answer.why or answer.node}")
        specs = [spec for spec in batch.specs if spec not in self.runner.errors]
        errors = dict.fromkeys(specs, answer.why) if report is None else report.errors
        was_refused = len(errors) == len(specs)
        if was_refused:
            self._refuse(answer, batch, errors)
        else:
            for spec, why in errors.items():
                self.runner.errors[spec] = SpeclibError(why)

        units_before = batch.units_to(piece.requests)
        batch.count_done(self.runner.errors)
        units_done = units_before - batch.units_to(piece.requests)
        if report is not None and not report.errors and units_done > 0:
            self.pace.note(batch.kind, batch.alike, units_done, seconds=report.seconds)
        return was_refused or units_done > 0

    def _refuse(self, answer: Answer, batch: Batch, errors: Mapping[Spec, str]) -> None:
        """A node could do none of a pair's cells: another one may.

        They have failed when no node is left that could try, or when it was the second
        that was lost over them.
        """
        assert batch.pool is not None, "what is measured has workers"
        refused = self._refused.setdefault(batch.pool, {})
        refused[answer.node] = answer.is_lost
        lost = sum(refused.values())
        if lost > 1 or all(name in refused for name in self.nodes.names):
            for spec, why in errors.items():
                self.runner.errors[spec] = SpeclibError(why)


def _units_of_order(piece: Piece) -> int:
    """How much work a node does before it reports.

    It is little, since what a node has done reaches this machine with its report.
    """
    return piece.batch.units_to(piece.next_requests)
