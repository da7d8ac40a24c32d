"""The audit is complete, and its numbers are those that a hand computes from the print.

``ITEMS`` lists what a reading of the papers and of their code found, paragraph by
paragraph; every point of it is an item of its own.
"""

from __future__ import annotations

import re

import pytest

from speclib.audit import claims
from speclib.audit.judge import judge_item, produce
from speclib.audit.load import load_audit
from speclib.audit.printed import compare_words, work_out, work_out_conflict
from speclib.audit.schema import Arithmetic, AuditItem, ClaimVerdict, PrintedTwice, Run
from speclib.audit.schema import Words as SameWords
from speclib.papers.load import load_paper

# What was found, in five paragraphs, and since then.
ITEMS = {
    "PEARL's tables": [
        "pearl-table-2-pair",
        "pearl-llama-2-gsm8k",
        "pearl-table-1-from-speeds",
        "pearl-table-4-full-method",
        "pearl-table-4-bracket",
        "pearl-table-17-gsm8k",
        "pearl-extraction",
        "pearl-ceiling-codellama",
        "pearl-ceiling-deepseek",
        "pearl-table-11-draft-length",
        "pearl-blog-machine",
        "pearl-blog-gsm8k",
        "pearl-blog-abstract",
    ],
    "PEARL's code": [
        "pearl-code-untested-draft",
        "pearl-code-without-post-verify-starts",
        "pearl-code-shared-devices-start",
        "pearl-code-repeated-coin",
        "pearl-code-unverified-tail",
        "pearl-code-no-end-token",
        "pearl-mat-two-counts",
        "pearl-code-float-ids",
    ],
    "DuoDecoding": [
        "duodecoding-tail-32",
        "duodecoding-tail-128",
        "duodecoding-code-end-token",
        "duodecoding-code-measured-c",
        "duodecoding-code-draft-lengths",
        "duodecoding-code-greedy-only",
        "duodecoding-text-average",
        "duodecoding-text-math",
        "duodecoding-text-translation",
        "duodecoding-up-to",
        "duodecoding-dynamic-is-best",
    ],
    "DSI": [
        "dsi-implementation",
        "dsi-never-slower",
        "dsi-simulator-extra-pass",
        "dsi-simulator-corrected-token",
        "dsi-table-1-size",
    ],
    "EasySpec": [
        "easyspec-code",
        "easyspec-humaneval-total",
        "easyspec-missing-baseline",
        "easyspec-shifted-column",
        "easyspec-eagle-llama-3",
        "easyspec-eagle-llama-3.3",
    ],
    "found since": [
        "rest-draw-per-branch",
        "lookahead-full-match",
        "lookahead-random-start",
        "dsi-ties",
        "dsi-lookahead-choice",
        "pearl-table-7-and-11",
        "pearl-theorem-1",
        "pearl-theorem-2",
        "pearl-drops-above-c",
        "pearl-baseline-overhead",
        "pearl-algorithm-2",
        "easyspec-verification-time",
        "pearl-same-devices",
        "dsi-same-devices",
        "easyspec-peak-speedup",
        "duodecoding-sequential",
    ],
}
AUDIT = load_audit()
OWNERS: dict[str, tuple[str, AuditItem]] = {}
for publication in AUDIT.values():
    for each in publication.items:
        OWNERS[each.id] = (publication.paper, each)
every_item = pytest.mark.parametrize("name", OWNERS)


def pieces(name: str, of: type) -> list:
    paper, item = OWNERS[name]
    return [(paper, piece) for piece in item.evidence if isinstance(piece, of)]


# -- complete and fair -----------------------------------------------------------------
@pytest.mark.parametrize("paragraph", ITEMS)
def test_every_point_of_the_reading_is_an_item(paragraph):
    assert [name for name in ITEMS[paragraph] if name not in OWNERS] == []


@every_item
def test_every_item_says_what_was_claimed_found_and_could_be_answered(name):
    _, item = OWNERS[name]
    for text in (item.claimed, item.where, item.found, item.changes, item.answer):
        assert text.strip().endswith((".", ")")) or text == item.where
        assert len(text.split()) >= 1
    assert item.title[-1] not in "?.!"  # a statement, which the verdict is on
    assert item.evidence or item.readings or item.errata


