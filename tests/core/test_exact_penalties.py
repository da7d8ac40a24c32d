"""Penalties depend only on the text before a position, so every method applies them.

Expected values come from transformers' processors, from arithmetic, and from products
of the target's rows along every text.
"""

import numpy as np
import pytest

from speclib.core.penalties import Penalties
from speclib.core.sampling import Sampler
from speclib.core.text import Text
from speclib.models.toy import Random
from speclib.worlds.enumerator import distance, outcomes, total_variation, truth

EXACT = 1e-12
VOCAB = 50
TEXTS = [(1,), (3, 3, 3, 7), tuple(range(40)), (49, 0, 49, 2, 2, 2, 2)]


@pytest.fixture
def logits():
    return np.random.default_rng(0).normal(0, 3, (len(TEXTS), VOCAB)).astype("float32")


# -- one row ---------------------------------------------------------------------------
@pytest.mark.parametrize("penalty", [1.3, 0.7, 1.05, 100.0])
def test_the_repetition_penalty_matches_transformers(logits, penalty):
    torch = pytest.importorskip("torch")
    from transformers import RepetitionPenaltyLogitsProcessor

    theirs = RepetitionPenaltyLogitsProcessor(penalty)
    changed = Penalties(repetition=penalty).applied(logits, TEXTS)
    for row, text, ours in zip(logits, TEXTS, changed, strict=True):
        expected = theirs(torch.tensor([text]), torch.tensor(row[None]))
        assert ours.tolist() == expected[0].tolist()


def test_bans_match_transformers(logits):
    torch = pytest.importorskip("torch")
    from transformers import (
        MinNewTokensLengthLogitsProcessor,
        SuppressTokensLogitsProcessor,
    )

    shortest = MinNewTokensLengthLogitsProcessor(2, 3, [5, 9], device="cpu")
    suppressed = SuppressTokensLogitsProcessor([7, 11], device="cpu")
    ours = Penalties(
        prompt_length=2,
        shortest=5,
        ends=frozenset({5, 9}),
        suppressed=frozenset({7, 11}),
    ).applied(logits, TEXTS)
    for row, text, changed in zip(logits, TEXTS, ours, strict=True):
        ids, scores = torch.tensor([text]), torch.tensor(row[None])
        assert changed.tolist() == suppressed(ids, shortest(ids, scores))[0].tolist()


def test_presence_counts_once_and_frequency_every_time_only_in_the_new_text():
    (row,) = Penalties(presence=0.5, frequency=0.25, prompt_length=2).applied(
        np.zeros((1, 6)), [(4, 4, 1, 1, 1, 2)]
    )
    assert row.tolist() == [0, -1.25, -0.75, 0, 0, 0]


def test_the_given_logits_are_not_modified(logits):
    before = logits.copy()
    Sampler(1.0, penalties=Penalties(2.0))(logits, lambda: TEXTS)
    assert (logits == before).all()


def test_a_growing_text_is_penalized_like_its_tuple():
    text = Text([1, 2, 3, 9, 9], 3, (4,))
    penalties = Penalties(frequency=1.0)
    zeros = np.zeros((1, 12))
    from_log = penalties.applied(zeros, [text])
    assert from_log.tolist() == penalties.applied(zeros, [(1, 2, 3, 4)]).tolist()


def test_tokens_outside_the_rows_are_ignored():
    penalties = Penalties(
        shortest=9, ends=frozenset({3, 400}), suppressed=frozenset({500})
    )
    (row,) = penalties.applied(np.zeros((1, 5)), [(1,)])
    assert row.tolist() == [0, 0, 0, -np.inf, 0]


# -- every method ----------------------------------------------------------------------
def pair_of(vocab: int, horizon: int) -> dict[str, Random]:
    return {"draft": Random(vocab, 1, horizon), "target": Random(vocab, 2, horizon)}


END = frozenset({1})


def test_no_method_loses_a_penalty(case):
    """This is exact, over every outcome of every coin."""
    rules = Penalties(1.7, 0.5, 0.4, prompt_length=1, shortest=3, ends=END)
    models = pair_of(3, 4)
    sampler = Sampler(1.0, penalties=rules)
    expected = truth(models["target"], 3, sampler=sampler, eos=rules.ends)
    plain = truth(models["target"], 3, eos=rules.ends)
    assert total_variation(expected, plain) > 0.01  # the rules matter
    for settings in case.at(2):
        found = outcomes(
            case.method, models, 3, sampler=sampler, eos=rules.ends, **settings
        )
        assert distance(found, expected) < EXACT, settings


class CountsSteps(Random):
    """Counts wrongly, as public code did: by passes, or drafts accepted or not."""

    def __init__(self, mistake: str, *args):
        self.mistake = mistake
        super().__init__(*args)

    def rows(self, text, last, sampler):
        rows = []
        for end in range(len(text) - last, len(text) + 1):
            own = tuple(text[:end])
            counted = {
                "a step in place of a token": own[: len(text) - last],
                "rejected drafts too": tuple(text),
                "accepted drafts twice": own + own[len(text) - last :],
            }[self.mistake]
            with np.errstate(divide="ignore"):
                (logits,) = np.log(super().rows(own, 0, Sampler(1.0)))
            rows.append(sampler(logits[None], lambda counted=counted: [counted])[0])
        return np.array(rows)


@pytest.mark.parametrize(
    "mistake",
    ["a step in place of a token", "rejected drafts too", "accepted drafts twice"],
)
def test_a_wrong_count_is_found(mistake):
    """Five public projects had such bugs in one year; each fails the test above."""
    from speclib.methods import METHODS

    sampler = Sampler(1.0, penalties=Penalties(frequency=0.9, prompt_length=1))
    models = pair_of(3, 4)
    expected = truth(models["target"], 3, sampler=sampler)
    models["target"] = CountsSteps(mistake, 3, 2, 4)
    found = outcomes(METHODS["speculative"], models, 3, sampler=sampler, gamma=2)
    assert total_variation(found, expected) > 0.005
