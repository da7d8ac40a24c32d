"""What a budget of time does first, what it learns, and what it leaves."""

from __future__ import annotations

import re
import time

import pytest
from helpers.specs import emulated_spec, measured_spec, virtual_spec

from speclab.experiment.limits import NO_LIMITS
from speclab.experiment.run_cells import Runner, stored
from speclab.progress import Progress
from speclab.reproduce.budget import Budget
from speclab.reproduce.costs import Costs
from speclab.reproduce.schedule import (
    PaperWork,
    Schedule,
    describe_seconds,
    in_order_of_pairs,
)
from speclab.reproduce.work import Work
from speclib import paths
from speclib.errors import BadValue


@pytest.fixture(autouse=True)
def _own_cache(own_cache):
    """Every test has a cache of its own."""


def work(name: str, *specs, **facts) -> Work:
    """A piece of work on some cells, all of one kind."""
    facts.setdefault("wanted", max(spec.requests for spec in specs))
    return Work(name, specs[0].kind, list(specs), **facts)


def done_by(papers, deadline=None, costs=None) -> list[str]:
    """Does the work of some papers; the keys in the order their headlines stood."""
    order = []
    with Progress("cells", show=False) as bar, Runner(bar) as runner:
        schedule = Schedule(
            papers,
            runner,
            costs or Costs({}, {}),
            deadline,
            on_headline=lambda paper: order.append(paper.key),
        )
        schedule.do_all()
    return order


# -- the order -------------------------------------------------------------------------
def test_headlines_come_in_the_order_of_the_papers_and_everything_is_done():
    first, second = virtual_spec(gamma=2), virtual_spec(gamma=3)
    other = virtual_spec(gamma=4)
    papers = [
        PaperWork(
            "pearl",
            "table-1",
            [work("virtual a", first)],
            [work("virtual b", first, other)],
        ),
        PaperWork(
            "dsi", "table-1", [work("virtual c", second)], [work("virtual d", second)]
        ),
    ]
    assert done_by(papers) == ["pearl", "dsi"]
    for spec in (first, second, other):
        assert stored(spec) is not None


def test_workers_of_a_pair_are_started_once_whatever_needs_them_between():
    one, other = measured_spec(), measured_spec(cancel="immediate")
    works = [
        work("measured a", one, pool=one.worker_pool),
        work("measured b", other, pool=other.worker_pool),
        work("virtual c", virtual_spec()),
        work("measured d", one, pool=one.worker_pool),
    ]
    names = [each.name for each in in_order_of_pairs(works)]
    assert names == ["virtual c", "measured a", "measured d", "measured b"]


def test_without_time_nothing_is_begun_and_every_headline_is_still_told():
    spec = virtual_spec()
    papers = [
        PaperWork(
            "pearl", "table-1", [work("virtual a", spec)], [work("virtual b", spec)]
        )
    ]
    assert done_by(papers, deadline=time.monotonic() - 1) == ["pearl"]
    assert stored(spec) is None


def test_a_step_that_does_not_fit_is_left_out_and_a_cheap_one_is_done():
    dear, cheap = virtual_spec(gamma=2), virtual_spec(gamma=3)
    costs = Costs({"virtual dear": 1000.0, "virtual cheap": 0.1}, {})
    rest = [work("virtual dear", dear), work("virtual cheap", cheap)]
    papers = [PaperWork("pearl", "table-1", [], rest)]
    done_by(papers, deadline=time.monotonic() + 60, costs=costs)
    assert stored(cheap) is not None
    assert stored(dear) is None


def test_requests_are_added_one_by_one_until_there_are_as_many_as_asked_for():
    spec = measured_spec(requests=4)
    rest = [work("measured toy", spec, pool=spec.worker_pool)]
    costs = Costs({"measured toy": 0.01, "start toy auto 1 after-op": 0.01}, {})
    papers = [PaperWork("pearl", "table-1", [], rest)]
    done_by(papers, deadline=time.monotonic() + 300, costs=costs)
    assert len(stored(spec).stats) == 4
    assert costs.here["measured toy"] > 0
    assert costs.here["start toy auto 1 after-op"] > 0


# -- gains -----------------------------------------------------------------------------
def test_one_more_prompt_narrows_intervals_as_one_over_its_root():
    specs = [emulated_spec(gamma=gamma) for gamma in (2, 3)]
    # From one to four requests an interval halves, whatever it was.
    halved = 1.0
    for done in (1, 2, 3):
        gain = work("emulated", *specs, done=done, wanted=8).gain() / len(specs)
        halved *= 1 - gain
    assert halved == pytest.approx(0.5)


def test_a_number_that_is_missing_counts_more_than_one_that_gets_narrower():
    spec = emulated_spec()
    missing = work("emulated", spec, done=0, wanted=8)
    known = work("emulated", spec, done=2, wanted=8)
    assert missing.gain() > known.gain()
    assert missing.next_requests == 2  # one request has no interval
    assert known.next_requests == 3