@every_item
def test_published_code_is_judged_only_with_what_was_read_in_it(name):
    _, item = OWNERS[name]
    if item.about == "published code":
        assert item.readings or item.errata
    for reading in item.readings:
        assert re.fullmatch(r"github\.com/[\w.-]+/[\w.-]+", reading.repository)
        assert "def " not in reading.says and "==" not in reading.says


def test_what_holds_is_told_as_what_does_not():
    """Of each publication the audit confirms something: its losslessness, first."""
    for key in ("pearl", "easyspec", "duodecoding", "dsi"):
        names = [item.id for item in AUDIT[key].items]
        assert f"{key}-lossless" in names


@every_item
def test_the_pointers_of_an_item_lead_somewhere(name):
    for paper, piece in pieces(name, ClaimVerdict):
        claim = claims.claim_of(piece.paper or paper, piece.item, piece.claim)
        assert piece.kind in claim.kinds


# -- the print, by hand ----------------------------------------------------------------
# Of each item the quantities that its arithmetic must give, from the printed cells.
BY_HAND = {
    "pearl-llama-2-gsm8k": [
        {"speedup": 26.47 / 9.22, "table_4": 2.87},
        {"table_2": 3.82, "table_4": 2.87},
        {"speedup": 30.33 / 9.22, "table_4": 2.87},
    ],
    "pearl-table-4-bracket": [{"drop": 2.87 - 2.51, "printed_drop": 0.26}],
    "pearl-ceiling-codellama": [{"step": 0.073, "ceiling": 3 / 0.073, "speed": 46.06}],
    "pearl-ceiling-deepseek": [{"step": 0.068, "ceiling": 4 / 0.068 / 17.37}],
    "pearl-table-11-draft-length": [{"draft_length": 132054 / 44018, "best": 6}],
    "pearl-baseline-overhead": [
        {"step": 6.27 / 33.57, "passes": 6 / 49.34 + 1 / 18.58},
        {"step": 9.32 / 27.60, "passes": 10 / 49.34 + 1 / 9.20},
        {"step": 164 * 1024 / 60340 / 46.06, "passes": 3 / 49.34},
    ],
    "easyspec-humaneval-total": [
        {"sum": 1.61 + 1.57, "total": 3.24},
        {"quotient": 11.79 / 3.24, "speedup": 3.64},
    ],
    "easyspec-missing-baseline": [
        {"by_tp": 7.66 * 1.56, "by_tree": 3.62 * 3.30},
        {"by_sd": 4.82 * 2.47},
    ],
    "easyspec-two-baselines": [{"seconds": 100 / 8.39}, {"seconds": 100 / 12.89}],
    "easyspec-verification-time": [
        {"iteration": 0.0159 * (1 + 5 * 0.88), "one_pass": 1 / 13.23}
    ],
}


@pytest.mark.parametrize("name", BY_HAND)
def test_the_arithmetic_of_an_item_is_that_of_a_hand(name):
    worked = [work_out(piece, paper) for paper, piece in pieces(name, Arithmetic)]
    assert len(worked) == len(BY_HAND[name])
    for found, expected in zip(worked, BY_HAND[name], strict=True):
        for quantity, value in expected.items():
            assert found.quantities[quantity].value == pytest.approx(value), quantity


def test_every_arithmetic_has_numbers_by_hand():
    with_arithmetic = {name for name in OWNERS if pieces(name, Arithmetic)}
    assert with_arithmetic == set(BY_HAND)


# What each says of a printed number and of where it is printed again.
PRINTED_TWICE = {
    "pearl-table-17-gsm8k": [(30.33, 26.47), (32.53, 30.34)],
    "pearl-extraction": [(2.92, 26.11 / 9.22), (None, 34.60 / 9.00)],
    "pearl-blog-gsm8k": [(3.81, 3.82)],
    "pearl-blog-abstract": [(3.79, 4.43), (1.52, 3.48 / 2.32)],
}


@pytest.mark.parametrize("name", PRINTED_TWICE)
def test_a_number_that_is_printed_twice_is_shown_beside_the_other(name):
    found = pieces(name, PrintedTwice)
    assert len(found) == len(PRINTED_TWICE[name])
    for (paper, piece), (printed, other) in zip(
        found, PRINTED_TWICE[name], strict=True
    ):
        worked = work_out_conflict(piece, paper)
        quantities = worked.quantities
        again = quantities.get("quotient", quantities["elsewhere"])
        if printed is not None:
            assert quantities["printed"].value == printed
        assert again.value == pytest.approx(other)
        assert worked.answer == "no"


