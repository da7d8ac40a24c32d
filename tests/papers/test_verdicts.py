"""Claims judged on a small made-up table, and on what the papers print.

The table has two columns, A and B, of three numbers each, and every pair has c = 3.2::

    gamma   A   B
    2       1   4
    3       3   5
    4       2   6
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from helpers.tables import committed, verdicts_of

from speclab.papers.ledger import Cell
from speclab.papers.numbers import Number
from speclab.papers.paper_schema import Claim, Paper, Table
from speclab.papers.verdicts import OTHER_HARDWARE, Verdict, verdict, verdict_line
from speclib.errors import SpeclibError

BY_ROW = {"2": (1.0, 4.0), "3": (3.0, 5.0), "4": (2.0, 6.0)}
PRINTED = {
    (r, c): x for r, two in BY_ROW.items() for c, x in zip("AB", two, strict=True)
}
ABOUT = {"title": "", "about": ""}
UNITS = {"metric": "speedup", "unit": "x", "decimals": 2}
LABELS = {"rows": "gamma", "columns_are": "pair"}
CELLS = [(*cell, value) for cell, value in PRINTED.items()]
TABLE = Table(item="table-0", cells=CELLS, **ABOUT, **UNITS, **LABELS)
NAMED = {"key": "made-up", "title": "", "authors": (), "year": 0, "url": ""}
TABLE.join(Paper(**NAMED, tables={"table-0": TABLE}))


class MadeUp:
    """TABLE's printed numbers, with changes by (row, column); None removes one."""

    def __init__(self, others=(), *, kind="virtual", stand_ins=False, missing=()):
        numbers = {cell: Number(value) for cell, value in PRINTED.items()}
        self.numbers = numbers | dict(others)
        self.kind = kind
        self.are_stand_ins = stand_ins
        self.missing = missing

    def number(self, cell: Cell) -> Number | None:
        return self.numbers.get((cell.row, cell.column))

    def cost_ratio(self, row: str, column: str) -> float | None:
        return 3.2

    def why_missing(self, cell: Cell) -> str:
        return "not run yet" if (cell.row, cell.column) in self.missing else ""


def judge(numbers: MadeUp | dict | None = None, **fields: Any) -> Verdict:
    """The verdict on a claim with these fields about TABLE."""
    if not isinstance(numbers, MadeUp):
        numbers = MadeUp(numbers or {})
    return verdict(Claim(id="x", text="", source="", **fields), TABLE, numbers)


def order_in(column: str, *labels: str) -> dict[str, Any]:
    """A claim that the rows ``labels`` of a column decrease in this order."""
    return {"kind": "order", "over": "row", "column": column, "order": list(labels)}


def best_in(column: str, label: str) -> dict[str, Any]:
    """A claim that the row ``label`` of a column is the highest."""
    return {"kind": "argmax", "over": "row", "column": column, "expected": label}


def number(value: float, *factors: float) -> Number:
    """A number that leaving out each request multiplies by one of ``factors``."""
    return Number(value, {str(i): value * f for i, f in enumerate(factors)}, n=4)


# Factors of leaving out a request: the interval is a fourth to four times the number.
UP = (0.7, 0.9, 1.1, 1.4)
DOWN = UP[::-1]
NARROW = (0.99, 1.0, 1.0, 1.01)  # within 4 %


