"""Our KV cache equals transformers' own to the last bit."""

from __future__ import annotations

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers.checkpoints import PLAIN  # noqa: E402
from helpers.snapshots import VOCAB, prompt, random_network  # noqa: E402
from transformers.cache_utils import DynamicLayer  # noqa: E402

from speclib.models.hf import HFModel  # noqa: E402
from speclib.models.kv_cache import BufferedLayer  # noqa: E402


def new_states(tokens: int):
    return torch.randn(2, 1, 2, tokens, 8).unbind()


def test_a_layer_equals_transformers_own_layer_after_any_rollback():
    torch.manual_seed(0)
    dice = random.Random(2)
    ours, theirs = BufferedLayer(), DynamicLayer()
    for _ in range(200):
        states = new_states(dice.randint(1, 40))
        for own, expected in zip(
            ours.update(*states), theirs.update(*states), strict=True
        ):
            assert torch.equal(own, expected)
        surplus = dice.randint(0, min(60, theirs.get_seq_length()))
        ours.crop(-surplus)
        theirs.crop(-surplus)
        assert ours.get_seq_length() == theirs.get_seq_length()


@pytest.mark.parametrize(
    "name", ["LlamaConfig", "GPT2Config", "GPTNeoXConfig", "OPTConfig"]
)
def test_passes_have_the_same_bits_as_with_transformers_own_cache(name):
    network = random_network(name)
    ours, theirs = HFModel(network, VOCAB), HFModel(network, VOCAB)
    text = prompt(400)
    theirs.reset()
    theirs.cache = transformers.DynamicCache()

    # The text includes rejections and outgrows the first buffer.
    for length in (46, 47, 53, 50, 240, 252, 258, 249, 251, 400):
        for last in (0, 3):
            own = ours.rows(text[:length], last, PLAIN)
            expected = theirs.rows(text[:length], last, PLAIN)
            np.testing.assert_array_equal(own, expected)