# -- verdicts --------------------------------------------------------------------------
# The verdicts that the print alone gives: what the papers' tables say is settled.
BY_THE_PRINT = {
    "pearl-table-2-pair": "not supported",
    "pearl-llama-2-gsm8k": "not supported",
    "pearl-table-1-from-speeds": "supported",
    "pearl-table-4-full-method": "not supported",
    "pearl-table-4-bracket": "not supported",
    "pearl-table-17-gsm8k": "not supported",
    "pearl-extraction": "not supported",
    "pearl-ceiling-codellama": "not supported",
    "pearl-ceiling-deepseek": "not supported",
    "pearl-table-11-draft-length": "not supported",
    "pearl-blog-machine": "not supported",
    "pearl-blog-gsm8k": "not supported",
    "pearl-blog-abstract": "not supported",
    "pearl-is-fastest": "supported",
    "pearl-communication": "supported",
    "duodecoding-text-average": "not supported",
    "duodecoding-text-math": "not supported",
    "duodecoding-text-translation": "not supported",
    "duodecoding-up-to": "not supported",
    "duodecoding-dynamic-is-best": "not supported",
    "duodecoding-tables-agree": "supported",
    "dsi-relative-latencies": "not supported",
    "dsi-table-1-and-figure-1": "not supported",
    "easyspec-humaneval-total": "not supported",
    "easyspec-missing-baseline": "supported",
    "easyspec-eagle-llama-3": "supported",
    "easyspec-eagle-llama-3.3": "supported",
    "easyspec-accuracy-drop": "supported",
    "easyspec-peak-speedup": "supported",
    "easyspec-drafting-speedup": "supported",
    "easyspec-groups": "supported",
}


@pytest.mark.parametrize("name", BY_THE_PRINT)
def test_the_print_gives_this_verdict(name):
    paper, item = OWNERS[name]
    assert not any(isinstance(piece, Run) for piece in item.evidence)
    assert judge_item(item, paper).verdict == BY_THE_PRINT[name]


def test_what_was_only_read_stays_open():
    read_only = [
        "pearl-code-without-post-verify-starts",
        "pearl-code-shared-devices-start",
        "duodecoding-code-end-token",
        "duodecoding-code-measured-c",
        "duodecoding-code-draft-lengths",
        "duodecoding-code-greedy-only",
        "dsi-implementation",
        "easyspec-code",
        "easyspec-shifted-column",
        "lookahead-random-start",
    ]
    for name in read_only:
        paper, item = OWNERS[name]
        assert not item.evidence
        assert judge_item(item, paper).verdict == "open"


def test_the_words_of_an_item_are_those_of_the_papers_facts():
    """The GPUs of the paper are those of its facts; an erratum names the page's."""
    ((_, words),) = pieces("pearl-blog-machine", SameWords)
    paper = load_paper("pearl")
    assert words.other[1] in paper.facts["hardware"]
    notes = [erratum.note for erratum in paper.table("blog-figure-1").errata]
    assert any(words.one[1] in note for note in notes)
    assert compare_words(words).answer == "no"


RUN_VERDICTS = {
    "pearl-lossless": "yes",
    "easyspec-lossless": "yes",
    "duodecoding-lossless": "yes",
    "dsi-lossless": "yes",
    "speculative-lossless": "yes",
    "rest-lossless": "yes",
    "lookahead-lossless": "yes",
    "ouroboros-lossless": "yes",
    "pearl-algorithm-2": "no",
    "pearl-code-untested-draft": "no",
    "pearl-code-repeated-coin": "no",
    "rest-draw-per-branch": "no",
    "pearl-code-float-ids": "no",
    "pearl-code-no-end-token": "no",
    "dsi-simulator-extra-pass": "no",
    "pearl-same-devices": "yes",
    "dsi-same-devices": "no",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN_VERDICTS)
def test_what_exact_runs_answer(name):
    """Enumerations, counts and formulas: nothing here is left to chance."""
    for paper, piece in pieces(name, Run):
        if piece.decides:
            finding = produce(piece, paper, requests=2)
            assert finding.answer == RUN_VERDICTS[name], finding


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["duodecoding-tail-32", "duodecoding-tail-128", "pearl-mat-two-counts"]
)
def test_what_simulated_runs_settle(name):
    """At 40 requests, far from what an interval leaves open."""
    answers = []
    for paper, piece in pieces(name, Run):
        answers.append(produce(piece, paper, requests=40).answer)
    assert "no" in answers
