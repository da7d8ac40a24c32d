"""How evidence is weighed: rounding, intervals, verdicts; and files that are wrong."""

from __future__ import annotations

import pytest
from helpers.audit_files import (
    EVIDENCE,
    ITEM,
    PUBLICATION,
    code_read,
    item_of_code,
)

from speclab.audit import judge_items
from speclab.audit.item_schema import Arithmetic, AuditItem
from speclab.audit.judge_items import conclude, judge_item
from speclab.audit.load_items import errata_notes, load_audit
from speclab.audit.printed import number_in_brackets, printed_number, work_out
from speclab.audit.quantity import Quantity, compare, compare_printed, digits
from speclab.papers.load_papers import load_paper
from speclib.errors import SpeclibError


def arithmetic(**fields) -> Arithmetic:
    return Arithmetic.model_validate({"sort": "arithmetic", "says": "it", **fields})


def item_with(*evidence: dict, **fields) -> AuditItem:
    words = dict.fromkeys(("claimed", "found", "changes", "answer"), "Words.")
    kinds = {"id": "an-item", "title": "So", "reach": "detail", "about": "theory"}
    source = {"where": [{"at": "Section 1"}]}
    return AuditItem.model_validate(
        kinds | words | source | fields | {"evidence": evidence}
    )


# The same words in two sources, and different words.
SAME = {
    "sort": "words",
    "says": "same",
    "one": ["at one place", "a"],
    "other": ["at another", "a"],
}
DIFFERENT = {**SAME, "other": ["at another", "b"]}


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
    value = Quantity(sum(left) / 2, *left)
    bound = Quantity(sum(right) / 2, *right)
    assert compare(value, relation, bound) == answer
    printed_answer = "yes" if answer == "open" else answer
    assert compare_printed(value, relation, bound) == printed_answer


def test_a_tolerance_is_a_share_of_the_right_side():
    value, bound = Quantity.exact(1.04), Quantity.exact(1.0)
    assert compare(value, "equals", bound, within=0.05) == "yes"
    assert compare(value, "equals", bound, within=0.03) == "no"
    assert compare(value, "at most", bound, within=0.05) == "yes"


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

    ablation = ("table-4", "PEARL w/o pre-verify", "Llama 2 7B&70B")
    drop = number_in_brackets(pearl, ablation)
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
    both_decide = judge_item(item_with(SAME, DIFFERENT), "pearl")
    assert both_decide.verdict == "not supported"

    beside = {**DIFFERENT, "decides": False}
    judged = judge_item(item_with(SAME, beside), "pearl")
    assert judged.verdict == "supported"
    assert [finding.answer for finding in judged.findings] == ["yes", "no"]


def test_evidence_of_code_says_where_it_was_read():
    piece = code_read(bears_out="no")
    judged = judge_item(item_with(piece), "pearl")
    assert judged.verdict == "not supported"
    assert judged.bases == ("code",)
    assert judged.findings[0].code is not None
    assert judged.findings[0].code.first_and_last == (3, 5)


# -- in favour of who is judged --------------------------------------------------------
ON_THE_CLOCK = {
    "sort": "run",
    "says": "all drafts right, two passes: ten tokens in three",
    "run": "unverified tokens",
    "settings": {"method": "pearl", "c": 5.0, "gamma": 5, "alpha": 1.0, "tokens": 10},
    "compare": ["published over committed", "at most", 1.0],  # it is 1.5
}


def test_our_clock_alone_settles_nothing():
    judged = judge_item(item_with(ON_THE_CLOCK), "pearl", requests=2)
    assert judged.findings[0].answer == "no"
    assert judged.verdict == "open"
    assert judged.bases == ("clock",)


@pytest.mark.parametrize(
    "evidence, verdict", [(SAME, "not supported"), (DIFFERENT, "open")]
)
def test_a_clock_counts_where_it_follows_the_papers_own_numbers(evidence, verdict):
    item = item_with(ON_THE_CLOCK, clock_follows=[evidence])
    assert judge_item(item, "pearl", requests=2).verdict == verdict


