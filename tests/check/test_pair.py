"""``check`` of a pair: does its draft write the same with and without its KV cache?"""

from __future__ import annotations

import subprocess
import sys

import pytest

import speclib
from speclib import SpeclibError, check

pytest.importorskip("torch")

from speclab.check.pair import check_draft  # noqa: E402
from speclib.models.open_pair import open_pair  # noqa: E402

PROMPT = 'def mean(numbers):\n    """The mean of a list of numbers."""\n'
TOKENS = 48


@pytest.fixture(scope="module")
def models():
    """The embedded target and its draft, at their trained sizes."""
    opened = open_pair(speclib.load_pair("embedded/llama-7b-70b"))
    draft = opened.build("draft", dilated=False)
    target = opened.build("target", dilated=False)
    opened.set_threads()
    return draft, target, tuple(opened.tokenizer(PROMPT)["input_ids"])


def checked(models, **settings):
    draft, target, prompt = models
    return check_draft(draft, target, prompt, TOKENS, **settings)


def cut_by(tokens_more):
    """Returns a wrong ``HFModel.cut``, which removes this many tokens too many."""

    def cut(self, length):
        for layer in self.cache.layers:
            surplus = layer.get_seq_length() - length
            if surplus > 0 and surplus + tokens_more > 0:
                layer.crop(-(surplus + tokens_more))
        self.prefix.cut(length)

    return cut


def test_our_draft_writes_the_same_without_its_cache(models):
    answer = checked(models)
    assert answer, answer
    assert answer.fed == answer.needed
    assert len(answer.acceptance) == 4
    assert all(0 < share <= 1 for share in answer.acceptance)
    assert repr(answer).startswith(
        "The draft writes the same with and without its cache"
    )
    assert "Share of tested drafts accepted, in each quarter of the text: 0." in repr(
        answer
    )


@pytest.mark.parametrize("tokens_more", [1, -1])
def test_a_cache_with_too_many_or_too_few_tokens_removed_is_found(
    models, monkeypatch, tokens_more
):
    draft, _, _ = models
    monkeypatch.setattr(draft, "cut", cut_by(tokens_more).__get__(draft))
    answer = checked(models)
    assert answer.is_lossless is False
    assert "; without a cache it is" in answer.problem
    assert repr(answer).startswith("The draft's cache is cut wrongly.")


def test_a_cache_that_keeps_too_little_costs_passes_and_is_found(models, monkeypatch):
    draft, _, _ = models
    keep = type(draft.prefix).keep

    def keeps_half(self, text, last=0):
        return (
            keep(self, text, last) // 2
            if self is draft.prefix
            else keep(self, text, last)
        )

    monkeypatch.setattr(type(draft.prefix), "keep", keeps_half)
    answer = checked(models)
    assert answer.is_lossless is False
    assert answer.fed > 2 * answer.needed
    assert "This costs time, not tokens." in answer.problem


@pytest.mark.slow
def test_a_pair_can_be_checked_by_name_and_on_the_command_line():
    command = [sys.executable, "-m", "speclab", "check", "embedded/once"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("The draft writes the same with and without its cache")
    assert "in each quarter of the text" in ran.stdout


@pytest.mark.parametrize(
    "pair, settings, says",
    [
        ("toy", {}, "a toy has no KV cache"),
        ("embedded/eagle", {}, "EAGLE is only a head"),
        ("embedded/nope", {}, "no method 'embedded/nope'.*a pair has a name like"),
        (
            "embedded/once",
            {"gamma": 3},
            "gamma and vocab are for a line; this is a pair",
        ),
        ("embedded/once", {"drawn": "argmax"}, "drawn is for a rule; this is a pair"),
        ("embedded/once", {"put_back": True}, "put_back is for candidates and trees"),
    ],
)
def test_an_impossible_question_about_a_pair_is_refused(pair, settings, says):
    with pytest.raises(SpeclibError, match=says):
        check(pair, **settings)


def test_checking_a_rule_does_not_need_torch():
    code = (
        "import sys, speclib\n"
        "speclib.check(lambda drafted, q, p, coin: [0])\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
