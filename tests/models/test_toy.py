"""Toy models write their likeliest token, even in fuzzy passes."""

import numpy as np
import pytest

from speclib.core.candidate_tree import paths
from speclib.core.sampling import Sampler
from speclib.errors import BadValue
from speclib.models import toy
from speclib.models.toy import BOS, Random, Toy

GREEDY, SOFT = Sampler(), Sampler(temperature=1.0)


def test_a_toy_with_doubt_still_gives_its_token_the_highest_probability():
    toy = Toy(alpha=0.6, vocab=9, doubt=0.5, fuzzy=0.3)
    for lp in (1, 4):
        text = (BOS,)
        with toy.drafting(lp, calibrate=False):
            for _ in range(200):
                token = int(toy.rows(text, 0, GREEDY)[0].argmax())
                chances = toy.chances()
                assert chances[token] == chances.max()
                assert chances[BOS] == 0
                text += (token,)


def test_a_fuzzy_row_differs_from_every_texts_exact_row():
    fuzzy, exact = Random(vocab=3), Random(vocab=3)
    with fuzzy.drafting(2, calibrate=False):
        fuzzy.rows((0,), 0, SOFT)
        row = fuzzy.rows((0, 1), 0, SOFT)[0]
    assert (fuzzy.sharing, fuzzy.exact) == (2, 1)

    texts = [(0, 1), (0, 1, 2), (0, 1, 2, 1)]  # the last ends with (sharing, exact)
    for text in texts:
        assert not np.array_equal(row, exact.rows(text, 0, SOFT)[0])


def test_large_vocabularies_get_the_same_rows_as_small_ones(monkeypatch):
    """Only small vocabularies have a table of one-hot rows."""
    tabled, written = Toy(vocab=9), Toy(vocab=9)
    rows = tabled.rows((BOS,) * 7, 4, GREEDY)
    chances = tabled.chances()
    monkeypatch.setattr(toy, "LARGEST_TABLE", 8)
    assert np.array_equal(written.rows((BOS,) * 7, 4, GREEDY), rows)
    assert np.array_equal(written.chances(), chances)


@pytest.mark.parametrize("sampler", [GREEDY, SOFT, Sampler(0.7, top_k=3)])
@pytest.mark.parametrize("doubt", [0.0, 0.5])
def test_a_level_of_a_tree_gives_its_paths_rows_and_counts_as_one_pass(sampler, doubt):
    """Three of the level's nodes share a position; the fourth has another."""
    text, parents = (BOS, 4, 2, 7, 5, 3, 1, 6), (-1, 0, 0, 1, 1, 2)
    toy, alone = (Toy(alpha=0.6, vocab=9, doubt=doubt) for _ in range(2))
    for each in (toy, alone):
        each.rows(text[:2], 0, sampler)
    level = toy.level(text, parents, 4, sampler)

    expected = []
    for path in paths(text, parents)[-4:]:
        row = alone.rows(path, 0, sampler)[0]
        expected.append(alone.chances() if sampler.greedy else row)
    np.testing.assert_array_equal(level, expected)
    assert toy.prefix.fed == list(text[:4])  # the text and the trunk's one node
    assert toy.prefix.count == 2 + 4


def test_a_toy_refuses_a_level_beyond_its_context():
    toy = Toy(context=4)
    toy.level((BOS, 1, 1, 1), (-1, -1, 0), 1, GREEDY)
    with pytest.raises(BadValue, match="5 tokens does not fit this toy's context of 4"):
        toy.level((BOS, 1, 1, 1, 1, 1), (-1, -1, 0, 2, 3), 1, GREEDY)
