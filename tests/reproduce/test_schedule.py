"""What is done within a budget of time, what it learns, and what it leaves."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

import pytest
from helpers.open_claims import claim_on
from helpers.simulated_runner import SimulatedRunner
from helpers.specs import emulated_spec, measured_spec, virtual_spec

from speclab.experiment.limits import NO_LIMITS
from speclab.experiment.run_cells import Runner, stored
from speclab.experiment.spec import Spec
from speclab.progress import Progress
from speclab.reproduce import batches as batches_page
from speclab.reproduce.batches import Batch
from speclab.reproduce.budget import Budget
from speclab.reproduce.open_cells import OpenClaims
from speclab.reproduce.pace import FIRST_GUESS, Pace
from speclab.reproduce.schedule import Schedule, describe_seconds
from speclib import paths
from speclib.errors import BadValue


@pytest.fixture(autouse=True)
def _own_cache(own_cache):
    """Every test has a cache of its own."""


def batch(name: str, *specs: Spec, paper: str = "pearl", is_main: bool = False):
    """A batch of some cells, all of one kind."""
    kind = specs[0].kind
    pool = specs[0].worker_pool if kind == "measured" else None
    return Batch(name, kind, paper, is_main, list(specs), pool=pool)


def run(
    batches: Sequence[Batch], deadline: float | None = None, pace: Pace | None = None
) -> list[str]:
    """Runs batches; the papers in the order in which their main tables stood."""
    papers: list[str] = []
    with Progress("cells", show=False) as bar, Runner(bar) as runner:
        Schedule(batches, runner, pace or Pace({}), deadline, papers.append).run()
    return papers


# -- with real cells -------------------------------------------------------------------
def test_main_tables_come_in_the_order_of_the_papers_and_everything_is_done():
    first, second = virtual_spec(gamma=2), virtual_spec(gamma=3)
    other = virtual_spec(gamma=4)
    batches = [
        batch("a", first, is_main=True),
        batch("b", other),
        batch("c", second, paper="dsi", is_main=True),
    ]
    assert run(batches) == ["pearl", "dsi"]
    for spec in (first, second, other):
        assert stored(spec) is not None


def test_without_time_nothing_is_begun_and_every_main_table_is_still_told():
    spec = virtual_spec()
    batches = [batch("a", spec, is_main=True)]
    assert run(batches, deadline=time.monotonic() - 1) == ["pearl"]
    assert stored(spec) is None


def test_once_the_time_is_over_nobody_asks_what_is_open():
    asked: list[float] = []
    now = 0.0

    def ask_what_is_open():
        nonlocal now
        asked.append(now)
        now += 10.0  # of the 15 that there are

    batches = [batch("a", measured_spec(requests=8))]
    with Progress("cells", show=False) as bar, Runner(bar) as runner:
        Schedule(
            batches,
            runner,
            Pace({"measured": 100.0}),
            deadline=15.0,
            on_main_table=lambda paper: None,
            clock=lambda: now,
            ask_what_is_open=ask_what_is_open,
        ).run()
    assert asked == [0.0, 10.0]


def test_replays_have_half_of_what_is_left_and_the_last_ones_all(monkeypatch):
    spec = measured_spec(requests=8)
    open_claims = OpenClaims([claim_on([spec], replayed=[spec])])
    deadlines = []
    with Progress("cells", show=False) as bar, Runner(bar) as runner:

        def replay(specs, limits):
            deadlines.append(limits.deadline)

        monkeypatch.setattr(runner, "replay", replay)
        Schedule(
            [batch("a", spec)],
            runner,
            Pace({"measured": 100.0}),  # so nothing is measured
            deadline=16.0,
            on_main_table=lambda paper: None,
            clock=lambda: 0.0,
            ask_what_is_open=lambda: open_claims,
        ).run()
    assert deadlines == [8.0, 8.0, 16.0]


def test_a_piece_that_does_not_fit_is_left_out_and_a_cheap_one_is_done():
    dear, cheap = virtual_spec(gamma=2), virtual_spec(gamma=3)
    batches = [batch("dear", dear, paper="dear"), batch("cheap", cheap, paper="cheap")]
    pace = Pace({"virtual dear": 10.0, "virtual cheap": 1e-4})
    run(batches, deadline=time.monotonic() + 60, pace=pace)
    assert stored(cheap) is not None
    assert stored(dear) is None


def test_requests_are_added_until_there_are_as_many_as_asked_for():
    spec = measured_spec(requests=4)
    pace = Pace({"measured": 1e-4})
    run([batch("toy", spec)], deadline=time.monotonic() + 300, pace=pace)
    assert len(stored(spec).stats) == 4
    assert pace.expect("measured", "toy auto 1 after-op") != 1e-4


def test_a_cell_that_asks_for_fewer_requests_does_not_hold_up_the_others():
    many, few = measured_spec(requests=4), measured_spec(gamma=3, requests=2)
    together = batch("toy", many, few)
    pace = Pace({"measured": 1e-4})
    run([together], deadline=time.monotonic() + 300, pace=pace)
    assert len(stored(many).stats) == 4
    assert len(stored(few).stats) == 2
    assert together.is_done


def test_a_script_that_fails_leaves_the_others_and_is_named():
    class Broken:
        def is_stored(self):
            return False

        def compute(self):
            raise OSError("no room")

    broken = Batch("script pearl figure-1", "script", "pearl", script=Broken())
    spec = virtual_spec()
    with Progress("cells", show=False) as bar, Runner(bar) as runner:
        batches = [broken, batch("b", spec)]
        schedule = Schedule(batches, runner, Pace({}), None, lambda _: None)
        schedule.run()
    assert schedule.script_errors == {"script pearl figure-1": "no room"}
    assert stored(spec) is not None


class Remembering(Runner):
    """A runner that remembers within which limits it was to repeat requests."""

    repeated: list = []

    def repeat_disturbed(self, specs, limits=NO_LIMITS):
        self.repeated.append(limits)
        super().repeat_disturbed(specs, limits)


def test_disturbed_requests_are_repeated_only_while_one_more_fits_into_the_budget():
    spec = measured_spec()
    # Its method and plain decoding: two times twelve tokens.
    pace = Pace({"measured": 40.0 / 24})
    deadline = time.monotonic() + 100
    with Progress("cells", show=False) as bar, Remembering(bar) as runner:
        batches = [batch("toy", spec)]
        schedule = Schedule(batches, runner, pace, deadline, lambda _: None)
        schedule.repeat_disturbed()
    (limits,) = runner.repeated
    assert limits.deadline == pytest.approx(deadline - 40)
    assert limits.end == deadline


# -- on a clock of its own -------------------------------------------------------------
def two_papers(requests: int = 4) -> list[Batch]:
    """Two papers with a main table and another one, of every kind and three pairs.

    The cells of pairs differ in their methods; those of tables in their windows.
    """
    batches = []
    for number, paper in enumerate(("pearl", "dsi")):
        for is_main in (True, False):
            gamma = 2 + 2 * number + (not is_main)
            table = {"paper": paper, "is_main": is_main}
            virtual = [virtual_spec(gamma=gamma, alpha=a) for a in (0.7, 0.8, 0.9)]
            emulated = [
                emulated_spec(gamma=gamma, alpha=alpha, requests=requests)
                for alpha in (0.7, 0.8)
            ]
            batches.append(batch(f"virtual {paper} {is_main}", *virtual, **table))
            batches.append(batch(f"emulated {paper} {is_main}", *emulated, **table))
            for pair in ("toy", "embedded/duo", "embedded/eagle"):
                measured = [
                    measured_spec(method, gamma, pair=pair, requests=requests)
                    for method in ("pearl", "speculative")
                ]
                name = f"measured {paper} {is_main} {pair}"
                batches.append(batch(name, *measured, **table))
    return batches


def all_specs(batches: Sequence[Batch]) -> list[Spec]:
    specs: list[Spec] = []
    for each in batches:
        specs += each.specs
    return specs


def guessed_seconds(spec: Spec) -> float:
    """What a first guess expects of a cell's request, or of a virtual cell."""
    tokens = spec.tokens * (spec.requests if spec.kind == "virtual" else 1)
    return FIRST_GUESS[spec.kind] * tokens


