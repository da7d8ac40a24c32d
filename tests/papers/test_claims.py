"""Claims judged on a small made-up table, and on what the papers print.

The table has two columns, A and B, of three numbers each, and every pair has c = 3.2::

    gamma   A   B
    2       1   4
    3       3   5
    4       2   6
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.tables import SMALL, verdicts_of_kind
from scipy.stats import t

from speclab.papers.bootstrap import Resamples, measured_once
from speclab.papers.claim_numbers import NotedNumbers
from speclab.papers.claims import judge, judge_in_result
from speclab.papers.estimates import Estimate
from speclab.papers.fill import fill_all
from speclab.papers.ledger import Cell, VerdictLine
from speclab.papers.load_papers import load_paper
from speclab.papers.orders import judge_order
from speclab.papers.paper_schema import Claim, Paper, Table
from speclab.papers.table_result import NotSettled, TableResult, Way
from speclab.reproduce.regenerate import describe_disturbed
from speclib.errors import SpeclibError

TABLE = Table(
    item="table-0",
    title="",
    look="Compare the columns.",
    about="",
    metric="speedup",
    unit="x",
    decimals=2,
    rows="gamma",
    columns_are="pair",
    cells=[
        ("2", "A", 1.0),
        ("3", "A", 3.0),
        ("4", "A", 2.0),
        ("2", "B", 4.0),
        ("3", "B", 5.0),
        ("4", "B", 6.0),
    ],
)
TABLE.join(
    Paper(
        key="made-up", title="", authors=(), year=0, url="", tables={"table-0": TABLE}
    )
)

Samples = dict[tuple[str, str], np.ndarray]

REQUESTS = 8  # that made-up resamples are drawn from
T_OF_8 = 2.3646  # Student's t for 7 degrees of freedom, from a printed table


class MadeUpNumbers:
    """The print of TABLE, with made-up resamples by (row, column)."""

    kind = "paper"

    def __init__(self, samples: Samples):
        self._samples = samples

    def estimate(self, cell: Cell) -> Estimate | None:
        value = TABLE.printed(cell.row, cell.column)
        if value is None:
            return None
        samples = self._samples.get((cell.row, cell.column))
        if samples is None:
            return Estimate(value)
        return Estimate(value, Resamples(samples, REQUESTS))

    def cost_ratio(self, row: str, column: str) -> float | None:
        return 3.2


class NoNumbers:
    """Nothing was measured."""

    kind = "measured"

    def estimate(self, cell: Cell) -> Estimate | None:
        return None

    def cost_ratio(self, row: str, column: str) -> float | None:
        return None


def verdict(samples: Samples | None = None, **fields: Any) -> VerdictLine:
    """The verdict on a claim with these fields about the print of TABLE."""
    claim = Claim(id="x", text="", source="", **fields)
    return judge(claim, TABLE, MadeUpNumbers(samples or {}))


def order_in(column: str, *labels: str) -> dict[str, Any]:
    """That the rows ``labels`` of a column fall in this order."""
    return {"kind": "order", "over": "row", "column": column, "order": list(labels)}


def best_in(column: str, label: str) -> dict[str, Any]:
    """That the row ``label`` of a column is the highest."""
    return {"kind": "argmax", "over": "row", "column": column, "expected": label}


# -- what holds ------------------------------------------------------------------------
def over_rows(**fields: Any) -> dict[str, Any]:
    return {"over": "row", **fields}


def over_columns(**fields: Any) -> dict[str, Any]:
    return {"over": "column", **fields}


@pytest.mark.parametrize(
    "holds, fields",
    [
        ("yes", over_rows(column="A", order=["3", "4", "2"])),
        ("no", over_rows(column="*", order=["3", "4", "2"])),
        ("yes", over_columns(row="*", order=["B", "A"])),
        ("no", over_columns(row="2", order=["A", "B"])),
        # Quotients: 3 / 1 in A, 5 / 4 in B.
        ("yes", over_columns(row="3", by="2", order=["A", "B"])),
        ("no", over_columns(row="3", by="2", order=["B", "A"])),
        ("yes", over_rows(column="B", by="A", order=["2", "4", "3"])),
    ],
)
def test_an_order_is_judged(holds, fields):
    assert verdict(kind="order", **fields).holds == holds


@pytest.mark.parametrize(
    "holds, fields",
    [
        ("yes", over_rows(column="A", expected="3")),
        ("yes", over_rows(column="A", expected="round(c)")),
        ("no", over_rows(column="*", expected="round(c)")),
        ("yes", over_rows(column="*", expected={"A": "3", "B": "4"})),
        ("yes", over_columns(row="2", expected="B")),
        ("yes", over_columns(row="3", by="2", expected="A")),
    ],
)
def test_a_maximum_is_judged(holds, fields):
    assert verdict(kind="argmax", **fields).holds == holds


@pytest.mark.parametrize(
    "holds, fields",
    [
        ("yes", {"of": ["3", "A"], "by": ["4", "A"], "expected": 1.5}),
        ("yes", {"of": ["3", "A"], "by": ["4", "A"], "expected": 1.4, "within": 0.1}),
        ("no", {"of": ["3", "A"], "by": ["4", "A"], "expected": 1.4, "within": 0.05}),
        # Differences: 4 - 2, and 1 - 1.
        (
            "yes",
            {"of": ["2", "B"], "by": ["minus", "table-0", "4", "A"], "expected": 2.0},
        ),
        ("yes", {"of": ["2", "A"], "by": ["minus", "2", "A"], "expected": 0.0}),
    ],
)
def test_a_ratio_of_cells_is_judged(holds, fields):
    assert verdict(kind="ratio", **fields).holds == holds


@pytest.mark.parametrize(
    "holds, fields",
    [
        ("yes", {"reduce": "max", "expected": 3.0}),
        ("yes", {"reduce": "min", "expected": 1.25}),
        ("no", {"reduce": "min", "expected": 3.0}),
    ],
)
def test_a_ratio_of_rows_is_judged_in_every_column(holds, fields):
    row = verdict(kind="ratio", over="columns", of="3", by="2", **fields)
    assert row.holds == holds


def test_a_ratio_of_columns_may_expect_something_else_in_every_row():
    expected = {"2": 4.0, "3": 5 / 3, "4": 3.0}
    row = verdict(kind="ratio", over="rows", of="B", by="A", expected=expected)
    assert row.holds == "yes"


@pytest.mark.parametrize(
    "holds, fields",
    [
        ("yes", {"by": "2", "low": 1.25, "high": 3.0}),
        ("no", {"by": "2", "low": 1.25, "high": 2.9}),
        ("yes", {"by": "2", "low": 1.3, "high": 3.0, "decimals": 1}),
        ("yes", {"by": ["minus", "2"], "low": 1.0, "high": 2.0}),
        ("no", {"by": ["minus", "2"], "low": 1.0, "high": 1.9}),
    ],
)
def test_a_range_is_judged_in_every_column(holds, fields):
    assert verdict(kind="range", over="columns", of="3", **fields).holds == holds


@pytest.mark.parametrize(
    "holds, fields",
    [
        ("yes", {"of": ["3", "A"], "low": 1.0, "high": "c"}),
        ("no", {"of": ["4", "B"], "low": 1.0, "high": "c"}),
        (
            "yes",
            {
                "over": "rows",
                "of": "B",
                "by": ["minus", "A"],
                "reduce": "max",
                "low": 4,
                "high": 4,
            },
        ),
    ],
)
def test_a_range_is_judged(holds, fields):
    assert verdict(kind="range", **fields).holds == holds


@pytest.mark.parametrize(
    "holds, fields",
    [
        ("yes", {"of": ["*", "A"], "expected": [1, 3, 2]}),
        ("no", {"of": ["*", "A"], "expected": [1, 3]}),
        ("no", {"of": ["*", "A"], "by": ["*", "B"]}),
        ("yes", {"of": ["table-0", "2", "*"], "by": ["2", "*"]}),
        ("yes", {"of": ["4", "B"], "expected": 6}),
    ],
)
def test_an_equality_is_judged(holds, fields):
    assert verdict(kind="equal", **fields).holds == holds


@pytest.mark.parametrize("order", [["A", "B"], ["B", "A"]])
def test_an_order_of_equal_numbers_does_not_hold(monkeypatch, order):
    monkeypatch.setattr(MadeUpNumbers, "estimate", lambda self, cell: Estimate(2.0))
    row = verdict(kind="order", over="column", row="3", order=order)
    assert row.holds == "no"
    assert f"{order[0]} 2, {order[1]} 2" in row.note


def test_a_claim_without_numbers_is_neither_held_nor_broken():
    claim = Claim(id="x", text="", source="", kind="ratio", of=["3", "A"], expected=3)
    of_print_alone = claim.model_copy(update={"kinds": ("paper",)})
    assert judge(claim, TABLE, NoNumbers()).holds == "n/a"
    assert judge(of_print_alone, TABLE, NoNumbers()).holds == "n/a"


@pytest.mark.parametrize(
    "key, fewest", [("pearl", 60), ("duodecoding", 55), ("easyspec", 45)]
)
def test_the_judge_agrees_with_the_transcriber_on_every_printed_claim(key, fewest):
    judged = 0
    for item, result in fill_all(load_paper(key), SMALL, kinds=()).items():
        if not result.table.cells:
            continue
        verdicts = verdicts_of_kind(result, "paper")
        for claim in result.table.claims:
            if "paper" in claim.kinds:
                assert verdicts[claim.id].holds == claim.printed, (item, claim.id)
                judged += 1
    assert judged > fewest


# -- what a verdict says ---------------------------------------------------------------
def test_a_broken_claim_says_where_and_how_close_it_was():
    order = verdict(**order_in("*", "3", "4", "2"))
    assert order.value == "1 of 2"
    assert order.note.startswith("B: 3 5, 4 6")

    threes = np.linspace(2.8, 3.3, 101)
    samples = {("3", "A"): threes}
    low, high = interval_of_8(3, np.log(threes))
    interval = f"(95 %: {low:.4g} .. {high:.4g})"

    unequal = verdict(samples, kind="equal", of=["3", "A"], expected=3.6)
    assert unequal.holds == "no"
    assert unequal.note == f"3 {interval}, expected 3.6"

    outside = verdict(samples, kind="range", of=["3", "A"], low=0, high=2.4)
    assert outside.note == f"3 / A: 3 {interval} not in 0 .. 2.4"


def interval_of_8(value: float, logarithms: np.ndarray) -> tuple[float, float]:
    """The t interval of 8 requests on the scale of logarithms."""
    half_width = T_OF_8 * np.sqrt(8 / 7) * logarithms.std()
    return value / np.exp(half_width), value * np.exp(half_width)


# -- what is settled -------------------------------------------------------------------
# Resamples that go up and down together, or one up where the other goes down.
UP = np.linspace(0.5, 1.5, 200)
DOWN = UP[::-1]


def test_an_order_is_settled_by_joint_resamples_not_by_overlap():
    """Cells that swing together may overlap, and be in order in every resample."""
    order = order_in("A", "3", "4", "2")
    together = {("3", "A"): 3 * UP, ("4", "A"): 2 * UP, ("2", "A"): UP}
    settled = verdict(together, **order)
    assert (settled.holds, settled.note) == ("yes", "")

    apart = together | {("4", "A"): 2 * DOWN}
    unsettled = verdict(apart, **order)
    assert unsettled.holds == "open"
    assert unsettled.value == "1 of 1"  # the numbers fall, and it is not settled
    assert unsettled.note.startswith("not settled: A: 3 over 4 1.5 (95 %: ")
    assert "; A: 4 over 2 2 (95 %: " in unsettled.note
    assert unsettled.note.endswith(" requests would settle it")

    best = verdict(apart, **best_in("A", "3"))
    assert best.holds == "open"
    assert best.note.startswith("not settled: A: 3 over 4 1.5 (95 %: ")
    assert "3 over 2" not in best.note


def test_an_order_against_the_numbers_is_settled_or_open_as_one_with_them():
    order = order_in("A", "4", "3")
    together = {("3", "A"): 3 * UP, ("4", "A"): 2 * UP}
    apart = {("3", "A"): 3 * UP, ("4", "A"): 2 * DOWN}

    settled = verdict(together, **order)
    assert (settled.holds, settled.note) == ("no", "A: 4 2, 3 3")
    unsettled = verdict(apart, **order)
    assert (unsettled.holds, unsettled.value) == ("open", "0 of 1")

    best = best_in("A", "4")
    assert verdict(together, **best).holds == "no"
    assert verdict(apart, **best).holds == "open"


def test_one_settled_pair_breaks_an_order_whatever_else_is_open():
    order = order_in("A", "3", "2", "4")
    samples = {("3", "A"): 3 * UP, ("2", "A"): DOWN, ("4", "A"): 2 * DOWN}
    row = verdict(samples, **order)
    assert (row.holds, row.note) == ("no", "A: 2 1, 4 2")


def test_an_order_of_quotients_is_settled_by_quotients_of_joint_resamples():
    """3 over 2 is the same in every resample of a column, however much cells swing."""
    order = {"kind": "order", **over_columns(row="3", by="2", order=["A", "B"])}
    together = {
        ("3", "A"): 3 * UP,
        ("2", "A"): UP,
        ("3", "B"): 5 * DOWN,
        ("2", "B"): 4 * DOWN,
    }

    settled = verdict(together, **order)
    assert (settled.holds, settled.note) == ("yes", "")
    unsettled = verdict(together | {("2", "A"): DOWN}, **order)
    assert unsettled.holds == "open"
    assert "3: A over B 2.4 (95 %: " in unsettled.note  # (3 / 1) / (5 / 4)


def test_a_ratio_has_the_interval_of_the_joint_resamples():
    """It is 1.5 in every resample."""
    samples = {("3", "A"): 3 * UP, ("4", "A"): 2 * UP}
    row = verdict(samples, kind="ratio", of=["3", "A"], by=["4", "A"], expected=1.49)
    assert (row.holds, row.note) == ("no", "")


def test_a_difference_has_the_interval_of_the_joint_resamples():
    """Both swing alike, so the difference is 1 in every resample."""
    swing = np.linspace(-0.5, 0.5, 200)
    samples = {("3", "A"): 3 + swing, ("4", "A"): 2 + swing}
    by = ["minus", "4", "A"]
    row = verdict(samples, kind="range", of=["3", "A"], by=by, low=0, high=0.9)
    assert (row.holds, row.note) == ("no", "3 / A: 1 not in 0 .. 0.9")


def test_a_difference_that_is_positive_in_every_resample_may_be_open():
    """Its interval is linear, so it is wider than the resamples, which end at 0.1."""
    difference = np.linspace(0.1, 1.9, 201)
    half_width = T_OF_8 * np.sqrt(8 / 7) * difference.std()
    low = 1 - half_width
    assert low < 0

    samples = {("3", "A"): 2 + difference, ("4", "A"): np.full(201, 2.0)}
    by = ["minus", "4", "A"]
    row = verdict(samples, kind="range", of=["3", "A"], by=by, low=0, high=9)

    assert row.holds == "open"
    assert f"(95 %: {low:.4g} .. " in row.note


@pytest.mark.parametrize(
    "holds, low, high",
    [("yes", 2.0, 4.0), ("open", 2.9, 4.0), ("open", 0, 2.9), ("no", 0, 2.2)],
)
def test_a_range_is_settled_by_where_the_interval_lies(holds, low, high):
    """The number is 3, its interval about 2.6 to 3.4."""
    samples = {("3", "A"): np.linspace(2.8, 3.2, 101)}
    row = verdict(samples, kind="range", of=["3", "A"], low=low, high=high)
    assert row.holds == holds


def test_limits_are_written_without_what_floating_point_adds_to_them():
    samples = {("3", "A"): np.linspace(2.8, 3.2, 101)}
    row = verdict(samples, kind="range", of=["3", "A"], low=0, high=3)
    assert ") against 0 .. 3; " in row.note


def test_rounding_widens_the_range_that_an_interval_must_lie_in():
    """The interval of 2.7 .. 3.3 and more is inside 3 as rounded to whole numbers."""
    samples = {("3", "A"): np.linspace(2.9, 3.1, 101)}
    threes = {"kind": "range", "of": ["3", "A"], "low": 3, "high": 3}
    assert verdict(samples, **threes, decimals=0).holds == "yes"
    close = verdict(samples, **threes, decimals=1)
    assert close.holds == "open"
    assert ") against 2.95 .. 3.05; about " in close.note


def test_numbers_within_a_tolerance_are_settled_as_a_range():
    samples = {("3", "A"): np.linspace(2.8, 3.2, 101)}
    about = {"kind": "ratio", "of": ["3", "A"]}
    assert verdict(samples, **about, expected=3.0, within=0.2).holds == "yes"
    close = verdict(samples, **about, expected=3.0, within=0.05)
    assert close.holds == "open"
    assert ") against 2.85 .. 3.15; about " in close.note
    assert verdict(samples, **about, expected=5.0, within=0.2).holds == "no"


def test_equal_cells_are_judged_by_their_joint_difference():
    equality = {"kind": "equal", "of": ["3", "A"], "by": ["4", "A"]}

    apart = {("3", "A"): 3 * UP, ("4", "A"): 2 * DOWN}
    unsettled = verdict(apart, **equality, within=0.01)
    assert unsettled.holds == "open"
    assert unsettled.note.startswith("not settled: difference 1 (95 %: ")
    assert ") against -0.02 .. 0.02; about " in unsettled.note

    together = {("3", "A"): 3 + UP, ("4", "A"): 2 + UP}
    assert verdict(together, **equality, within=0.49).holds == "no"
    assert verdict(together, **equality, within=0.51).holds == "yes"


def test_what_was_measured_once_settles_nothing():
    """Whatever is asked, and however clear the number looks."""
    once = measured_once(3.0)

    class MeasuredOnce(MadeUpNumbers):
        kind = "measured"

        def estimate(self, cell: Cell) -> Estimate | None:
            number = super().estimate(cell)
            return None if number is None else Estimate(number.value, once)

    questions = [
        order_in("A", "3", "2"),
        order_in("A", "2", "3"),
        best_in("A", "3"),
        {"kind": "ratio", "of": ["3", "A"], "expected": 3.0, "within": 1.0},
        {"kind": "range", "of": ["3", "A"], "low": 100, "high": 200},
        {"kind": "equal", "of": ["3", "A"], "by": ["2", "A"], "within": 0.1},
    ]
    for fields in questions:
        claim = Claim(id="x", text="", source="", **fields)
        row = judge(claim, TABLE, MeasuredOnce({}))
        assert row.holds == "open", fields
        assert "measured once" in row.note
        assert row.note.endswith("one prompt settles nothing; at least 2 are needed")


def test_a_line_without_a_number_of_the_expected_label_is_not_judged(monkeypatch):
    """4 has no number in A; in B it is the highest."""
    of_all = MadeUpNumbers.estimate

    def without_one(self: MadeUpNumbers, cell: Cell) -> Estimate | None:
        is_missing = (cell.row, cell.column) == ("4", "A")
        return None if is_missing else of_all(self, cell)

    monkeypatch.setattr(MadeUpNumbers, "estimate", without_one)
    in_both = verdict(**best_in("*", "4"))
    assert (in_both.holds, in_both.note) == ("yes", "A has no number of 4")
    in_one = verdict(**best_in("A", "4"))
    assert (in_one.holds, in_one.note) == ("n/a", "A has no number of 4")


def test_equal_numbers_are_both_highest(monkeypatch):
    monkeypatch.setattr(MadeUpNumbers, "estimate", lambda self, cell: Estimate(2.0))
    for label in ("2", "3", "4"):
        row = verdict(**best_in("A", label))
        assert (row.holds, row.value) == ("yes", label)


# -- what is as good as equal ----------------------------------------------------------
class NearlyEqual(MadeUpNumbers):
    """In each column row 3 is 1 % above row 4, by these interval's half-widths.

    TABLE prints 3 over 4 as 1.5 in A, and as 0.83 in B.
    """

    kind = "measured"

    def __init__(self, half_widths: dict[str, float]):
        self._half_widths = half_widths

    def estimate(self, cell: Cell) -> Estimate | None:
        if cell.row == "2":
            return Estimate(0.5)
        if cell.row == "4":
            return Estimate(1.0)
        samples = resamples_of_8(1.01, self._half_widths[cell.column])
        return Estimate(1.01, Resamples(samples, REQUESTS))


def resamples_of_8(value: float, half_width: float) -> np.ndarray:
    """Resamples whose t interval is so wide, as a share of the number."""
    wanted = np.log1p(half_width) / (T_OF_8 * np.sqrt(8 / 7))
    return value * np.exp(wanted * np.array([-1.0, 1.0]))


def verdict_on_equals(a: float, b: float, table: Table, **fields: Any) -> VerdictLine:
    claim = Claim(id="x", text="", source="", **fields)
    return judge(claim, table, NearlyEqual({"A": a, "B": b}))


def test_numbers_that_differ_by_less_than_5_percent_either_way_are_a_tie():
    for order in (("3", "4"), ("4", "3")):
        row = verdict_on_equals(0.03, 0.03, TABLE, **order_in("A", *order))
        assert row.holds == "tie"
        assert "less than 5 % apart" in row.note
        assert row.value == ("1 of 1" if order[0] == "3" else "0 of 1")

    # 1.01 * 1.045 = 1.055, which is more than 5 % apart.
    row = verdict_on_equals(0.045, 0.03, TABLE, **order_in("A", "3", "4"))
    assert row.holds == "open"
    # 1.01 / 1.008 = 1.002: they differ by little, and surely.
    row = verdict_on_equals(0.008, 0.03, TABLE, **order_in("A", "3", "4"))
    assert row.holds == "yes"


def test_the_highest_may_be_as_good_as_equal_to_another():
    row = verdict_on_equals(0.03, 0.03, TABLE, **best_in("A", "4"))
    assert (row.holds, row.value) == ("tie", "3")
    assert row.note.startswith("as good as equal in 1 of 2 comparisons: A: 4 over 3 ")
    assert "4 over 2" not in row.note


@pytest.mark.parametrize(
    "holds, a, b, order",
    [
        ("tie", 0.03, 0.008, ("3", "4", "2")),  # a tie in A, 3 above 4 in B
        ("no", 0.03, 0.008, ("4", "3", "2")),
        ("no", 0.03, 0.2, ("3", "2", "4")),
        ("open", 0.03, 0.2, ("3", "4", "2")),
    ],
)
def test_a_claim_with_ties_is_no_before_open_before_tie_before_yes(holds, a, b, order):
    assert verdict_on_equals(a, b, TABLE, **order_in("*", *order)).holds == holds


def table_with(cells: list[tuple[str, str, float]]) -> Table:
    """TABLE as if the paper printed other numbers."""
    table = TABLE.model_copy(update={"cells": cells})
    paper = TABLE.paper.model_copy(update={"tables": {"table-0": table}})
    table.join(paper)
    return table


def test_there_is_no_tie_within_half_of_a_small_printed_difference():
    """Printed are 1.03 over 1: half of that is 1.5 %, less than our 2.5 %."""
    printed = [("3", "A", 1.03), ("4", "A", 1.0)]
    table = table_with(printed)
    row = verdict_on_equals(0.025, 0.025, table, **order_in("A", "3", "4"))
    assert row.holds == "open"

    not_printed = table_with(printed[:1])
    row = verdict_on_equals(0.025, 0.025, not_printed, **order_in("A", "3", "4"))
    assert row.holds == "tie"


def test_where_the_paper_prints_equal_numbers_ours_may_be_a_tie():
    table = table_with([("3", "A", 1.49), ("4", "A", 1.49)])
    row = verdict_on_equals(0.025, 0.025, table, **order_in("A", "3", "4"))
    assert row.holds == "tie"


@pytest.mark.parametrize("unit", ["share", "cosine"])
def test_of_shares_the_print_alone_says_what_is_little(unit):
    """Half of a printed 1.1 is 1.049, and of 1.02 is 1.01."""
    order = order_in("A", "3", "4")
    for printed, holds in ((1.1, "tie"), (1.02, "open"), (1.0, "open"), (None, "open")):
        cells = [("4", "A", 0.5)]
        cells += [("3", "A", 0.5 * printed)] if printed else []
        table = table_with(cells).model_copy(update={"unit": unit})
        table.join(TABLE.paper.model_copy(update={"tables": {"table-0": table}}))
        row = verdict_on_equals(0.025, 0.025, table, **order)
        assert row.holds == holds, printed


def test_a_tie_in_one_of_several_comparisons_is_counted():
    row = verdict_on_equals(0.03, 0.008, TABLE, **order_in("*", "3", "4"))
    assert row.holds == "tie"
    assert row.note.startswith("as good as equal in 1 of 2 comparisons: A: 3 over 4")


def test_an_open_claim_near_a_tie_says_what_settles_that_sooner_than_an_order():
    """1.01 is 1 % from 1 and 4 % from the end of a tie."""
    row = verdict_on_equals(0.2, 0.03, TABLE, **order_in("A", "4", "3"))
    assert row.holds == "open"
    deviation = np.log1p(0.2) / T_OF_8 * 8**0.5
    needed = fewest_by_trying(deviation, np.log(1.05 / 1.01))
    assert f"about {needed} prompts would settle it" in row.note


def test_where_a_tie_is_nearer_than_a_no_all_open_questions_are_asked():
    """In both columns 3 is 1 % above 4: neither is soon a sure no to the claim."""
    claim = Claim(id="x", text="", source="", **order_in("*", "4", "3"))
    numbers = NotedNumbers(NearlyEqual({"A": 0.2, "B": 0.2}))
    (lack,) = judge_order(claim, TABLE, numbers).lacks
    assert {cell.column for cell in lack.timed} == {"A", "B"}


# -- how many requests would settle it -------------------------------------------------
def fewest_by_trying(deviation: float, distance: float) -> int:
    """The fewest requests whose t interval is narrower than ``distance``."""
    n = 2
    while t.ppf(0.975, n - 1) * deviation / n**0.5 >= distance:
        n += 1
    return n


def deviation_of_one(values: np.ndarray) -> float:
    """How much single requests differ, from resamples of eight."""
    error_of_the_mean = values.std() * (8 / 7) ** 0.5
    return error_of_the_mean * 8**0.5


def test_an_open_claim_needs_what_its_least_settled_question_needs():
    """All numbers are as claimed: 3 over 2, and 2 over 1."""
    order = order_in("A", "3", "4", "2")
    samples = {("3", "A"): 3 * UP, ("4", "A"): 2 * DOWN, ("2", "A"): UP}
    deviation = deviation_of_one(np.log(UP / DOWN))
    first = fewest_by_trying(deviation, np.log(3 / 2))
    second = fewest_by_trying(deviation, np.log(2 / 1))
    assert first > second > 8

    row = verdict(samples, **order)
    assert f"about {first} requests would settle it" in row.note


def test_an_open_claim_that_seems_broken_needs_one_settled_no():
    """4 is above 3 in A by the claim: 2 over 3, which seems broken; then 3 over 1."""
    order = order_in("A", "4", "3", "2")
    samples = {("4", "A"): 2 * DOWN, ("3", "A"): 3 * UP, ("2", "A"): DOWN**2}
    deviation = deviation_of_one(np.log(UP / DOWN))
    needed = fewest_by_trying(deviation, np.log(3 / 2))
    other_deviation = deviation_of_one(np.log(UP / DOWN**2))
    other = fewest_by_trying(other_deviation, np.log(3 / 1))
    assert needed != other > 8

    row = verdict(samples, **order)
    assert f"about {needed} requests would settle it" in row.note


def test_a_number_on_its_limit_is_settled_by_no_number_of_requests():
    samples = {("3", "A"): np.linspace(2.8, 3.2, 101)}
    row = verdict(samples, kind="range", of=["3", "A"], low=3.0, high=4.0)
    assert row.holds == "open"
    assert "no number of requests up to 100,000 would settle it" in row.note


# -- cells that may not be judged ------------------------------------------------------
def judged_of(result: TableResult, **fields: Any) -> VerdictLine:
    claim = Claim(id="x", text="", source="", **fields)
    return judge_in_result(claim, result, "virtual")


@pytest.fixture
def exact_result() -> TableResult:
    """TABLE with virtual numbers that are the printed ones."""
    values = {(row, column): value for row, column, value in TABLE.cells}
    return TableResult(TABLE, SMALL, values={"virtual": values})


def test_a_claim_that_asks_for_a_left_out_cell_is_open_and_names_it(exact_result):
    exact_result.left_out = {("2", "A", "virtual"), ("2", "B", "measured")}
    row = judged_of(exact_result, **order_in("A", "3", "2"))
    assert (row.holds, row.note) == ("open", "not run yet: 2 / A")
    assert judged_of(exact_result, **order_in("B", "3", "2")).holds == "yes"


def test_a_claim_that_asks_for_a_disturbed_cell_is_not_judged_and_names_it(
    exact_result,
):
    exact_result.disturbed = {("3", "A", "virtual")}
    row = judged_of(exact_result, **order_in("A", "3", "2"))
    assert row.holds == "n/a"
    assert row.note == ("not judged: other programs kept the machine busy during 3 / A")
    assert judged_of(exact_result, **order_in("B", "3", "2")).holds == "yes"

    exact_result.left_out = {("2", "A", "virtual")}
    both = judged_of(exact_result, **order_in("A", "3", "2"))
    assert both.holds == "n/a"
    assert both.note.endswith("; not run yet: 2 / A")


def test_what_a_claim_on_a_disturbed_cell_needs_is_asked_for_again(exact_result):
    """Further requests may find the machine quiet; a settled claim asks for nothing."""
    judged_of(exact_result, **order_in("A", "3", "2"))
    assert exact_result.not_settled == []
    exact_result.disturbed = {("3", "A", "virtual")}
    judged_of(exact_result, **order_in("A", "3", "2"))
    disturbed, quiet = ("3", "A", "virtual"), ("2", "A", "virtual")
    assert exact_result.not_settled == [
        NotSettled({disturbed, quiet}, [Way({disturbed})])
    ]


# -- what open claims ask for ----------------------------------------------------------
def asked_by(numbers: str, samples: Samples, **fields: Any) -> list[NotSettled]:
    """What a claim asks for about ``numbers``, a kind, with these resamples."""
    values = {(row, column): value for row, column, value in TABLE.cells}
    result = TableResult(TABLE, SMALL, values={numbers: values})
    for (row, column), drawn in samples.items():
        result.samples[row, column, numbers] = Resamples(drawn, REQUESTS)
    claim = Claim(id="x", text="", source="", **fields)
    judge_in_result(claim, result, numbers)
    return result.not_settled


def asked_places(numbers: str, samples: Samples, **fields: Any) -> list[set[str]]:
    """The places that each way names which would settle the claim, as "3 A"."""
    (claim,) = asked_by(numbers, samples, **fields)
    return [{f"{row} {column}" for row, column, _ in w.to_time} for w in claim.ways]


WIDE, NARROW = np.linspace(0.4, 1.6, 101), np.linspace(0.98, 1.02, 101)


def test_a_claim_that_seems_to_hold_asks_for_all_its_open_questions():
    """In A 4 is 2 and 2 is 1, in B they are 6 and 4."""
    order = {"kind": "order", "over": "row", "order": ["4", "2"]}
    samples = {("4", "A"): 2.0 * WIDE, ("4", "B"): 6.0 * NARROW}
    assert asked_places("measured", samples, **order) == [{"4 A", "2 A"}]
    samples["4", "B"] = 6.0 * WIDE
    assert asked_places("measured", samples, **order) == [{"4 A", "2 A", "4 B", "2 B"}]


def test_where_one_no_is_enough_any_question_would_do_and_the_nearest_comes_first():
    """4 is twice 2 in A, and 1.5 times in B: so A is nearer to a sure no."""
    order = {"kind": "order", "over": "row", "order": ["2", "4"]}
    samples = {("4", "A"): 2.0 * WIDE, ("4", "B"): 6.0 * WIDE}
    assert asked_places("measured", samples, **order) == [
        {"2 A", "4 A"},
        {"2 B", "4 B"},
    ]
    assert asked_places("virtual", samples, **order) == [{"2 A", "4 A", "2 B", "4 B"}]


def test_a_quotient_of_neighbours_asks_for_both():
    order = {"kind": "order", "over": "row", "by": "A", "column": "B"}
    order["order"] = ["2", "4"]
    samples = {("4", "A"): 2.0 * WIDE}
    assert asked_places("measured", samples, **order) == [{"2 A", "2 B", "4 A", "4 B"}]


def test_the_largest_of_several_asks_for_those_that_it_may_turn_out_to_be():
    largest = {"kind": "range", "of": ["*", "B"], "reduce": "max"}
    limits = {"low": 5.9, "high": 8.0}
    samples = {("4", "B"): 6.0 * np.linspace(0.85, 1.15, 101)}  # 4.8 .. 7.5
    sure_of_rivals = {("4", "B"): 6.0 * NARROW}
    assert asked_places("measured", samples, **largest, **limits) == [{"3 B", "4 B"}]
    assert asked_places("measured", sure_of_rivals, **largest, **limits) == [{"4 B"}]


def test_equal_numbers_ask_for_both_sides():
    equal = {"kind": "equal", "of": ["4", "A"], "by": ["2", "B"], "within": 0.1}
    samples = {("2", "B"): 4.0 * WIDE}
    assert asked_places("measured", samples, **equal) == [{"4 A", "2 B"}]


def test_a_disturbed_cell_that_lacks_requests_is_named_once(exact_result):
    exact_result.disturbed = exact_result.left_out = {("3", "A", "virtual")}
    row = judged_of(exact_result, **order_in("A", "3", "2"))
    assert row.note == "not judged: other programs kept the machine busy during 3 / A"


def test_a_run_says_how_many_of_its_numbers_are_disturbed(exact_result):
    assert describe_disturbed([exact_result]) == ""
    exact_result.disturbed = {("3", "A", "virtual"), ("4", "A", "virtual")}
    assert describe_disturbed([exact_result]).startswith("2 numbers were timed while")


def test_a_cell_that_a_claim_does_not_ask_for_leaves_it_alone(exact_result):
    """Row 4 stands in the same column and not in the order."""
    exact_result.disturbed = {("4", "A", "virtual")}
    exact_result.left_out = {("4", "A", "virtual")}
    assert judged_of(exact_result, **order_in("A", "3", "2")).holds == "yes"
    assert judged_of(exact_result, **best_in("A", "3")).holds == "n/a"


# -- claims whose fields do not fit ----------------------------------------------------
@pytest.mark.parametrize(
    "fields",
    [
        {
            "kind": "range",
            "over": "columns",
            "of": "3",
            "by": ["2", "minus", "4"],
            "low": 0,
            "high": 1,
        },
        {
            "kind": "range",
            "over": "columns",
            "of": "3",
            "by": ["minus", "2", "4"],
            "low": 0,
            "high": 1,
        },
        {"kind": "ratio", "of": ["3", "A"], "by": ["minus", "2"], "expected": 1},
        {"kind": "equal", "of": ["3", "A"], "by": ["minus", "3", "A"]},
        {
            "kind": "order",
            "over": "column",
            "row": "3",
            "by": ["minus", "2"],
            "order": ["A", "B"],
        },
    ],
)
def test_a_claim_of_a_difference_and_a_quotient_or_of_a_wrong_form_is_named(fields):
    with pytest.raises(SpeclibError, match=r"claim 'x': by = \[.*minus.*not both"):
        verdict(**fields)


@pytest.mark.parametrize(
    "fields, says",
    [
        ({"kind": "order", "order": ["A", "B"]}, 'over is None; give "row" or'),
        ({"kind": "order", "over": "row", "order": ["A"]}, "give two labels or more"),
        ({"kind": "argmax", "over": "row"}, "expected is None; give a label"),
        (
            {"kind": "ratio", "of": ["A"], "expected": 1},
            r"of is \['A'\]; give \[row, c",
        ),
        ({"kind": "ratio", "of": ["3", "A"]}, "expected is None; give a number"),
        ({"kind": "range", "of": ["3", "A"], "low": 1}, "high is None; give a number"),
        ({"kind": "equal", "over": "rows", "of": "A", "expected": 1}, "leave it out"),
        (
            {"kind": "ratio", "over": "rows", "of": ["3", "A"], "expected": 1},
            "with over = 'rows' give one label",
        ),
        (
            {"kind": "argmax", "over": "row", "expected": {"A": "3"}},
            "expects nothing of 'B'; it has: A",
        ),
        (
            {"kind": "equal", "of": ["*", "A"], "by": ["2", "B"]},
            "of names 3 cells and by 1",
        ),
    ],
)
def test_a_claim_with_fields_that_its_kind_cannot_use_is_named(fields, says):
    with pytest.raises(SpeclibError, match=f"claim 'x'.*{says}"):
        verdict(**fields)


def test_a_list_of_numbers_of_which_none_is_there_is_not_judged():
    row = verdict(kind="equal", of=["9", "A"], expected=[1.0, 2.0])
    assert (row.holds, row.note) == ("n/a", "no numbers")


def test_an_argmax_over_many_lines_says_how_often_each_label_was_highest():
    """A has its highest number at 3, B at 4."""
    row = verdict(kind="argmax", over="row", expected="4")
    assert (row.holds, row.value) == ("no", "3 in 1 of 2, 4 in 1")