# -- what holds ------------------------------------------------------------------------
CLAIMS = """
# Numbers of A and B in one row; quotients are 3 / 1 in A, 5 / 4 in B.
order yes: over="row", column="A", order=["3", "4", "2"]
order no:  over="row", column="*", order=["3", "4", "2"]
order yes: over="column", row="*", order=["B", "A"]
order no:  over="column", row="2", order=["A", "B"]
order yes: over="column", row="3", by="2", order=["A", "B"]
order no:  over="column", row="3", by="2", order=["B", "A"]
order yes: over="row", column="B", by="A", order=["2", "4", "3"]

argmax yes: over="row", column="A", expected="3"
argmax yes: over="row", column="A", expected="round(c)"
argmax no:  over="row", column="*", expected="round(c)"
argmax yes: over="row", column="*", expected={A="3", B="4"}
argmax yes: over="column", row="2", expected="B"
argmax yes: over="column", row="3", by="2", expected="A"

# The last of these are differences: 4 - 2, and 1 - 1.
ratio yes: of=["3", "A"], by=["4", "A"], expected=1.5
ratio yes: of=["3", "A"], by=["4", "A"], expected=1.4, within=0.1
ratio no:  of=["3", "A"], by=["4", "A"], expected=1.4, within=0.05
ratio yes: over="columns", of="3", by="2", reduce="max", expected=3.0
ratio yes: over="columns", of="3", by="2", reduce="min", expected=1.25
ratio no:  over="columns", of="3", by="2", reduce="min", expected=3.0
ratio yes: over="rows", of="B", by="A", expected={2=4.0, 3=1.6666666667, 4=3.0}
ratio yes: of=["2", "B"], by=["minus", "table-0", "4", "A"], expected=2.0
ratio yes: of=["2", "A"], by=["minus", "2", "A"], expected=0.0

range yes: over="columns", of="3", by="2", low=1.25, high=3.0
range no:  over="columns", of="3", by="2", low=1.25, high=2.9
range yes: over="columns", of="3", by="2", low=1.3, high=3.0, decimals=1
range yes: over="columns", of="3", by=["minus", "2"], low=1.0, high=2.0
range no:  over="columns", of="3", by=["minus", "2"], low=1.0, high=1.9
range yes: over="rows", of="B", by=["minus", "A"], reduce="max", low=4, high=4
range yes: of=["3", "A"], low=1.0, high="c"
range no:  of=["4", "B"], low=1.0, high="c"

equal yes: of=["*", "A"], expected=[1, 3, 2]
equal no:  of=["*", "A"], expected=[1, 3]
equal no:  of=["*", "A"], by=["*", "B"]
equal yes: of=["table-0", "2", "*"], by=["2", "*"]
equal yes: of=["4", "B"], expected=6
"""


@pytest.mark.parametrize("claim", re.findall(r"^\w+ .*", CLAIMS, re.M))
def test_a_claim_on_exact_numbers_is_judged(claim):
    what, fields = claim.split(":", 1)
    kind, holds = what.split()
    fields = tomllib.loads(f"claim = {{{fields}}}")["claim"]
    assert judge(kind=kind, **fields).holds == holds


def test_equal_numbers_have_no_order_and_are_both_highest():
    equal = {("2", "A"): Number(3.0), ("4", "A"): Number(3.0)}
    row = judge(equal, **order_in("A", "3", "4"))
    assert (row.holds, row.note) == ("no", "A: 3 3, 4 3")
    for label in ("2", "3", "4"):
        row = judge(equal, **best_in("A", label))
        assert (row.holds, row.value) == ("yes", label)


def test_a_verdict_says_where_a_claim_is_broken_and_how_close_it_was():
    order = judge(**order_in("*", "3", "4", "2"))
    assert (order.value, order.expected) == ("1 of 2", "3 > 4 > 2")
    assert order.note == "B: 3 5, 4 6"
    outside = judge(
        {("3", "A"): number(3.0, *NARROW)}, kind="range", of=["3", "A"], low=0, high=2.4
    )
    # t(0.975, 3) = 3.182, and the logarithms of the factors are off by 0.01 twice.
    assert outside.note == "3 / A: 3 (95 %: 2.885 .. 3.119, n 4) outside 0 .. 2.4"
    best = judge(kind="argmax", over="row", expected="4")
    assert (best.holds, best.value) == ("no", "3 in 1 of 2, 4 in 1")


def test_the_same_claim_on_the_same_numbers_has_the_same_verdict():
    numbers = MadeUp({("3", "A"): number(3.0, *UP)}, missing=[("2", "B")])
    fields = order_in("*", "3", "4")
    before = dict(numbers.numbers)
    assert judge(numbers, **fields) == judge(numbers, **fields)
    assert numbers.numbers == before
    claim = Claim(id="x", text="", source="", **fields)
    line = verdict_line(claim, TABLE, numbers)
    assert line[:4] == ("made-up", "table-0", "x", "virtual")
    assert line[4:] == judge(numbers, **fields)