Simulate = Callable[..., None]


@pytest.fixture
def simulate(monkeypatch) -> Simulate:
    """Runs batches with a simulated runner, until so many seconds from now."""

    def simulate(
        runner: SimulatedRunner,
        batches: Sequence[Batch],
        seconds: float | None = None,
        pace: Pace | None = None,
    ) -> None:
        monkeypatch.setattr(batches_page, "stored", runner.stored)
        deadline = None if seconds is None else runner.now + seconds
        pace = pace or Pace({})
        schedule = Schedule(
            batches, runner, pace, deadline, lambda _: None, clock=runner.clock
        )
        schedule.run()

    return simulate


@pytest.mark.parametrize("budget", [1.0, 10.0, 40.0])
@pytest.mark.parametrize("times_as_long", [0.1, 1.0, 10.0, 100.0])
def test_the_deadline_is_kept_however_wrong_the_estimates(
    simulate, budget, times_as_long
):
    """What is under way then is finished: one request, or one start of workers."""

    def seconds_of(spec: Spec) -> float:
        return times_as_long * guessed_seconds(spec)

    runner = SimulatedRunner(seconds_of, start=6.0 * times_as_long)
    batches = two_papers()
    simulate(runner, batches, budget)
    longest = max(map(seconds_of, all_specs(batches)))
    assert runner.now <= budget + longest + 6.0 * times_as_long


