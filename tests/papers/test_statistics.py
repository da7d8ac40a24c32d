"""Named statistics by hand, and the intervals of their resamples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from speclab.experiment.spec import CellResult, Spec
from speclab.papers.bootstrap import RESAMPLES
from speclab.papers.estimates import Estimate, Interval, ledger_interval
from speclab.papers.statistics import compute, resample
from speclib.errors import SpeclibError
from speclib.trace.metrics import Stats

PLAIN = Stats(requests=1, tokens=11, first_tokens=1, seconds=10.0)


def request(tokens: int, seconds: float, accepted: int, rejected: int) -> Stats:
    """A request that commits one token at once; half its tokens' passes are drafts'."""
    return Stats(
        requests=1,
        tokens=tokens,
        first_tokens=1,
        seconds=seconds,
        rounds=tokens,
        drafted=2 * tokens,
        accepted=accepted,
        rejected=rejected,
        draft_runs=2 * tokens,
        target_runs=tokens,
        draft_seconds=seconds,
        target_seconds=seconds,
    )


def cell_of(*requests: Stats) -> CellResult:
    """A cell of these requests, with gamma 2 and c 3."""
    spec = Spec(
        kind="virtual",
        method="pearl",
        gamma=2,
        latency="pearl/codellama-7-34",
        alpha=0.9,
    )
    return CellResult(spec, list(requests), [PLAIN] * len(requests), 2, 3.0)


def interval_of(name: str, result: CellResult) -> Interval | None:
    return ledger_interval(Estimate(compute(name, result), resample(name, result)))


def test_statistics_by_hand():
    cell = cell_of(request(11, 5.0, 8, 2), request(11, 5.0, 4, 2))
    assert compute("speedup", cell) == 2.0  # 20 tokens in 10 s over 20 in 20 s
    assert compute("run_length", cell) == 3.0  # 12 accepted over 4 rejected
    assert compute("run_tokens", cell) == 4.0  # and one replacement each
    assert compute("mat", cell) == 12 / 22
    assert compute("target_runs", cell, 220) == 220
    assert compute("gamma", cell) == 2
    assert compute("c", cell) == 3.0
    with pytest.raises(
        SpeclibError, match="unknown statistic 'luck'; of .* known the nearest are"
    ):
        compute("luck", cell)


def test_times_of_a_step_by_hand():
    """Four steps of 0.5 s: a device is busy for 1.7 s of them, 0.1 s are verifying."""
    counts = replace(
        request(11, 5.0, 8, 2),
        steps=4,
        step_seconds=2.0,
        step_busy=1.7,
        step_draft=1.6,
        step_target=0.8,
        step_verify=0.1,
    )
    cell = cell_of(counts)
    assert compute("communication_per_step", cell) == pytest.approx(0.05)
    assert compute("verify_per_step", cell) == pytest.approx(0.025)
    assert compute("draft_per_step", cell) == pytest.approx(0.4)
    assert compute("target_per_step", cell) == pytest.approx(0.2)
    assert compute("draft_over_verify", cell) == pytest.approx(2)


def test_intervals_are_seeded_hold_the_value_and_shrink():
    few = cell_of(*[request(11, 4.0 + i % 3, 8, 2) for i in range(6)])
    many = cell_of(*[request(11, 4.0 + i % 3, 8, 2) for i in range(60)])
    of_few, of_many = interval_of("speedup", few), interval_of("speedup", many)

    assert interval_of("speedup", few) == of_few
    assert of_few.low < compute("speedup", few) < of_few.high
    assert of_many.low < compute("speedup", many) < of_many.high
    assert of_many.high - of_many.low < 0.5 * (of_few.high - of_few.low)


def test_a_resample_draws_the_same_requests_of_every_cell_and_of_plain_decoding():
    """Half of plain decoding's seconds, request by request: 2 in every resample."""
    plain = [replace(PLAIN, seconds=10.0 + 7 * i) for i in range(9)]
    halved = [request(11, run.seconds / 2, 8, 2) for run in plain]
    cell = cell_of(*halved)
    cell.baseline = plain
    speedups = resample("speedup", cell).values
    assert speedups == pytest.approx(np.full(RESAMPLES, 2.0))

    speeds = resample("decode_speed", cell).values
    of_another = resample("decode_speed", cell_of(*plain)).values
    assert speeds.std() > 0
    assert speeds == pytest.approx(2 * of_another)


def test_a_share_of_draftings_is_resampled_with_its_requests():
    """A request has one sequence or two, and takes 1 s for 10 tokens or 3 s."""
    cell = cell_of(request(11, 1.0, 8, 2), request(11, 3.0, 8, 2))
    cell.sequence_choices = [[(1, 0)], [(2, 0)]]
    two = resample("sequences 2", cell).values
    seconds_per_ten_tokens = 10 / resample("decode_speed", cell).values
    assert set(two) == {0.0, 0.5, 1.0}
    assert seconds_per_ten_tokens == pytest.approx(1 + 2 * two)


def test_what_cannot_be_resampled_has_no_interval():
    one_request = cell_of(request(11, 5.0, 8, 2))
    assert interval_of("speedup", one_request) is None
    without_rejection = cell_of(*[request(11, 5.0, 8, 0)] * 3)
    assert interval_of("run_length", without_rejection) is None


def test_a_draft_length_of_a_method_without_one_is_refused():
    cell = cell_of(request(11, 5.0, 8, 2))
    cell.gamma = None
    with pytest.raises(SpeclibError, match="gamma is None.*ask for another `stat`"):
        compute("accepted_share", cell)
