"""In which order work is done, and how far a budget of time gets.

    headlines   the first table of every paper, one after the other, each within its
                share of the time; what is measured goes before what is emulated
    the rest    one step at a time, always the one that gives most per second (see
                ``Work.gain``); it ends when nothing is missing, or when no step fits
                into the time that is left
    again       what other programs disturbed

Without a budget the rest is done paper by paper, and completely.

With nodes of a cluster, each of these parts begins with what is measured: a step on
every node, each pair's on one. The other kinds are run here when that is done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from speclab.experiment.limits import Limits
from speclab.experiment.on_nodes import Nodes
from speclab.experiment.run_cells import KINDS, Runner

from .costs import Costs
from .measuring_on_nodes import MeasuringOnNodes
from .work import ScriptOfItem, Work, cost_of_step, name_of_pool

# The share of the time that all headlines may take together. The first headline may
# take twice as long as each of the others.
HEADLINE_SHARE = 0.75

ORDER = ("script", *KINDS)  # of the kinds of work, where all of it is done


@dataclass
class PaperWork:
    """What is to be run for one paper.

    ``headline`` is the work of its headline table, ``headline_item``; the cells there
    are also in ``rest``, which does with them what is still missing.
    """

    key: str
    headline_item: str
    headline: list[Work] = field(default_factory=list)
    rest: list[Work] = field(default_factory=list)


class Schedule:
    """Does the work of some papers, until a deadline if there is one.

    ``deadline`` is on the clock of ``time.monotonic``. ``on_headline(paper)`` is called
    when a paper's headline table has been run.
    """

    def __init__(
        self,
        papers: Sequence[PaperWork],
        runner: Runner,
        costs: Costs,
        deadline: float | None,
        on_headline: Callable[[PaperWork], None],
        nodes: Nodes | None = None,
    ):
        self.papers = papers
        self.runner = runner
        self.costs = costs
        self.deadline = deadline
        self.on_headline = on_headline
        self._on_nodes: MeasuringOnNodes | None = None
        if nodes is not None:  # of a cluster, which measure in place of this machine
            self._on_nodes = MeasuringOnNodes(nodes, runner, costs, self.describe_rest)
        self.script_errors: dict[str, str] = {}  # why by name of the script
        for work in self._all_work():
            work.count_done()

    def _all_work(self) -> list[Work]:
        return [work for paper in self.papers for work in paper.rest]

    def do_all(self) -> None:
        """Headlines, the rest, and what was disturbed once more."""
        self.do_headlines()
        works = self._all_work()
        if self._on_nodes is not None:
            self._on_nodes.do(works, self._until_of_nodes(works, share=1.0))
        if self.deadline is None:
            for paper in self.papers:
                self._do_completely(self._done_here(paper.rest))
        else:
            self._do_what_gives_most(self._done_here(self._all_work()))
        self.repeat_disturbed()

    # -- headlines ---------------------------------------------------------------------
    def do_headlines(self) -> None:
        """The headline table of every paper, in the order of the papers."""
        if self._on_nodes is not None:
            headlines = [work for paper in self.papers for work in paper.headline]
            until = self._until_of_nodes(headlines, HEADLINE_SHARE)
            self._on_nodes.do(headlines, until, once=until is not None)
        started = time.monotonic()
        for number, paper in enumerate(self.papers):
            until = self.deadline
            if self.deadline is not None:
                share = HEADLINE_SHARE * (number + 2) / (len(self.papers) + 1)
                until = started + share * (self.deadline - started)
            own = self._done_here(in_order_of_pairs(paper.headline))
            for work in sorted(own, key=_haste):
                work.count_done(self.runner.errors)
                requests = work.wanted if until is None else work.next_requests
                if not work.is_done and self._fits(work, until):
                    self._step(work, requests, until)
            self.on_headline(paper)

    # -- the rest ----------------------------------------------------------------------
    def _do_completely(self, works: Sequence[Work]) -> None:
        """All work of a paper: kind by kind, and pair by pair."""
        for work in in_order_of_pairs(works):
            work.count_done(self.runner.errors)
            if not work.is_done:
                self._step(work, work.wanted, None)

    def _do_what_gives_most(self, works: Sequence[Work]) -> None:
        """One step after the other, while there is one that fits."""
        for work in works:
            work.count_done(self.runner.errors)
        while True:
            fitting = []
            for work in works:
                if not work.is_done and self._fits(work, self.deadline):
                    fitting.append(work)
            if not fitting:
                return
            best = max(fitting, key=lambda work: work.gain() / self.cost_of_step(work))
            before = best.done
            self._step(best, best.next_requests, self.deadline)
            if best.done <= before:
                best.done = best.wanted  # it failed, or there was no time for it

    def _fits(self, work: Work, deadline: float | None) -> bool:
        """Whether a work's next step would end before a deadline."""
        if deadline is None:
            return True
        return self.cost_of_step(work) <= deadline - time.monotonic()

    def _step(self, work: Work, requests: int, deadline: float | None) -> None:
        """Takes the cells of a work to so many requests, and learns what it cost."""
        self.runner.bar.rename(f"{work.name}, {self.describe_rest()}")
        starts_workers = work.pool is not None and not self.runner.has_open(work.pool)
        limits = Limits(None if work.kind == "virtual" else requests, deadline)
        before, steps = work.done, work.steps_to(requests)
        failures, started = len(self.runner.errors), time.monotonic()
        if work.script is not None:
            self._compute(work, work.script)
        else:
            self.runner.run(work.specs, limits)
        seconds = time.monotonic() - started

        if work.pool is not None and starts_workers:
            start_seconds = self.runner.start_seconds(work.pool)
            if start_seconds is not None:
                self.costs.saw(f"start {name_of_pool(work.pool)}", start_seconds)
                seconds -= start_seconds
        work.count_done(self.runner.errors)
        if work.done > before and len(self.runner.errors) == failures:
            if work.has_requests:
                steps = work.done - before  # a deadline may have cut it short
            self.costs.saw(work.name, seconds / steps)

    def _compute(self, work: Work, script: ScriptOfItem) -> None:
        """Runs the script of an item; one that fails leaves all others standing."""
        try:
            script.compute()
        except Exception as error:
            self.script_errors[work.name] = str(error)

    # -- on nodes of a cluster ---------------------------------------------------------
    def _done_here(self, works: Iterable[Work]) -> list[Work]:
        """Those of ``works`` that this machine does, not a cluster's nodes."""
        here = []
        for work in works:
            if self._on_nodes is None or work.kind != "measured":
                here.append(work)
        return here

    def _until_of_nodes(self, works: Sequence[Work], share: float) -> float | None:
        """Until when nodes may measure, of a share of the time that is left.

        Time is kept back for what is done here of ``works``; half of it, at most.
        """
        if self.deadline is None:
            return None
        left = share * self.seconds_left()
        kept_back = min(seconds_of(self._done_here(works), self.costs), left / 2)
        return time.monotonic() + left - kept_back

    # -- again -------------------------------------------------------------------------
    def repeat_disturbed(self) -> None:
        """Runs again what other programs disturbed, as far as there is time."""
        self.runner.bar.rename("what other programs disturbed, once more")
        if self._on_nodes is not None:
            self._on_nodes.do(self._all_work(), self.deadline, again=True)
            if self._on_nodes.are_all_lost:
                self.script_errors["nodes of the cluster"] = (
                    "all are lost; finished cells are kept, run again to go on"
                )
        for work in self._done_here(self._all_work()):
            if work.has_requests and self._fits(work, self.deadline):
                limits = Limits(deadline=self._last_start(work), end=self.deadline)
                self.runner.repeat_disturbed(work.specs, limits)

    def _last_start(self, work: Work) -> float | None:
        """Until when a request of this work may begin, to end before the deadline."""
        if self.deadline is None:
            return None
        return self.deadline - self.costs.seconds(work.name, work.guess())

    # -- time --------------------------------------------------------------------------
    def cost_of_step(self, work: Work) -> float:
        """Seconds of a work's next step, the start of its workers included."""
        has_workers = work.pool is not None and self.runner.has_open(work.pool)
        return cost_of_step(work, self.costs, has_workers)

    def seconds_left(self) -> float:
        """Seconds until the deadline."""
        if self.deadline is None:
            return float("inf")
        return self.deadline - time.monotonic()

    def seconds_missing(self) -> float:
        """Seconds that everything would take which is still missing."""
        return seconds_of(self._all_work(), self.costs)

    def least_seconds(self) -> float:
        """Seconds of the cheapest step that is missing; 0 where nothing is."""
        costs = [self.cost_of_step(w) for w in self._all_work() if not w.is_done]
        return min(costs, default=0.0)

    def describe_rest(self) -> str:
        """How much longer it will take, for people."""
        seconds = min(self.seconds_missing(), self.seconds_left())
        return f"about {describe_seconds(seconds)} left"


def _haste(work: Work) -> int:
    """The place of a kind in a headline: measured numbers before emulated ones."""
    return ("script", "virtual", "measured", "emulated").index(work.kind)


def in_order_of_pairs(works: Sequence[Work]) -> list[Work]:
    """Work by kind, and what shares workers together, so that these start once."""
    pools = list(dict.fromkeys(work.pool for work in works))

    def place(work: Work) -> tuple[int, int]:
        return ORDER.index(work.kind), pools.index(work.pool)

    return sorted(works, key=place)


def seconds_of(works: Iterable[Work], costs: Costs) -> float:
    """Seconds that the missing part of some work takes; workers start once per pair."""
    seconds = 0.0
    pools = set()
    for work in works:
        if work.is_done:
            continue
        steps = work.steps_to(work.wanted)
        seconds += costs.seconds(work.name, work.guess()) * steps
        if work.pool is not None and work.pool not in pools:
            pools.add(work.pool)
            seconds += costs.seconds(f"start {name_of_pool(work.pool)}")
    return seconds


def describe_seconds(seconds: float) -> str:
    """A duration for people: in seconds below two minutes, else in minutes."""
    if seconds < 120:
        return f"{max(0, round(seconds))} s"
    return f"{round(seconds / 60)} min"
