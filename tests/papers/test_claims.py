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

from speclib.errors import SpeclibError
from speclib.papers.claim_numbers import Cell
from speclib.papers.claims import judge
from speclib.papers.fill import fill_all
from speclib.papers.ledger import ClaimRow
from speclib.papers.load import load_paper
from speclib.papers.schema import Claim, Paper, Table

TABLE = Table(
    item="table-0",
    title="",
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


class MadeUpNumbers:
    """The print of TABLE, with made-up resamples by (row, column)."""

    kind = "paper"

    def __init__(self, samples: Samples):
        self._samples = samples

    def value(self, cell: Cell) -> float | None:
        return TABLE.printed(cell.row, cell.column)

    def samples(self, cell: Cell) -> np.ndarray | None:
        return self._samples.get((cell.row, cell.column))

    def cost_ratio(self, row: str, column: str) -> float | None:
        return 3.2


class NoNumbers:
    """Nothing was measured."""

    kind = "measured"

    def value(self, cell: Cell) -> float | None:
        return None

    def samples(self, cell: Cell) -> np.ndarray | None:
        return None

    def cost_ratio(self, row: str, column: str) -> float | None:
        return None


def verdict(samples: Samples | None = None, **fields: Any) -> ClaimRow:
    """The verdict on a claim with these fields about the print of TABLE."""
    claim = Claim(id="x", text="", source="", **fields)
    return judge(claim, TABLE, MadeUpNumbers(samples or {}))


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
    monkeypatch.setattr(MadeUpNumbers, "value", lambda self, cell: 2.0)
    row = verdict(kind="order", over="column", row="3", order=order)
    assert row.holds == "no" and f"{order[0]} 2, {order[1]} 2" in row.note


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
    order = verdict(kind="order", over="row", column="*", order=["3", "4", "2"])
    assert order.value == "1 of 2" and order.note.startswith("B: 3 5, 4 6")

    samples = {("3", "A"): np.linspace(2.8, 3.3, 101)}
    near = verdict(samples, kind="equal", of=["3", "A"], expected=3.2)
    assert near.holds == "no"
    assert "the 95 % interval 2.812 .. 3.287 holds 3.2" in near.note
    outside = verdict(samples, kind="range", of=["3", "A"], low=0, high=2.9)
    assert outside.note.startswith("3 / A: 3 (95 %: 2.812 .. 3.287) not in 0 .. 2.9")


# Resamples that go up and down together, or one up where the other goes down.
UP = np.linspace(0.5, 1.5, 200)
DOWN = UP[::-1]


def test_an_order_is_settled_by_joint_resamples_not_by_overlap():
    """Cells that swing together may overlap, and be in order in every resample."""
    order = {"kind": "order", "over": "row", "column": "A", "order": ["3", "4", "2"]}
    together = {("3", "A"): 3 * UP, ("4", "A"): 2 * UP, ("2", "A"): UP}
    assert verdict(together, **order).note == ""

    apart = together | {("4", "A"): 2 * DOWN}
    note = "not settled by these requests: A: 3 and 4, A: 4 and 2"
    assert verdict(apart, **order).note == note

    best = verdict(apart, kind="argmax", over="row", column="A", expected="3")
    assert best.holds == "yes"
    assert best.note == "not settled by these requests: A: 3 and 4"


@pytest.mark.parametrize("equal, is_settled", [(10, False), (5, True)])
def test_a_resample_in_which_two_numbers_are_equal_is_against_their_order(
    equal, is_settled
):
    """Of 200 resamples 97.5 %, 195, must have the order."""
    high = np.full(200, 3.0)
    high[:equal] = 2.0
    samples = {("3", "A"): high, ("4", "A"): np.full(200, 2.0)}
    row = verdict(samples, kind="order", over="row", column="A", order=["3", "4"])
    assert row.holds == "yes"
    note = "" if is_settled else "not settled by these requests: A: 3 and 4"
    assert row.note == note


def test_an_order_of_quotients_is_settled_by_quotients_of_joint_resamples():
    """3 over 2 is the same in every resample of a column, however much cells swing."""
    order = {"kind": "order", "over": "column", "row": "3", "by": "2"}
    order["order"] = ["A", "B"]
    together = {
        ("3", "A"): 3 * UP,
        ("2", "A"): UP,
        ("3", "B"): 5 * DOWN,
        ("2", "B"): 4 * DOWN,
    }
    assert verdict(together, **order).note == ""
    apart = together | {("2", "A"): DOWN}
    assert verdict(apart, **order).note == "not settled by these requests: 3: A and B"


def test_a_ratio_has_the_interval_of_the_joint_resamples():
    """It is 1.5 in every resample."""
    samples = {("3", "A"): 3 * UP, ("4", "A"): 2 * UP}
    row = verdict(samples, kind="ratio", of=["3", "A"], by=["4", "A"], expected=1.49)
    assert row.holds == "no" and "interval" not in row.note


def test_a_difference_has_the_interval_of_the_joint_resamples():
    """Both swing alike, so the difference is 1 in every resample."""
    swing = np.linspace(-0.5, 0.5, 200)
    samples = {("3", "A"): 3 + swing, ("4", "A"): 2 + swing}
    by = ["minus", "4", "A"]
    row = verdict(samples, kind="range", of=["3", "A"], by=by, low=0, high=0.9)
    assert row.note == "3 / A: 1 (95 %: 1 .. 1) not in 0 .. 0.9"


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
