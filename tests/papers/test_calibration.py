"""Acceptance rates reproduce the printed numbers that they were derived from."""

from __future__ import annotations

import pytest
from helpers.tables import committed, lines_of

from speclab.papers.load_papers import load_paper
from speclab.theory import closed_forms
from speclib.data.latency import load_latency


@pytest.mark.parametrize(
    "name", ["codellama-7-34", "codellama-7-70", "deepseek-1.3-33", "deepseek-6.7-33"]
)
def test_a_calibration_reproduces_the_printed_quantity(pearl, name):
    calibration = pearl.calibration[name]
    accepted = closed_forms.sd_accepted(pearl.alpha(name), calibration.gamma)
    assert accepted == pytest.approx(pearl.printed(*calibration.cell), abs=1e-4)


def test_every_calibration_of_the_paper_has_a_solution(pearl):
    rates = {name: pearl.alpha(name) for name in pearl.calibration}
    assert all(0.6 < alpha < 0.99 for alpha in rates.values()), rates
    assert pearl.alpha(0.8) == 0.8


def test_virtual_cells_that_only_repeat_their_calibration_say_so():
    """20,480 tokens leave an error of about 1 %."""
    result = committed("pearl")["table-7"]
    lines = lines_of(result, "virtual")
    echoes = [line for line in lines if "calibration" in line.note]
    assert {line.row for line in echoes} == {"Speculative Decoding"}
    for line in echoes:
        printed = result.table.printed(line.row, line.column)
        assert line.value == pytest.approx(printed, rel=0.03)


def test_calibrated_acceptance_reproduces_duodecodings_speculative_decoding():
    duo = load_paper("duodecoding")
    by_speedup = {
        n: how for n, how in duo.calibration.items() if how.solve == "speedup"
    }
    assert len(by_speedup) == 10
    for name, calibration in by_speedup.items():
        assert "SpS" in calibration.cell[1]
        latency = load_latency(calibration.latency)
        tokens = sum(duo.alpha(name) ** i for i in range(6))
        speed = tokens / (5 * latency.draft(1) + latency.target(1))
        printed = duo.printed(*calibration.cell)
        assert speed * latency.target(1) == pytest.approx(printed, abs=1e-4), name


@pytest.mark.parametrize("task", ["mt", "trans", "math", "code"])
def test_the_rate_for_one_sequence_reproduces_duodecodings_printed_speed(task):
    """At Table 3's budget c, from which the rates were derived; over 20,480 tokens."""
    duo = load_paper("duodecoding")
    calibration = duo.calibration[f"llama2-{task}"]
    item, row, column = calibration.cell
    ours = committed("duodecoding")[item].values["virtual"][row, column]
    assert ours == pytest.approx(duo.printed(item, row, column), rel=0.05)


def test_calibrated_acceptance_reproduces_easyspecs_printed_shares():
    """The share is the mean accepted depth over five drafts."""
    easy = load_paper("easyspec")
    for name, calibration in easy.calibration.items():
        reached = [easy.alpha(name) ** depth for depth in range(1, 6)]
        printed = easy.printed(*calibration.cell)
        assert sum(reached) / 5 == pytest.approx(printed, abs=1e-5), name

    printed_shares = set()
    for item, table in easy.tables.items():
        for row, column, _ in table.cells:
            is_share = column.endswith("alpha") and "difference" not in column
            if is_share and "EAGLE" not in column:
                printed_shares.add((item, row, column))
    assert {how.cell for how in easy.calibration.values()} == printed_shares