@pytest.mark.parametrize(
    "key, fewest", [("pearl", 60), ("duodecoding", 55), ("easyspec", 45), ("dsi", 8)]
)
def test_the_judge_agrees_with_the_transcriber_on_every_printed_claim(key, fewest):
    judged = 0
    for item, result in committed(key).items():
        if not result.table.cells:
            continue
        verdicts = verdicts_of(result, "paper")
        for claim in result.table.claims:
            if "paper" in claim.kinds:
                expected = claim.printed.replace("n/a", "not judged")
                assert verdicts[claim.id].holds == expected, (item, claim.id)
                judged += 1
    assert judged > fewest


# -- settled by intervals --------------------------------------------------------------
TOGETHER = {("3", "A"): number(3, *UP), ("4", "A"): number(2, *UP)}
APART = {("3", "A"): number(3, *UP), ("4", "A"): number(2, *DOWN)}


def test_numbers_that_vary_together_settle_an_order():
    """Their intervals overlap, but they are in order without each of the requests."""
    for order, holds in ((("3", "4"), "yes"), (("4", "3"), "no")):
        assert judge(TOGETHER, **order_in("A", *order)).holds == holds
        assert judge(APART, **order_in("A", *order)).holds == "open"

    unsettled = judge(APART, **order_in("A", "3", "4", "2"))
    assert unsettled.value == "1 of 1"  # the numbers fall, but this is not settled
    assert unsettled.note.startswith("not settled: A: 3 over 4 1.5 (95 %: ")
    best = judge(APART | {("2", "A"): number(1, *UP)}, **best_in("A", "3"))
    assert best.holds == "open"
    assert "3 over 4" in best.note
    assert "3 over 2" not in best.note


def test_one_settled_pair_breaks_an_order_whatever_else_is_open():
    numbers = APART | {("2", "A"): number(1, *DOWN)}
    row = judge(numbers, **order_in("A", "3", "2", "4"))
    assert (row.holds, row.note) == ("no", "A: 2 1, 4 2")


def test_quotients_and_differences_are_judged_without_each_request_on_both_sides():
    ratio = {"kind": "ratio", "of": ["3", "A"], "by": ["4", "A"]}
    row = judge(TOGETHER, **ratio, expected=1.49)
    assert (row.holds, row.note) == ("no", "3 / A: 1.5 outside 1.49")

    shifted = {
        ("3", "A"): Number(3.0, {"a": 2.0, "b": 4.0}, n=2),
        ("4", "A"): Number(2.0, {"a": 1.0, "b": 3.0}, n=2),
    }
    by = ["minus", "4", "A"]
    row = judge(shifted, kind="range", of=["3", "A"], by=by, low=0, high=0.9)
    assert (row.holds, row.note) == ("no", "3 / A: 1 outside 0 .. 0.9")

    equality = {"kind": "equal", "of": ["3", "A"], "by": ["4", "A"]}
    assert judge(shifted, **equality, within=0.49).holds == "no"
    assert judge(shifted, **equality, within=0.51).holds == "yes"
    assert judge(APART, **equality, within=0.01).holds == "open"


@pytest.mark.parametrize(
    "holds, fields",
    [
        ("yes", {"low": 2.0, "high": 4.0}),
        ("open", {"low": 2.95, "high": 4.0}),
        ("open", {"low": 0, "high": 2.95}),
        ("no", {"low": 0, "high": 2.8}),
        ("open", {"low": 3, "high": 3, "decimals": 1}),
        ("yes", {"low": 3, "high": 3, "decimals": 0}),  # 2.5 .. 3.5
        ("yes", {"kind": "ratio", "expected": 3.0, "within": 0.1}),
        ("open", {"kind": "ratio", "expected": 3.0, "within": 0.02}),
        ("no", {"kind": "ratio", "expected": 5.0, "within": 0.1}),
    ],
)
def test_a_number_is_judged_by_the_position_of_its_interval(holds, fields):
    """The number is 3, with the interval 2.885 .. 3.119."""
    fields = {"kind": "range", "of": ["3", "A"], **fields}
    assert judge({("3", "A"): number(3.0, *NARROW)}, **fields).holds == holds


# -- what is not settled, or not judged ------------------------------------------------
ANY_CLAIM = [
    order_in("A", "3", "2"),
    best_in("A", "3"),
    {"kind": "ratio", "of": ["3", "A"], "by": ["2", "A"], "expected": 3.0},
    {"kind": "range", "of": ["3", "A"], "low": 1, "high": 4},
    {"kind": "equal", "of": ["3", "A"], "expected": 3.0},
]
any_claim = pytest.mark.parametrize("fields", ANY_CLAIM, ids=lambda f: f["kind"])


