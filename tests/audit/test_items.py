"""Every item of the audit is complete, fair and can be looked up.

What the items of a publication find is checked in a file of its own beside this one.
"""

from __future__ import annotations

import re

import pytest

from speclab.audit import verdicts_of_tables
from speclab.audit.item_schema import (
    MOST_GRAVE,
    AuditItem,
    ClaimVerdict,
    PrintedTwice,
    Publication,
    Words,
)
from speclab.audit.judge_items import judge_item
from speclab.audit.load_items import load_audit

AUDIT = load_audit()
OWNERS: dict[str, tuple[Publication, AuditItem]] = {}
for publication in AUDIT.values():
    for item in publication.items:
        OWNERS[item.id] = (publication, item)
every_item = pytest.mark.parametrize("name", OWNERS)

NOTHING_TO_ANSWER = "There is nothing to answer."
LONGEST_QUOTATION = 12  # words; figures are quoted, never sentences


@every_item
def test_every_item_says_what_was_claimed_found_and_could_be_answered(name):
    _, item = OWNERS[name]
    for text in (item.claimed, item.found, item.changes, item.answer):
        assert text.strip().endswith((".", ")"))
    assert item.title[-1] not in "?.!"  # a finding


@every_item
def test_published_code_is_judged_only_with_the_lines_that_were_read(name):
    _, item = OWNERS[name]
    if item.about == "published code":
        assert item.code_read
    for piece in item.code_read:
        assert "def " not in piece.reads
        assert "==" not in piece.reads


@every_item
def test_words_of_a_publication_are_quoted_in_figures_and_a_few_words_only(name):
    _, item = OWNERS[name]
    for text in (item.title, item.claimed, item.found, item.changes, item.answer):
        for quotation in re.findall(r'"([^"]*)"', text):
            assert len(quotation.split()) <= LONGEST_QUOTATION, quotation


@every_item
def test_the_pointers_of_an_item_lead_somewhere(name):
    owner, item = OWNERS[name]
    for piece in item.evidence:
        if isinstance(piece, ClaimVerdict):
            claim = verdicts_of_tables.claim_of(
                piece.paper or owner.paper, piece.item, piece.claim
            )
            assert piece.kind in claim.kinds


def test_what_holds_is_told_as_what_does_not():
    """The audit confirms something of each paper: its losslessness, first."""
    for key in ("pearl", "easyspec", "duodecoding", "dsi"):
        names = [item.id for item in AUDIT[key].items]
        assert f"{key}-lossless" in names


def test_ten_findings_are_the_gravest():
    ranks = [item.rank for _, item in OWNERS.values() if item.rank is not None]
    assert sorted(ranks) == list(range(1, MOST_GRAVE + 1))


@every_item
def test_the_gravest_findings_are_about_what_authors_say_and_are_no_typos(name):
    _, item = OWNERS[name]
    if item.rank is not None:
        assert item.whose == "authors"
        assert item.reach in ("conclusion", "number")


@every_item
def test_what_two_statements_of_the_print_contradict_has_an_answer(name):
    """An item with a contradiction that is found by reading alone."""
    owner, item = OWNERS[name]
    is_read_alone = all(isinstance(p, Words | PrintedTwice) for p in item.evidence)
    if is_read_alone and judge_item(item, owner.paper).verdict != "supported":
        assert item.answer != NOTHING_TO_ANSWER