def test_a_piece_that_takes_ten_times_as_long_is_stopped_and_keeps_what_is_finished(
    simulate,
):
    slow = measured_spec(pair="embedded/duo", requests=40)

    def seconds_of(spec: Spec) -> float:
        return 2.0 if spec == slow else guessed_seconds(spec)

    runner = SimulatedRunner(seconds_of, start=0.0)
    pace = Pace({"measured": 0.2 / 24})  # a tenth of what it takes
    others = [measured_spec("speculative", gamma=2, pair="embedded/duo", requests=40)]
    batches = [batch("slow", slow), batch("other", *others)]
    simulate(runner, batches, seconds=5.0, pace=pace)
    assert runner.now <= 5.0 + 2.0
    assert len(runner.stored(slow).stats) == 2


def test_what_its_like_took_says_whether_a_piece_fits(simulate):
    """A request takes 10 s: of two batches that are alike both get one, and one two."""
    first = measured_spec(gamma=2, requests=2)
    second = measured_spec(gamma=3, requests=2)
    runner = SimulatedRunner(lambda _: 10.0, start=0.0)
    pace = Pace({"measured": 1e-3})
    simulate(runner, [batch("a", first), batch("b", second)], seconds=35.0, pace=pace)
    assert len(runner.stored(first).stats) == 2
    assert len(runner.stored(second).stats) == 1
    assert runner.now == 30.0


# The start of a pair's workers, and two prompts by two methods and plain decoding.
LONGEST_FIRST_PIECE = 6.0 + 2 * 3 * 12 * FIRST_GUESS["measured"]


@pytest.mark.parametrize("budget", [15.0, 40.0, 60.0, 120.0])
def test_every_table_has_its_first_numbers_before_others_get_further_ones(
    simulate, budget
):
    """But for the end, when no first numbers would be there in time any more."""
    runner = SimulatedRunner(guessed_seconds)
    batches = two_papers()
    simulate(runner, batches, budget)
    for ran in runner.log:
        if ran.number == 2 and ran.end <= budget - LONGEST_FIRST_PIECE:
            ended_before = {other.spec for other in runner.log if other.end <= ran.end}
            assert ended_before.issuperset(all_specs(batches))


def test_the_largest_of_these_budgets_reaches_third_requests_well_before_its_end(
    simulate,
):
    """So that the test before says something."""
    runner = SimulatedRunner(guessed_seconds)
    simulate(runner, two_papers(), 120.0)
    third_requests = [ran.end for ran in runner.log if ran.number == 2]
    assert min(third_requests) < 120.0 - LONGEST_FIRST_PIECE