# -- costs -----------------------------------------------------------------------------
def test_costs_seen_here_count_and_those_of_another_machine_are_corrected():
    here = {"start a": 4.0, "start b": 6.0}
    elsewhere = {"start a": 2.0, "start b": 3.0, "start c": 5.0}
    costs = Costs(here, elsewhere)
    assert costs.seconds("start a") == 4.0
    assert costs.seconds("start c") == 10.0  # this machine takes twice as long
    assert costs.seconds("start d") == 5.0  # the median of its kind here


def test_what_was_seen_is_kept_and_a_damaged_file_counts_as_empty():
    costs = Costs.read()
    costs.saw("start a", 4.0)
    costs.saw("start a", 6.0)
    assert Costs.read().seconds("start a") == 5.0  # the newest has half the weight
    (paths.CACHE / "costs.json").write_text("{")
    assert Costs.read().here == {}


# -- budgets ---------------------------------------------------------------------------
@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf")])
def test_a_budget_of_nothing_is_refused(minutes):
    with pytest.raises(BadValue, match=r"minutes is .*: give a number of minutes"):
        Budget.of(minutes)


def test_a_budget_below_the_cheapest_cell_says_what_the_least_is():
    with pytest.raises(BadValue, match=r"take about 1\.5 here; give at least that"):
        Budget.of(0.5).check_least(90)
    Budget.of(2).check_least(90)
    Budget.of(None).check_least(90)


def test_what_comes_after_the_cells_is_taken_from_the_budget():
    budget = Budget.of(5)
    assert budget.deadline(reserved=60) == pytest.approx(budget.started + 240)
    assert Budget.of(None).deadline(reserved=60) is None


class Remembering(Runner):
    """A runner that remembers within which limits it was to repeat requests."""

    repeated: list = []

    def repeat_disturbed(self, specs, limits=NO_LIMITS):
        self.repeated.append(limits)
        super().repeat_disturbed(specs, limits)


def test_disturbed_requests_are_repeated_only_while_one_more_fits_into_the_budget():
    spec = measured_spec()
    repeated = work("measured toy", spec, pool=spec.worker_pool)
    costs = Costs({"measured toy": 40.0, "start toy auto 1 after-op": 1.0}, {})
    deadline = time.monotonic() + 100
    with Progress("cells", show=False) as bar, Remembering(bar) as runner:
        repeated.done = repeated.wanted
        papers = [PaperWork("pearl", "table-1", [], [repeated])]
        schedule = Schedule(papers, runner, costs, deadline, lambda _: None)
        schedule.repeat_disturbed()
    (limits,) = runner.repeated
    assert limits.deadline == pytest.approx(deadline - 40)
    assert limits.end == deadline


def test_the_least_that_is_told_is_enough():
    """Rounded down to a tenth of a minute, it would be refused in turn."""
    seconds = 2.14 * 60
    with pytest.raises(BadValue) as refused:
        Budget.of(1).check_least(seconds)
    (least,) = re.findall(r"take about ([\d.]+) here", str(refused.value))
    Budget.of(float(least)).check_least(seconds)


def test_durations_read_as_people_say_them():
    assert describe_seconds(58.2) == "58 s"
    assert describe_seconds(1500) == "25 min"


# -- cells of one work that ask for different numbers of requests ----------------------
def test_a_cell_that_asks_for_fewer_requests_does_not_hold_up_the_others():
    many, few = measured_spec(requests=4), measured_spec(gamma=3, requests=2)
    rest = [work("measured toy", many, few, pool=many.worker_pool)]
    costs = Costs({"measured toy": 0.01, "start toy auto 1 after-op": 0.01}, {})
    papers = [PaperWork("pearl", "table-1", [], rest)]
    done_by(papers, deadline=time.monotonic() + 300, costs=costs)
    assert len(stored(many).stats) == 4
    assert len(stored(few).stats) == 2
    assert rest[0].is_done


def test_a_script_that_fails_leaves_the_others_and_is_named():
    class Broken:
        numbers = 3

        def is_stored(self):
            return False

        def compute(self):
            raise OSError("no room")

    broken = Work("script pearl quick figure-1", "script", script=Broken())
    spec = virtual_spec()
    papers = [PaperWork("pearl", "table-1", [], [broken, work("virtual b", spec)])]
    with Progress("cells", show=False) as bar, Runner(bar) as runner:
        schedule = Schedule(papers, runner, Costs({}, {}), None, lambda _: None)
        schedule.do_all()
    assert schedule.script_errors == {"script pearl quick figure-1": "no room"}
    assert stored(spec) is not None


def test_work_that_nobody_has_seen_is_guessed_by_its_cells_and_tokens():
    one, two = measured_spec(tokens=50), measured_spec(gamma=3, tokens=50)
    few, many = work("measured a", one), work("measured b", one, two)
    assert many.guess() == pytest.approx(2 * few.guess())
    costs = Costs({"measured other": 1.0}, {})
    assert costs.seconds("measured b", many.guess()) == many.guess()
    assert costs.seconds("measured other", many.guess()) == 1.0