def test_what_the_best_answer_would_explain_stays_open():
    item = item_with(DIFFERENT, answer_convinces=True)
    assert judge_item(item, "pearl").verdict == "open"
    item = item_with(SAME, answer_convinces=True)
    assert judge_item(item, "pearl").verdict == "supported"


def test_a_question_of_ours_is_not_counted():
    theirs = judge_item(item_with(DIFFERENT), "pearl")
    ours = judge_item(item_with(DIFFERENT, whose="ours"), "pearl")
    assert ours.verdict == "not supported"
    counts = judge_items.count_verdicts([theirs, ours])
    assert counts == {"supported": 0, "not supported": 1, "open": 0}


@pytest.mark.parametrize("kind", ["virtual", "emulated", "measured"])
def test_what_the_last_run_left_decides_nothing(kind, tmp_path, monkeypatch):
    """Its verdict would change with the time that the run was given."""
    monkeypatch.setattr("speclib.paths.REPORTS", tmp_path)
    claim = {
        "sort": "claim",
        "says": "not run",
        "item": "theorem-1",
        "claim": "best-gamma-is-round-c",
        "kind": kind,
    }
    with pytest.raises(ValueError, match="decides = false"):
        item_with(SAME, claim)

    beside = {**claim, "decides": False}
    judged = judge_item(item_with(SAME, beside), "pearl")
    assert judged.verdict == "supported"
    assert judged.bases == ("print",)
    assert "make reproduce" in judged.findings[1].lines[0]


def test_a_claim_on_the_print_names_its_cells():
    """Both cells of Table 4's equality with Table 1, with their printed numbers."""
    claim = {
        "sort": "claim",
        "says": "CodeLlama 7&34B",
        "item": "table-4",
        "claim": "pearl-is-table-1-codellama-7-34",
    }
    (finding,) = judge_item(item_with(claim), "pearl").findings
    text = "\n".join(finding.lines)
    assert "Table 4, PEARL, CodeLlama 7B&34B = 2.35" in text
    assert "Table 1, PEARL (ours), CodeLlama 7&34B = 2.48" in text
    assert "expected" not in text


# -- files that are wrong --------------------------------------------------------------
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
        (PUBLICATION + ITEM.replace('"words"', '"rumour"'), "rumour"),
        (PUBLICATION + ITEM.replace(EVIDENCE, "evidence = []"), "at least 1 item"),
        (PUBLICATION + ITEM.replace(EVIDENCE, ""), "evidence: Field required"),
        (PUBLICATION + ITEM.replace('[{at = "Section 1"}]', "[]"), "at least 1 item"),
        (PUBLICATION + ITEM.replace('{at = "Section 1"}', "{}"), "`cell` or `at`"),
        (
            PUBLICATION + ITEM.replace('"Section 1"', '"Section 1", document = "page"'),
            "no document 'page'; known: paper",
        ),
        (
            PUBLICATION
            + ITEM.replace('at = "Section 1"', 'cell = ["table-1", "Nobody", ""]'),
            "no row 'Nobody'",
        ),
        (PUBLICATION + item_of_code(code="others"), r"no \[code.others\] says"),
        (PUBLICATION + item_of_code(lines="5-3"), "the last is before the first"),
        (PUBLICATION + item_of_code(lines="3 to 5"), "lines: String should match"),
        (PUBLICATION + item_of_code(digest="0123"), "digest: String should match"),
        (PUBLICATION.replace("0123456789", "main"), "commit: String should match"),
        (PUBLICATION + ITEM + "rank = 11", "less than or equal to 10"),
        (
            PUBLICATION
            + ITEM
            + "rank = 1"
            + ITEM.replace('id = "one"', 'id = "two"')
            + "rank = 1",
            "two items of the audit have rank 1: 'one' and 'two'",
        ),
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
