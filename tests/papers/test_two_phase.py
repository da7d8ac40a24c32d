"""Numbers of all prompts, of which a few were measured and all replayed."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from math import inf

import numpy as np
import pytest
from helpers.specs import measured_spec
from scipy.stats import t

from speclab.experiment.spec import CellResult, Replays, present
from speclab.papers.bootstrap import measured_once
from speclab.papers.estimates import Estimate, divide
from speclab.papers.findings import settle_above
from speclab.papers.ledger import Cell
from speclab.papers.notes import describe_correction
from speclab.papers.reach import Reach
from speclab.papers.settle_claims import Part, conclude
from speclab.papers.table_result import is_disturbed
from speclab.papers.two_phase import NO_PEERS, Peers, plain_part, read_statistic
from speclib.trace.metrics import Stats

TOKENS = 10  # of each request after the first commit
CELLS = frozenset([Cell("table-1", "PEARL", "HumanEval")])
BUSY = 0.5  # the share that other programs took of the machine


def request(seconds: float, accepted: int = 0) -> Stats:
    """A request that took so long after its first commit."""
    return Stats(
        requests=1,
        tokens=TOKENS + 1,
        first_tokens=1,
        seconds=seconds + 1.0,
        ttft=1.0,
        accepted=accepted,
        target_runs=5,
        step_busy=seconds / 2,
        step_seconds=seconds,
        steps=5,
    )


numbers = count()


def cell(
    measured: list[float],
    replayed: list[float],
    plain: float = 10.0,
    method: str = "pearl",
    others: list[float] | None = None,
    seed: int | None = None,
    in_task: int | None = None,
) -> CellResult:
    """A cell by the seconds of its requests; ``plain`` decoding takes equally long.

    Each is a run of its own, unless it is given a ``seed``. ``in_task``: how many
    prompts there are; None: no end of them.
    """
    gamma = None if method == "autoregressive" else 2
    own_seed = next(numbers) if seed is None else seed
    return CellResult(
        spec=measured_spec(method, gamma, seed=own_seed),
        stats=[request(seconds) for seconds in measured],
        baseline=[request(plain)] * len(measured),
        gamma=gamma,
        c=3.0,
        machine="here",
        facts={"others": others} if others else {},
        replays=Replays(
            stats=[request(seconds) for seconds in replayed],
            baseline=[request(plain)] * len(replayed),
            sequence_choices=[[] for _ in replayed],
            prompts_in_task=in_task,
        ),
    )


def read(result: CellResult, stat: str = "decode_speed", *others: CellResult):
    return read_statistic(stat, result, peers=Peers([result, *others]))


# -- the number ------------------------------------------------------------------------
def test_the_number_is_that_of_all_replays_times_measured_over_replayed():
    """Replays take 2, 4, 6, 8 s, so 40 tokens in 20 s; measured ones 1.5 times as long
    as the first two of them."""
    estimate = read(cell([3.0, 6.0], [2.0, 4.0, 6.0, 8.0]))
    assert estimate.value == pytest.approx(40 / 20 / 1.5)
    assert estimate.correction.by == pytest.approx(1 / 1.5)
    assert estimate.correction.measured == 2


def test_a_speed_up_is_corrected_by_both_sides():
    """Plain decoding is replayed as it is measured; the method takes 1.25 times as long
    as its replay: 10 / 5 becomes 10 / 6.25."""
    estimate = read(cell([2.5, 7.5], [2.0, 6.0, 7.0]), "speedup")
    assert estimate.value == pytest.approx(2.0 / 1.25)


def test_a_number_that_may_be_negative_is_corrected_by_a_difference():
    """Seconds without work: half of each step, of five steps a request."""
    estimate = read(cell([3.0, 6.0], [2.0, 4.0, 6.0]), "communication_per_step")
    replayed = (2 + 4 + 6) / 2 / 15
    correction = (3 + 6) / 2 / 10 - (2 + 4) / 2 / 10
    assert not estimate.correction.is_factor
    assert estimate.value == pytest.approx(replayed + correction)


def test_replays_on_a_clock_of_another_speed_give_the_same_number():
    """A replay that is wrong by a factor, as on a machine that was timed while it was
    slow, is put right by the correction."""
    measured, replayed = [3.0, 5.5], [2.0, 4.0, 6.0, 8.0]
    right = read(cell(measured, replayed))
    wrong = read(cell(measured, [1.7 * seconds for seconds in replayed]))
    assert wrong.value == pytest.approx(right.value)
    assert wrong.interval == pytest.approx(right.interval)


def test_counts_that_replay_exactly_leave_open_the_task_alone():
    """How many drafts are accepted is known without measuring."""
    result = cell([3.0, 6.0], [2.0, 4.0, 6.0])
    counts = [request(seconds, accepted=n) for n, seconds in enumerate((2, 4, 6), 3)]
    result = replace(
        result,
        stats=[request(3.0, 3), request(6.0, 4)],
        replays=replace(result.replays, stats=counts),
    )
    estimate = read(result, "mat")
    assert estimate.value == pytest.approx((3 + 4 + 5) / 15)
    assert (estimate.correction.by, estimate.correction.error) == (1.0, 0.0)
    assert estimate.interval.low < estimate.value < estimate.interval.high


def test_where_replays_tell_nothing_a_disturbed_request_is_left_out_too():
    """One quiet request of two: nobody knows how much corrections differ."""
    result = cell([3.0, 60.0], [3.0, 6.0], others=[0.0, 0.4])
    estimate = read(result)
    assert estimate.correction is None
    assert estimate.value == pytest.approx(10 / 3.0)
    note = describe_correction(estimate, result)
    assert note == "; replays are not used: too few requests were quiet"


def test_the_note_of_a_number_says_on_how_many_requests_it_rests():
    result = cell([3.0, 6.0], [2.0, 4.0, 6.0, 8.0])
    note = describe_correction(read(result), result)
    assert note == f"; 2 {result.spec.kind}, 4 replayed, correction x0.667"

    result = cell([3.0, 6.001], [2.0, 4.0, 6.0, 8.0], in_task=96)
    note = describe_correction(read(result), result)
    assert note == f"; 2 {result.spec.kind}, 4 of 96 replayed, correction x0.667"


# -- its interval ----------------------------------------------------------------------
def test_the_interval_is_wider_than_each_of_its_parts():
    """With replays that are all alike the correction alone is open, with corrections
    that are all alike the task alone; with both the squares of both are added."""
    alike = [4.0] * 6
    differing = [2.0, 4.0, 6.0, 3.0, 5.0, 4.0]
    of_correction = half_width(cell([4.0, 5.0], alike))
    of_task = half_width(cell([2.5, 5.0], differing))
    of_both = half_width(cell([2.0 * 1.0, 4.0 * 1.25], differing))
    assert of_both == pytest.approx(np.hypot(of_correction, of_task), rel=1e-6)


def half_width(result: CellResult, stat: str = "decode_speed") -> float:
    interval = read(result, stat).interval
    return float(np.log(interval.high / interval.low)) / 2


@pytest.mark.parametrize("in_task, left_open", [(6, 0), (8, 1 / 4), (24, 3 / 4)])
def test_what_was_replayed_of_a_task_leaves_open_only_the_rest_of_it(
    in_task, left_open
):
    """Of a mean over N things, n of them known, the variance is (1 - n / N) times that
    of n out of a number without end (Cochran, chapter 2.6)."""
    measured, replayed = [2.5, 5.0001, 3.7499], [2.0, 4.0, 3.0, 6.0, 5.0, 4.0]
    of_endless = cell(measured, replayed)
    of_task = cell(measured, replayed, in_task=in_task)
    assert read(of_task).value == pytest.approx(read(of_endless).value)
    ratio = half_width(of_task) / half_width(of_endless)
    assert ratio == pytest.approx(left_open**0.5, rel=0.03, abs=1e-3)


def test_a_task_that_was_replayed_to_its_end_leaves_open_the_correction_alone():
    differing = [2.0, 4.0, 6.0, 3.0, 5.0, 4.0]
    corrections = half_width(cell([4.0, 5.0], [4.0] * 6))
    whole = cell([2.0 * 1.0, 4.0 * 1.25], differing, in_task=6)
    assert half_width(whole) == pytest.approx(corrections, rel=1e-6)
    estimate = read(whole)
    assert not Reach(estimate, 1.01 * estimate.value).lacks_replays
    assert not Reach(estimate, 1.01 * estimate.value).is_impossible


def test_a_claim_about_a_task_that_can_be_replayed_to_its_end_is_never_out_of_reach():
    """With 96 prompts in the task it is a matter of time; with 164 (HumanEval's) the
    96 that are replayed at most leave something open."""
    measured, replayed = [2.5, 5.0001, 3.7499], [2.0, 4.0, 3.0, 6.0, 5.0, 4.0]
    for in_task, is_out_of_reach in ((96, False), (164, True), (None, True)):
        estimate = read(cell(measured, replayed, in_task=in_task))
        limit = 1.01 * estimate.value
        assert Reach(estimate, limit).lacks_replays
        assert Reach(estimate, limit).is_impossible is is_out_of_reach


@pytest.mark.parametrize("measured, share", [(1, 0.95), (30, 0.0951), (60, 0.0487)])
def test_a_count_is_as_sure_as_many_measured_requests_agreed(measured, share):
    """All prompts were replayed. Of M agreeing requests 1 - 0.05 ** (1 / M) of the
    others may differ (95 %), so this share of the variance stays."""
    counts = [8, 6, 4, 2] * 15
    endless = counted(counts[:measured], counts)
    replays = replace(present(endless.replays), prompts_in_task=60)
    of_task = replace(endless, replays=replays)
    wide, narrow = (read(each, "mat").interval for each in (endless, of_task))
    ratio = np.log(narrow.high / narrow.low) / np.log(wide.high / wide.low)
    assert ratio == pytest.approx(share**0.5, rel=0.03)


def test_a_prompt_that_several_cells_measured_is_one_witness_of_exact_counts():
    """Of 30 prompts, whether one setting of the method measured them or three."""
    counts = [8, 6, 4, 2] * 15
    alone = counted(counts[:30], counts)
    replays = replace(present(alone.replays), prompts_in_task=60)
    alone = replace(alone, replays=replays)
    others = []
    for setting in range(3):
        settings = (("without", f"{setting}"),)
        others.append(replace(alone, spec=alone.spec.changed(settings=settings)))
    of_one = read(alone, "mat").interval
    assert read(alone, "mat", *others).interval == pytest.approx(of_one)

    elsewhere = counted(counts[:30], counts)  # other prompts
    assert read(alone, "mat", elsewhere).interval.high < of_one.high


def test_corrections_that_happen_to_be_equal_leave_the_task_as_open_as_it_was():
    """Nobody is that sure: of two measured requests both took exactly 1.5 times as
    long."""
    measured, replayed = [3.0, 6.0], [2.0, 4.0, 6.0, 3.0]
    of_task = half_width(cell(measured, replayed, in_task=4))
    assert of_task == pytest.approx(half_width(cell(measured, replayed)))


def test_cells_of_the_same_prompts_tell_no_more_of_them_than_one():
    """Five settings of one method, run beside the same plain decoding."""
    cells = []
    for setting in range(5):
        result = cell([4.0, 5.0], [4.0] * 6, seed=-2)
        spec = result.spec.changed(settings=(("without", f"{setting}"),))
        cells.append(replace(result, spec=spec))
    assert read(cells[0], "decode_speed", *cells[1:]).correction.freedom == 1
    elsewhere = cell([4.0, 5.0], [4.0] * 6)
    together = read(cells[0], "decode_speed", *cells[1:], elsewhere)
    assert together.correction.freedom == 2


def test_a_quotient_of_two_tasks_of_which_one_is_known_leaves_open_the_other():
    replayed = [2.0, 4.0, 3.0, 6.0, 5.0, 4.0]
    known = read(cell([2.5, 5.1, 3.7], replayed, in_task=6))
    other = read(cell([2.5, 5.0, 3.8], [*replayed, 7.0], in_task=12))
    quotient = divide(known, other)
    assert quotient.resamples.requests == other.resamples.requests
    assert quotient.resamples.population == 12
    widths = [np.log(each.interval.high / each.value) for each in (known, other)]
    got = np.log(quotient.interval.high / quotient.value)
    assert max(widths) < got < 1.01 * np.hypot(*widths)


def test_what_more_replays_would_settle_is_told_from_what_more_requests_would():
    """Corrections that are all alike leave the task open, replays that are all alike
    the correction; outside of the interval nothing is open."""
    of_task = read(cell([2.5, 5.0, 3.75], [2.0, 4.0, 3.0, 6.0, 5.0, 4.0]))
    of_correction = read(cell([4.0, 5.0], [4.0] * 6))
    for estimate, lacks_replays in ((of_task, True), (of_correction, False)):
        estimate = replace(estimate, cells=CELLS)
        near = estimate.value * 1.2
        assert Reach(estimate, near).lacks_replays is lacks_replays
        assert not Reach(estimate, 2 * estimate.interval.high).lacks_replays
        finding = settle_above(estimate, near)
        verdict = conclude([Part(finding)], kind="measured", value="", expected="")
        assert verdict.holds == "open"
        (lack,) = verdict.lacks
        assert bool(lack.replayed) is lacks_replays
        assert bool(lack.timed) is not lacks_replays


def test_two_counts_that_are_replayed_exactly_are_compared_on_more_replays():
    """No correction is open, so no timed prompt would help."""
    one, other = counted([8, 6], [8, 6, 4, 2]), counted([7, 6], [7, 6, 5, 2])
    quotient = replace(divide(read(one, "mat"), read(other, "mat")), cells=CELLS)
    finding = settle_above(quotient, 1.15)
    verdict = conclude([Part(finding)], kind="measured", value="", expected="")
    assert verdict.holds == "open"
    (lack,) = verdict.lacks
    assert lack.replayed == CELLS
    assert not lack.timed
    assert "the prompts that were replayed leave it open" in verdict.note


def test_how_many_timed_prompts_would_do_once_all_are_replayed():
    """Replays are known to the end. So it is Student's interval of n corrections, which
    differ as 5 and 4 do: t of n - 1 times their spread over sqrt(n)."""
    of_all = read(cell([4.0, 5.0], [4.0, 4.0, 9.0, 2.0], in_task=4))
    of_all = replace(of_all, cells=CELLS)
    spread = np.log(5 / 4) / np.sqrt(2)
    for enough in (3, 7, 40):
        needs = [
            t.ppf(0.975, n - 1) * spread / np.sqrt(n) for n in (enough - 1, enough)
        ]
        limit = of_all.value * np.exp(-np.mean(needs))
        finding = settle_above(of_all, limit)
        verdict = conclude([Part(finding)], kind="measured", value="", expected="")
        assert verdict.lacks[0].requests == enough
        assert f"about {enough} timed prompts" in verdict.note


def test_counts_that_few_prompts_vouch_for_ask_for_more_of_them():
    """All 60 are replayed, and of two that agree 78 % of the variance stays. That of 16
    is 17 %: of a limit at half of the whole half-width, 0.25 is enough, so it takes
    log(0.05) / log(0.75) = 10.4 of them."""
    counts = [8, 6, 4, 2] * 15
    alone = counted(counts[:2], counts)
    whole = half_width(alone, "mat")
    replays = replace(present(alone.replays), prompts_in_task=60)
    of_task = read(replace(alone, replays=replays), "mat")
    of_task = replace(of_task, cells=CELLS)
    finding = settle_above(of_task, of_task.value * np.exp(-whole / 2))
    assert finding.answer == "open"
    verdict = conclude([Part(finding)], kind="measured", value="", expected="")
    (lack,) = verdict.lacks
    assert lack.timed == CELLS
    assert not lack.replayed
    assert lack.requests == 11
    assert "about 11 timed prompts would settle it" in verdict.note


def test_of_a_count_that_no_prompt_vouches_for_everything_is_in_doubt():
    """One setting agrees with its replay, but another one of the same prompt does not:
    so the prompt agrees in none."""
    one = counted([8], [8, 6, 4, 2])
    other = counted([7], [8, 6, 4, 2])
    settings = (("without", "pre-verify"),)
    other = replace(other, spec=one.spec.changed(settings=settings))
    of_task = replace(present(one.replays), prompts_in_task=4)
    one = replace(one, replays=of_task)
    low, high = read(one, "mat", other).interval
    endless = replace(one, replays=replace(of_task, prompts_in_task=None))
    assert (low, high) == pytest.approx(tuple(read(endless, "mat").interval))


def test_beside_a_number_that_was_measured_once_nothing_is_sure():
    sure, once = read(cell([4.0, 5.0], [4.0] * 6)), Estimate(1.5, measured_once(1.5))
    for quotient in (divide(sure, once), divide(once, sure)):
        assert quotient.is_measured_once
        assert quotient.interval == (-inf, inf)
        finding = settle_above(replace(quotient, cells=CELLS), 1.0)
        verdict = conclude([Part(finding)], kind="measured", value="", expected="")
        assert verdict.lacks[0].timed == CELLS
        assert "at least 2 are needed" in verdict.note

    exact = read(counted([8, 6], [8, 6, 4, 2]), "mat")
    assert divide(exact, once).correction is None


def test_what_no_number_of_replays_would_settle_asks_for_nothing():
    """Six replays leave 38 % open on either side, so 96, four times as sure, leave a
    tenth: a limit that is nearer stays open. One question out of reach is enough, if
    all have to be answered yes."""
    result = cell([2.5, 5.0, 3.75], [2.0, 4.0, 3.0, 6.0, 5.0, 4.0])
    estimate = replace(read(result), cells=CELLS)
    assert half_width(result) == pytest.approx(0.38, abs=0.01)
    near = settle_above(estimate, estimate.value * 0.93)
    far = settle_above(estimate, estimate.value * 0.8)
    asked = [(near,), (far,), (near, far)]
    lacks = []
    for findings in asked:
        parts = [Part(finding) for finding in findings]
        verdict = conclude(parts, kind="measured", value="", expected="")
        assert verdict.holds == "open"
        says_so = "96 replayed prompts would leave it open" in verdict.note
        assert says_so == (near in findings)
        lacks.append(verdict.lacks)
    assert lacks[0] == lacks[2] == ()
    assert lacks[1][0].replayed

    seem_broken = [settle_above(estimate, estimate.value * by) for by in (1.07, 1.25)]
    parts = [Part(finding) for finding in seem_broken]
    verdict = conclude(parts, kind="measured", value="", expected="")
    assert verdict.lacks[0].replayed  # the farther one would be enough


def test_the_correction_of_two_requests_is_told_by_cells_of_the_same_method():
    """Alone it has one degree of freedom; five cells like it have five more."""
    result = cell([4.0, 5.0], [4.0] * 6)
    alone = half_width(result)
    others = [cell([4.0, 5.0], [4.0] * 6) for _ in range(5)]
    another_method = cell([4.0, 9.0], [4.0] * 6, method="autoregressive")
    together = read(result, "decode_speed", *others, another_method)
    assert together.correction.freedom == pytest.approx(6)
    assert alone / 6 < np.log(together.interval.high / together.value) < alone / 4


def test_cells_that_share_their_runs_count_once():
    """As one whose window is round(c), and one that asks for that number."""
    one = cell([4.0, 5.0], [4.0] * 6, seed=-1)
    asked_by_name = replace(one, spec=one.spec.changed(gamma="auto"))
    assert read(one, "decode_speed", asked_by_name).correction.freedom == 1


def test_a_quotient_has_the_corrections_of_both():
    one, other = cell([4.0, 5.0], [4.0] * 6), cell([3.0, 4.0], [3.0] * 6)
    peers = Peers([one, other])
    top = read_statistic("decode_speed", one, peers=peers)
    bottom = read_statistic("decode_speed", other, peers=peers)
    quotient = divide(top, bottom)
    errors = top.correction.error, bottom.correction.error
    assert quotient.correction.error == pytest.approx(np.hypot(*errors), rel=1e-6)
    assert quotient.times(100).correction == quotient.correction


def test_a_number_over_itself_is_1_whatever_its_correction():
    one = cell([4.0, 5.0], [4.0] * 6)
    peers = Peers([one, cell([4.0, 5.0], [4.0] * 6)])
    top, bottom = (read_statistic("decode_speed", one, peers=peers) for _ in range(2))
    assert top.interval.low < top.value
    assert divide(top, bottom).interval == (1.0, 1.0)


# -- quotients of what was measured in turns -------------------------------------------
def in_turns(slowed: list[float], seed: int, **facts) -> tuple[CellResult, CellResult]:
    """PEARL and speculative decoding of the same requests, both ``slowed`` alike."""
    prompts = [2.0, 4.0, 6.0, 8.0]
    pearl_took = [a * b for a, b in zip(prompts, slowed, strict=False)]
    took = [1.5 * seconds for seconds in pearl_took]
    pearl = cell(pearl_took, prompts, seed=seed, **facts)
    speculative = cell(
        took, [1.5 * a for a in prompts], method="speculative", seed=seed, **facts
    )
    return pearl, speculative


def quotient_of_first(pairs: list[tuple[CellResult, CellResult]]):
    peers = Peers([result for pair in pairs for result in pair])
    top, bottom = (
        read_statistic("decode_speed", result, peers=peers) for result in pairs[0]
    )
    return top, divide(top, bottom)


SLOWED = ([1.0, 1.3], [1.1, 1.0], [1.4, 1.2], [1.0, 1.2])


def test_what_slows_both_of_two_methods_cancels_in_their_quotient():
    pairs = [in_turns(slowed, seed) for seed, slowed in enumerate(SLOWED)]
    alone, quotient = quotient_of_first(pairs)
    assert alone.interval.high / alone.value > 1.1
    assert quotient.value == pytest.approx(1.5)
    assert quotient.interval == pytest.approx((1.5, 1.5))


def test_three_pairs_of_two_requests_are_too_few_to_tell_how_quotients_differ():
    pairs = [in_turns(slowed, seed) for seed, slowed in enumerate(SLOWED[:3])]
    _, quotient = quotient_of_first(pairs)
    assert quotient.interval.high > 1.6


def test_requests_of_other_conditions_or_of_other_numbers_are_not_in_turns():
    pairs = [in_turns(slowed, seed) for seed, slowed in enumerate(SLOWED)]
    elsewhere = [(pairs[0][0], pairs[1][1]), *pairs[1:]]
    _, quotient = quotient_of_first(elsewhere)
    assert quotient.interval.high > 1.6

    pearl, speculative = pairs[0]
    busy = replace(speculative, facts={"others": [0.0, BUSY]})
    _, quotient = quotient_of_first([(pearl, busy), *pairs[1:], in_turns([1, 1], 9)])
    assert quotient.interval.high > 1.6


def test_how_many_requests_would_have_to_be_timed_is_counted():
    """Two leave a half-width of 12.7 / sqrt(2) deviations about the correction, by one
    degree of freedom's t: 9.0; three 4.3 / sqrt(3) = 2.5; seven 0.93, eight 0.84. The
    task is known, as all replays are alike."""
    estimate = read(cell([4.0, 5.0], [4.0] * 6))
    reach = np.log(estimate.interval.high / estimate.value)
    assert Reach(estimate, estimate.value * np.exp(reach / 2)).requests_needed == 3
    assert Reach(estimate, estimate.value * np.exp(reach / 10)).requests_needed == 8
    assert Reach(estimate, estimate.value * np.exp(1.01 * reach)).requests_needed == 2


def test_where_the_task_is_open_no_timed_request_helps():
    estimate = read(cell([2.0, 4.0], [2.0, 4.0, 6.0]))
    assert Reach(estimate, 1.05 * estimate.value).requests_needed is None


# -- counts ----------------------------------------------------------------------------
def counted(measured: list[int], replayed: list[int], **facts) -> CellResult:
    """A cell by the accepted drafts of its requests, with its draft in torch."""
    result = cell([1.0] * len(measured), [1.0] * len(replayed))
    return replace(
        result,
        stats=[request(1.0, accepted) for accepted in measured],
        facts={"draft": "torch", **facts},
        replays=replace(
            present(result.replays), stats=[request(1.0, each) for each in replayed]
        ),
    )


def test_a_count_that_replays_have_exactly_rests_on_all_of_them():
    """5 target passes a request, so 8 + 6 + 4 + 2 accepted make 20 / 20."""
    estimate = read(counted([8], [8, 6, 4, 2]), "mat")
    assert estimate.value == 1.0
    assert not estimate.is_measured_once
    assert estimate.correction.measured == 1
    assert estimate.correction.by == 1.0
    low, high = estimate.interval
    assert low < 1.0 < high  # what four prompts leave open about the task

    of_all_alike = read(counted([4], [4, 4, 4, 4]), "mat")
    assert of_all_alike.interval == pytest.approx((0.8, 0.8))


@pytest.mark.parametrize("busy", [0.0, BUSY])
def test_a_busy_machine_changes_no_count(busy):
    result = counted([8, 6], [8, 6, 4, 2], others=[busy, busy])
    assert read(result, "mat").correction.measured == 2


def test_a_count_is_not_exact_where_a_request_differs_or_nothing_promises_it():
    """Of one request alone nothing is known then; its seconds differ anyhow."""
    assert read(counted([8], [7, 6, 4, 2]), "mat").is_measured_once
    assert read(counted([8], [8, 6, 4, 2]), "decode_speed").is_measured_once
    assert read(counted([8], [8, 6, 4, 2], draft="llama.cpp"), "mat").is_measured_once

    alone = counted([8], [8, 6, 4, 2])
    in_bfloat16 = replace(alone, spec=alone.spec.changed(dtype="bfloat16"))
    by_time = replace(alone, spec=alone.spec.changed(method="dsi", gamma=None))
    assert read(in_bfloat16, "mat").is_measured_once
    assert read(replace(by_time, gamma=None), "mat").is_measured_once


# -- where there is no correction ------------------------------------------------------
def test_without_replays_or_peers_it_is_what_was_measured():
    result = cell([3.0, 6.0], [2.0, 4.0, 6.0])
    for estimate in (
        read_statistic("decode_speed", result, peers=NO_PEERS),
        read(replace(result, replays=None)),
    ):
        assert estimate.value == pytest.approx(20 / 9)
        assert estimate.correction is None


def test_one_request_alone_has_no_correction_and_with_peers_it_has():
    once = cell([3.0], [2.0, 4.0])
    assert read(once).is_measured_once
    assert not read(once, "decode_speed", cell([3.0, 6.0], [2.0, 4.0])).is_measured_once


def test_disturbed_requests_are_left_out_while_a_quiet_one_is_left():
    """The second took ten times as long, beside another program."""
    quiet = cell([3.0, 60.0, 9.0], [2.0, 4.0, 6.0], others=[0.0, BUSY, 0.0])
    assert read(quiet).value == pytest.approx(30 / 12 / 1.5)
    assert not is_disturbed(quiet)
    assert is_disturbed(cell([3.0, 60.0], [2.0, 4.0, 6.0], others=[BUSY, BUSY]))
    assert is_disturbed(replace(quiet, replays=None))


def test_plain_decoding_beside_a_cell_is_corrected_by_itself():
    result = cell([3.0, 6.0], [2.0, 4.0, 6.0], plain=8.0)
    plain = plain_part(result)
    assert read(plain).value == pytest.approx(TOKENS / 8.0)
    assert read(plain, "speedup").is_exact


# -- 2,000 trials ----------------------------------------------------------------------
@pytest.mark.thorough
@pytest.mark.parametrize("correction", [0.8, 1.2])
@pytest.mark.parametrize("measured", [2, 8])
def test_the_interval_holds_a_known_truth_in_95_percent_of_2000_trials(
    correction, measured
):
    """Six cells of 96 replays each, noise as skewed as an exponential's. A share of
    0.95 of 2,000 deviates by 0.5 %; four deviations less fail once in 30,000 times.

    The truth: speeds are log-normal over prompts, so the mean of their inverse is
    exp(s^2 / 2); noise is exp(d (e - 1)) with e exponential, whose mean is
    exp(-d) / (1 - d).
    """
    rng = np.random.default_rng(11)
    of_prompts, of_noise = 0.11, 0.05
    inverse = np.exp(of_prompts**2 / 2) * np.exp(-of_noise) / (1 - of_noise)
    truth = TOKENS / (4.0 * inverse / correction)
    held = 0
    for _ in range(2000):
        cells = []
        for _ in range(6):
            replayed = 4.0 * np.exp(of_prompts * rng.normal(size=96))
            noise = np.exp(of_noise * (rng.exponential(size=measured) - 1))
            timed = replayed[:measured] * noise / correction
            cells.append(cell(timed.tolist(), replayed.tolist()))
        interval = read(cells[0], "decode_speed", *cells[1:]).interval
        held += interval.low <= truth <= interval.high
    assert held / 2000 > 0.93


@pytest.mark.thorough
@pytest.mark.parametrize("replays", [24, 48, 96])
def test_the_interval_holds_the_number_of_a_whole_task_in_95_percent_of_2000_trials(
    replays,
):
    """Six cells of a task of 96 prompts, four of them measured. The truth is what all
    prompts of the first cell would take on the average, if they were measured."""
    rng = np.random.default_rng(13)
    of_prompts, of_noise = 0.3, 0.05
    mean_noise = np.exp(-of_noise) / (1 - of_noise)
    held = 0
    for _ in range(2000):
        cells, truths = [], []
        for _ in range(6):
            task = 4.0 * np.exp(of_prompts * rng.normal(size=96))
            noise = np.exp(of_noise * (rng.exponential(size=4) - 1))
            timed = (task[:4] * noise).tolist()
            cells.append(cell(timed, task[:replays].tolist(), in_task=96))
            truths.append(TOKENS / (task.mean() * mean_noise))
        interval = read(cells[0], "decode_speed", *cells[1:]).interval
        held += interval.low <= truths[0] <= interval.high
    assert 0.93 < held / 2000 < 0.97


@pytest.mark.thorough
@pytest.mark.parametrize("shared", [0.5, 1.0])
def test_prompts_that_move_all_settings_alike_are_allowed_for(shared):
    """Four tasks, of each eight settings that were measured on the same two prompts;
    ``shared`` of a correction's variance is the prompt's. All prompts are replayed."""
    rng = np.random.default_rng(14)
    held = 0
    for _ in range(1000):
        cells = []
        for task in range(4):
            of_prompts = 0.06 * shared**0.5 * rng.normal(size=2)
            for setting in range(8):
                own = 0.06 * (1 - shared) ** 0.5 * rng.normal(size=2)
                timed = 4.0 * np.exp(of_prompts + own)
                result = cell(timed.tolist(), [4.0] * 6, seed=-10 - task, in_task=6)
                spec = result.spec.changed(settings=(("without", f"{setting}"),))
                cells.append(replace(result, spec=spec))
        low, high = read(cells[0], "decode_speed", *cells[1:]).interval
        held += low <= TOKENS / 4.0 <= high
    assert held / 1000 > 0.93


@pytest.mark.thorough
def test_a_quotient_in_turns_holds_its_truth_in_95_percent_of_2000_trials():
    """Six pairs of cells of two measured requests. What slows both is thrice as large
    as what slows each for itself, which is distributed alike: so the truth is 6 / 4.
    """
    rng = np.random.default_rng(12)
    held, reached = 0, []
    for _ in range(2000):
        pairs = []
        for seed in range(6):
            prompts = np.exp(0.11 * rng.normal(size=96))
            both = np.exp(0.09 * (rng.exponential(size=2) - 1))
            own, others = np.exp(0.03 * (rng.exponential(size=(2, 2)) - 1))
            pearl = cell(
                (4 * prompts[:2] * both * own).tolist(),
                (4 * prompts).tolist(),
                seed=seed,
            )
            speculative = cell(
                (6 * prompts[:2] * both * others).tolist(),
                (6 * prompts).tolist(),
                method="speculative",
                seed=seed,
            )
            pairs.append((pearl, speculative))
        _, quotient = quotient_of_first(pairs)
        held += quotient.interval.low <= 1.5 <= quotient.interval.high
        reached.append(quotient.interval.high / quotient.value)
    assert held / 2000 > 0.93
    assert np.median(reached) < 1.12  # each side alone is about twice as open
