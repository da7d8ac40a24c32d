"""Rows with one certain token behave as the arrays that they represent."""

from __future__ import annotations

import numpy as np
import pytest

from speclib.core.certain_rows import CertainRows, stacked
from speclib.core.sampling import Coins, residual

TOKENS, VOCAB = (3, 0, 3, 5), 7
ARRAY = np.eye(VOCAB, dtype=np.float32)[list(TOKENS)]


def test_certain_rows_behave_as_the_arrays():
    rows = CertainRows(TOKENS, VOCAB)
    assert rows.shape == ARRAY.shape
    assert len(rows) == len(ARRAY)
    assert rows.argmax(-1).tolist() == ARRAY.argmax(-1).tolist() == list(TOKENS)
    assert rows[1:3].argmax(-1).tolist() == [0, 3]
    assert rows[4:].argmax(-1).tolist() == []
    assert [rows[2][token] for token in range(VOCAB)] == ARRAY[2].tolist()
    assert rows[-1].argmax() == 5
    assert np.array_equal(rows * 2, ARRAY * 2)
    assert np.array_equal(np.asarray(rows), ARRAY)
    assert np.array_equal(rows[0], ARRAY[0])
    assert rows[1, 0] == 1
    assert rows[1][-1] == 0
    assert rows[0].dtype == ARRAY.dtype
    assert np.array_equal(residual(rows[0], rows[1]), ARRAY[0])


@pytest.mark.parametrize("role", ["draft", "target"])
def test_a_coin_draws_the_certain_token_without_building_the_array(role, monkeypatch):
    row = CertainRows(5, VOCAB)
    monkeypatch.setattr(CertainRows, "__array__", None)
    assert Coins(seed=1).choose(row, 0, role) == 5


def test_stacks_of_certain_rows_stay_certain_and_mixed_stacks_become_arrays():
    certain_rows = [CertainRows(token, VOCAB) for token in TOKENS]
    together = stacked(certain_rows, VOCAB)
    assert isinstance(together, CertainRows)
    assert tuple(together.tokens) == TOKENS
    mixed = stacked([*certain_rows[:1], np.full(VOCAB, 1 / VOCAB)], VOCAB)
    assert np.array_equal(mixed[0], ARRAY[0])
    assert mixed.shape == (2, VOCAB)
    assert stacked([], VOCAB).shape == (0, VOCAB)
