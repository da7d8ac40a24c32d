"""Measured work on the nodes of a cluster: which node does which step.

A pair's cells stay on the node where they began, so that they are compared with plain
decoding there. They go to another one where that node is lost, or cannot run the pair.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from speclab.experiment.on_nodes import Answer, Nodes, Report
from speclab.experiment.run_cells import Runner, stored
from speclab.experiment.spec import Spec, WorkerPool
from speclib.errors import SpeclibError

from .costs import Costs
from .work import Work, cost_of_step, name_of_pool


class MeasuringOnNodes:
    """Does measured work on ``nodes``.

    ``runner`` is told which cells failed, and has the display of progress.
    ``describe_rest``: says how much longer everything will take.
    """

    def __init__(
        self,
        nodes: Nodes,
        runner: Runner,
        costs: Costs,
        describe_rest: Callable[[], str],
    ):
        self.nodes = nodes
        self.runner = runner
        self.costs = costs
        self._describe_rest = describe_rest
        self._node_of_pool: dict[WorkerPool, str] = {}  # where a pair's cells are done
        # Nodes that could do none of a pair's cells, and whether they were lost.
        self._refused: dict[WorkerPool, dict[str, bool]] = {}

    @property
    def are_all_lost(self) -> bool:
        """Whether no node is left."""
        return not self.nodes.names

    def do(
        self,
        works: Sequence[Work],
        until: float | None,
        *,
        once: bool = False,
        again: bool = False,
    ) -> None:
        """Has the nodes do what of ``works`` is measured.

        Each node that is idle gets the step that gives most per second, of a pair that
        is on no other node. ``once``: one step of each work. ``again``: what other
        programs disturbed, once more.
        """
        waiting = [work for work in works if work.kind == "measured"]
        for work in waiting:
            self._fail_what_cannot_be_asked(work)
            work.count_done(self.runner.errors)

        under_way: dict[str, Work] = {}
        while True:
            for node in self.nodes.idle:
                fitting = self._fitting(node, waiting, under_way, until, again)
                if not fitting:
                    continue
                work = max(fitting, key=fitting.__getitem__)
                self._order(node, work, until, again)
                under_way[node] = work
                if once or again:
                    waiting = [other for other in waiting if other is not work]
            if not under_way:
                break
            answer = self.nodes.first()
            self._take(answer, under_way.pop(answer.node))

    def _fail_what_cannot_be_asked(self, work: Work) -> None:
        """Cells that have no name, since their pair or their prompts do not exist."""
        for spec in work.specs:
            try:
                stored(spec)
            except Exception as error:
                self.runner.errors.setdefault(spec, error)

    def _fitting(
        self,
        node: str,
        waiting: Sequence[Work],
        under_way: Mapping[str, Work],
        until: float | None,
        again: bool,
    ) -> dict[Work, float]:
        """What a node may do next, and what each gives per second."""
        taken = {work.pool for work in under_way.values()}
        open_pool = self.nodes.pool_of(node)
        gains = {}
        for work in waiting:
            if work.pool in taken or not self._may_measure(node, work.pool):
                continue
            is_failed = all(spec in self.runner.errors for spec in work.specs)
            if is_failed or (work.is_done and not again):
                continue
            seconds = cost_of_step(work, self.costs, work.pool == open_pool)
            if until is None or seconds <= until - time.monotonic():
                gains[work] = work.gain() / seconds
        return gains

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

    def _order(self, node: str, work: Work, until: float | None, again: bool) -> None:
        """Has a node do a work's next step."""
        assert work.pool is not None, "what is measured has workers"
        self.runner.bar.rename(f"{work.name} on {node}, {self._describe_rest()}")
        self.runner.bar.grow(1)
        specs = [spec for spec in work.specs if spec not in self.runner.errors]
        self._node_of_pool[work.pool] = node
        self.nodes.order(node, specs, work.next_requests, until, again)

    def _take(self, answer: Answer, work: Work) -> None:
        """Notes what came of a step."""
        self.runner.bar.step(f"{work.name}: {answer.why or answer.node}")
        specs = [spec for spec in work.specs if spec not in self.runner.errors]
        report = answer.report
        errors = dict.fromkeys(specs, answer.why) if report is None else report.errors
        if len(errors) == len(specs):
            self._refuse(answer, work, errors)
        else:
            for spec, why in errors.items():
                self.runner.errors[spec] = SpeclibError(why)

        work.count_done(self.runner.errors)
        if report is None:
            return
        self._learn_costs(report, work)
        if not report.requests and not errors:
            work.done = work.wanted  # there was no time for it

    def _refuse(self, answer: Answer, work: Work, errors: Mapping[Spec, str]) -> None:
        """A node could do none of a pair's cells: another one may.

        They have failed when no node is left that could try, or when it was the second
        that was lost over them.
        """
        assert work.pool is not None, "what is measured has workers"
        refused = self._refused.setdefault(work.pool, {})
        refused[answer.node] = answer.is_lost
        lost = sum(refused.values())
        if lost > 1 or all(name in refused for name in self.nodes.names):
            for spec, why in errors.items():
                self.runner.errors[spec] = SpeclibError(why)

    def _learn_costs(self, report: Report, work: Work) -> None:
        """What the workers' start and a request of all cells took on a node."""
        if work.pool is not None and report.start_seconds is not None:
            self.costs.saw(f"start {name_of_pool(work.pool)}", report.start_seconds)
        if report.requests and not report.errors:
            steps = report.requests / len(work.specs)
            self.costs.saw(work.name, report.seconds / steps)