@any_claim
def test_one_prompt_settles_nothing(fields):
    row = judge({("3", "A"): Number(3.0, {"0": float("nan")}, n=1)}, **fields)
    assert row.holds == "open"
    assert "one prompt settles nothing" in row.note


@any_claim
def test_a_claim_on_a_missing_number_is_open_and_names_it(fields):
    for others in ({}, {("3", "A"): None}):
        row = judge(MadeUp(others, missing=[("3", "A")]), **fields)
        assert (row.holds, row.note) == ("open", "3 / A: not run yet")
        elsewhere = MadeUp(missing=[("3", "B"), ("2", "B")])
        assert judge(elsewhere, **fields).holds == "yes"


@any_claim
def test_a_claim_on_a_busy_machine_is_not_judged(fields):
    busy = {("3", "A"): Number(3.0, is_busy=True)}
    row = judge(busy, **fields)
    assert row.holds == "not judged"
    assert row.note == "3 / A: other programs kept the machine busy"
    row = judge(MadeUp(busy, missing=[("3", "A")]), **fields)
    assert row.holds == "not judged"
    assert judge({("3", "B"): busy["3", "A"]}, **fields).holds == "yes"


@any_claim
def test_a_claim_without_numbers_or_about_the_print_is_not_judged(fields):
    nothing = MadeUp(dict.fromkeys(PRINTED))
    assert judge(nothing, **fields).holds == "not judged"
    of_print = judge(kinds=["paper"], **fields)
    assert of_print == ("not judged", "", "", "a claim about the print")


@any_claim
def test_stand_ins_judge_only_orders_and_maxima(fields):
    row = judge(MadeUp(stand_ins=True, kind="measured"), **fields)
    if fields["kind"] in ("order", "argmax"):
        assert row.holds == "yes"
    else:
        assert (row.holds, row.note) == ("not judged", OTHER_HARDWARE)
        assert row.value.startswith("3")  # compared with the printed number


def test_stand_ins_judge_a_bound_of_the_method():
    below_c = {"kind": "range", "low": 0, "high": "c"}
    stand_ins = MadeUp(stand_ins=True, kind="measured")
    assert judge(stand_ins, **below_c, of=["3", "A"]).holds == "yes"
    assert judge(stand_ins, **below_c, of=["4", "B"]).holds == "no"


def test_a_line_without_a_number_of_the_expected_label_is_not_judged():
    """4 has no number in A; in B it is the highest."""
    without = {("4", "A"): None}
    in_both = judge(without, **best_in("*", "4"))
    assert (in_both.holds, in_both.note) == ("yes", "A has no number of 4")
    in_one = judge(without, **best_in("A", "4"))
    assert (in_one.holds, in_one.note) == ("not judged", "A has no number of 4")


def test_a_bound_with_unknown_c_is_not_judged(monkeypatch):
    monkeypatch.setattr(MadeUp, "cost_ratio", lambda *_: None)
    row = judge(kind="range", of=["3", "A"], low=0, high="c")
    assert (row.holds, row.note) == ("not judged", "c is not known")
    assert judge(**best_in("A", "round(c)")).holds == "not judged"


# -- claims whose fields do not fit ----------------------------------------------------
COMPARED = {"kind": "range", "over": "columns", "of": "3", "low": 0, "high": 1}
NOT_BOTH = r"by = \[.*minus.*not both"


@pytest.mark.parametrize(
    "fields, says",
    [
        ({**COMPARED, "by": ["2", "minus", "4"]}, NOT_BOTH),
        ({"kind": "order", "order": ["A", "B"]}, 'over is None; give "row" or'),
        ({"kind": "range", "of": ["3", "A"], "low": 1}, "high is None; give a number"),
        (best_in("*", {"A": "3"}), "has no expected value for 'B'; it has: A"),
        ({"kind": "equal", "of": ["*", "A"], "by": ["2", "B"]}, "of names 3 cells and"),
    ],
)
def test_a_claim_with_fields_that_its_kind_cannot_use_is_named(fields, says):
    with pytest.raises(SpeclibError, match=f"claim 'x'.*{says}"):
        judge(**fields)
