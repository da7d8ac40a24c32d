"""How evidence is weighed: rounding, intervals, verdicts; and files that are wrong."""

from __future__ import annotations

import pytest

from speclib.audit.judge import conclude, judge_item
from speclib.audit.load import errata_notes, load_audit
from speclib.audit.printed import number_in_brackets, printed_number, work_out
from speclib.audit.quantity import Quantity, compare, compare_printed, digits
from speclib.audit.schema import Arithmetic, AuditItem
from speclib.errors import SpeclibError
from speclib.papers.load import load_paper


def arithmetic(**fields) -> Arithmetic:
    return Arithmetic.model_validate({"sort": "arithmetic", "says": "it", **fields})


def item_with(*evidence: dict) -> AuditItem:
    words = dict.fromkeys(("claimed", "where", "found", "changes", "answer"), "Words.")
    return AuditItem.model_validate(
        {"id": "an-item", "title": "So", "reach": "detail", "about": "theory"}
        | words
        | {"evidence": evidence}
    )


# -- comparisons -----------------------------------------------------------------------
@pytest.mark.parametrize(
    "left, relation, right, answer",
    [
        ((1.0, 2.0), "at most", (2.0, 3.0), "yes"),
        ((1.0, 2.0), "at most", (1.5, 3.0), "open"),
        ((2.1, 3.0), "at most", (1.0, 2.0), "no"),
        ((2.0, 3.0), "at least", (1.0, 2.0), "yes"),
        ((1.0, 3.0), "at least", (2.0, 2.0), "open"),
        ((1.0, 1.9), "at least", (2.0, 2.0), "no"),
        ((2.0, 2.0), "equals", (2.0, 2.0), "yes"),
        ((1.0, 3.0), "equals", (2.0, 2.0), "open"),
        ((1.0, 1.9), "equals", (2.0, 2.0), "no"),
    ],
)
def test_a_relation_holds_fails_or_is_open_by_the_ranges(left, relation, right, answer):
    one, other = (Quantity(sum(ends) / 2, *ends) for ends in (left, right))
    assert compare(one, relation, other) == answer
    printed = "yes" if answer == "open" else answer
    assert compare_printed(one, relation, other) == printed


def test_a_tolerance_is_a_share_of_the_right_side():
    one, other = Quantity.exact(1.04), Quantity.exact(1.0)
    assert compare(one, "equals", other, within=0.05) == "yes"
    assert compare(one, "equals", other, within=0.03) == "no"
    assert compare(one, "at most", other, within=0.05) == "yes"


def test_whole_numbers_are_written_in_full():
    assert [digits(value) for value in (12345.0, 132054.0, 0.0, 3.0)] == [
        "12345",
        "132054",
        "0",
        "3",
    ]
    assert [digits(value) for value in (2.87093, 0.01135)] == ["2.871", "0.01135"]


def test_the_verdict_is_that_of_the_worst_answer():
    assert conclude(["yes", "yes"]) == "supported"
    assert conclude(["yes", "open"]) == "open"
    assert conclude(["yes", "open", "no"]) == "not supported"
    assert conclude([]) == "open"


# -- printed numbers -------------------------------------------------------------------
def test_a_printed_number_is_known_to_half_its_last_digit():
    pearl, dsi = load_paper("pearl"), load_paper("dsi")
    speed = printed_number(pearl, ("table-6", "5", "GSM8K"))
    assert (speed.low, speed.high) == pytest.approx((26.465, 26.475))
    passes = ("table-11", "Codellama 7B&34B", "Target Model (SD)")
    assert printed_number(pearl, passes).is_exact  # a count
    step = printed_number(pearl, ("table-15", "target", "codellama 7&34B"))
    assert (step.low, step.high) == pytest.approx((0.07105, 0.07115))  # 71.1 ms
    row = "Vicuna-13B / Vicuna-68M / CNN-DM"
    rate = printed_number(dsi, ("table-1", row, "Acceptance Rate (%)"))
    assert (rate.low, rate.high) == pytest.approx((62.5, 63.5))
    drop = number_in_brackets(
        pearl, ("table-4", "PEARL w/o pre-verify", "Llama 2 7B&70B")
    )
    assert (drop.low, drop.high) == pytest.approx((0.255, 0.265))