def test_runs_that_go_on_end_with_everything_and_do_nothing_twice(simulate):
    runner = SimulatedRunner(guessed_seconds)
    pace = Pace({})
    for _ in range(40):
        began = runner.now
        simulate(runner, two_papers(), 20.0, pace)  # counted anew from what is stored
        assert runner.now <= began + 20.0 + 6.0

    requests = [(ran.spec, ran.number) for ran in runner.log]
    assert len(set(requests)) == len(requests)
    batches = two_papers()
    for spec in all_specs(batches):
        assert len(runner.stored(spec).stats) == spec.requests
    ended = runner.now
    simulate(runner, batches, 20.0, pace)
    assert runner.now == ended


def test_without_a_deadline_everything_is_done_and_no_pair_starts_in_every_round(
    simulate,
):
    runner = SimulatedRunner(guessed_seconds)
    batches = two_papers(requests=8)
    simulate(runner, batches)
    for spec in all_specs(batches):
        assert len(runner.stored(spec).stats) == spec.requests
    # Three pairs in each paper's main tables, and three in the rest of both.
    assert len(runner.started) <= 2 * 3 + 3


# -- how long work takes ---------------------------------------------------------------
def test_work_takes_what_its_like_took_last_else_what_its_kind_took_last():
    pace = Pace({})
    assert pace.expect("script", "a") == FIRST_GUESS["script"]
    pace.note("script", "a", seconds=4.0)
    pace.note("script", "b", seconds=6.0)
    assert pace.expect("script", "a") == 4.0
    assert pace.expect("script", "c") == 6.0
    pace.note("script", "a", seconds=5.0)
    assert pace.expect("script", "a") == 5.0


def test_what_was_seen_is_stored_and_a_damaged_file_counts_as_empty():
    pace = Pace.read()
    pace.note("measured", "toy", 10, seconds=4.0)
    assert Pace.read().expect("measured", "toy", 5) == 2.0
    (paths.CACHE / "pace.json").write_text("{")
    assert Pace.read().expect("measured", "toy") == FIRST_GUESS["measured"]


def test_work_is_counted_by_its_cells_and_tokens():
    one, two = measured_spec(tokens=50), measured_spec(gamma=3, tokens=50)
    few, many = batch("measured a", one), batch("measured b", one, two)
    assert few.units_to(2) == 2 * (50 + 50)  # each prompt is decoded plainly, too
    assert many.units_to(2) == 2 * (50 + 50 + 50)
    assert batch("virtual", virtual_spec()).units_to(2) == 3 * 120  # as a whole


# -- budgets ---------------------------------------------------------------------------
@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf")])
def test_a_budget_of_nothing_is_refused(minutes):
    with pytest.raises(BadValue, match=r"minutes is .*: give a number of minutes"):
        Budget.of_minutes(minutes)


def test_a_budget_below_the_cheapest_cell_says_what_the_least_is():
    with pytest.raises(BadValue, match=r"take about 1\.5 min here; give at least that"):
        Budget.of_minutes(0.5).check_least(90)
    Budget.of_minutes(2).check_least(90)
    Budget.of_minutes(None).check_least(90)


def test_what_comes_after_the_cells_is_taken_from_the_budget():
    budget = Budget.of_minutes(5)
    assert budget.deadline(reserved=60) == pytest.approx(budget.started + 240)
    assert Budget.of_minutes(None).deadline(reserved=60) is None


def test_the_least_that_is_told_is_enough():
    """Rounded down to a tenth of a minute, it would be refused in turn."""
    seconds = 2.14 * 60
    with pytest.raises(BadValue) as refused:
        Budget.of_minutes(1).check_least(seconds)
    (least,) = re.findall(r"take about ([\d.]+) min here", str(refused.value))
    Budget.of_minutes(float(least)).check_least(seconds)


def test_durations_read_as_people_say_them():
    assert describe_seconds(58.2) == "58 s"
    assert describe_seconds(1500) == "25 min"