def test_what_rounding_can_explain_is_no_contradiction():
    """26.47 / 9.22 is 2.871, and may be anything from 2.8688 to 2.8730."""
    fields = {
        "cells": {
            "speed": ["table-6", "5", "GSM8K"],
            "plain": ["table-10", "Llama-2-70B", "speed (tok/s)"],
        },
        "steps": [["quotient", "speed / plain"]],
    }
    for number, answer in ((2.8689, "yes"), (2.8688, "no"), (2.8731, "no")):
        evidence = arithmetic(**fields, compare=["quotient", "equals", number])
        assert work_out(evidence, "pearl").answer == answer
    worked = work_out(arithmetic(**fields, compare=["quotient", "at most", 3]), "pearl")
    ends = worked.quantities["quotient"]
    assert ends.low == pytest.approx(26.465 / 9.225)
    assert ends.high == pytest.approx(26.475 / 9.215)
    assert worked.lines[-1] == "quotient = speed / plain = 26.47 / 9.22 = 2.871"


def test_evidence_beside_the_verdict_has_no_weight():
    holds = {
        "sort": "words",
        "says": "the same",
        "one": ["here", "a"],
        "other": ["there", "a"],
    }
    fails = {**holds, "other": ["there", "b"]}
    assert judge_item(item_with(holds, fails), "pearl").verdict == "not supported"
    beside = {**fails, "decides": False}
    judged = judge_item(item_with(holds, beside), "pearl")
    assert judged.verdict == "supported"
    assert [finding.answer for finding in judged.findings] == ["yes", "no"]


def test_a_claim_without_a_verdict_leaves_its_item_open(tmp_path, monkeypatch):
    monkeypatch.setattr("speclib.paths.REPORTS", tmp_path)
    claim = {
        "sort": "claim",
        "says": "not run",
        "item": "theorem-1",
        "claim": "best-gamma-is-round-c",
        "kind": "virtual",
    }
    judged = judge_item(item_with(claim), "pearl")
    assert judged.verdict == "open"
    assert "make reproduce" in judged.findings[0].lines[0]


# -- files that are wrong --------------------------------------------------------------
PUBLICATION = """
key = "pearl"
name = "PEARL"
paper = "pearl"
about = "About."
"""
ITEM = """
[[items]]
id = "one"
title = "So"
reach = "number"
about = "theory"
claimed = "C."
where = "W"
found = "F."
changes = "N."
answer = "A."
"""


@pytest.mark.parametrize(
    "text, message",
    [
        ("key = ", "not valid TOML"),
        (PUBLICATION.replace('key = "pearl"', 'key = "dsi"') + ITEM, "file's name"),
        (PUBLICATION + ITEM + 'verdict = "supported"', "verdict"),
        (PUBLICATION + ITEM + ITEM, "two items of the audit are called 'one'"),
        (
            PUBLICATION + ITEM + 'errata = [["table-1", "PEARL (ours)", "Nobody"]]',
            "has no erratum",
        ),
        (PUBLICATION + ITEM + '[[items.evidence]]\nsort = "rumour"', "rumour"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(text, message, tmp_path):
    (tmp_path / "pearl.toml").write_text(text)
    with pytest.raises(SpeclibError, match=message):
        load_audit(tmp_path)


def test_a_formula_or_a_cell_that_is_not_there_is_named():
    cells = {"a": ["table-6", "5", "GSM8K"]}
    with pytest.raises(SpeclibError, match="nothing is called 'b'"):
        work_out(arithmetic(cells=cells, compare=["a", "equals", "b"]), "pearl")
    with pytest.raises(SpeclibError, match="cannot work out 'a / b'"):
        steps = [["c", "a / b"]]
        work_out(
            arithmetic(cells=cells, steps=steps, compare=["c", "equals", 1]), "pearl"
        )
    with pytest.raises(SpeclibError, match="prints no"):
        missing = {"a": ["table-6", "9", "GSM8K"]}
        work_out(arithmetic(cells=missing, compare=["a", "equals", 1]), "pearl")


def test_errata_are_found_by_their_cell():
    (note,) = errata_notes("pearl", ("table-6", "5", "MT-Bench"))
    assert note.startswith("conflict: Tables 8 and 17")
    assert errata_notes("pearl", ("table-6", "3", "MT-Bench")) == []
