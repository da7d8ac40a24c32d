"""Passes of small networks: the logits of transformers, text after text."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from speclib.core.sampling import Sampler
from speclib.data.pairs import load_pair
from speclib.models.open_pair import open_pair

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from speclib.models import short_passes  # noqa: E402  # torch may be missing

PLAIN = Sampler(1.0)
LLAMA, QWEN = "embedded/llama-7b-70b", "embedded/easyspec-qwen"
MODELS = [(pair, role) for pair in (LLAMA, QWEN) for role in ("target", "draft")]
TEXT = tuple(int(token) for token in np.random.default_rng(0).integers(3, 4000, 200))
TREE = (-1, -1, 0, 0, 1, 2, 3, 3)


@cache
def both(pair, role):
    """A model whose passes transformers computes, and one of short passes."""
    opened = open_pair(load_pair(pair))
    usual, short = (opened.build(role, dilated=False) for _ in range(2))
    short_passes.shorten(short.network)
    return usual, short


ASKED = {
    "a prompt": lambda model: model.rows(TEXT[:150], 5, PLAIN),
    "one token more": lambda model: model.rows(TEXT[:151], 0, PLAIN),
    "several more": lambda model: model.rows(TEXT[:160], 7, PLAIN),
    "a tree": lambda model: model.tree(TEXT[:170], TREE, PLAIN),
    "after a rejection": lambda model: model.rows(TEXT[:140] + (7, 8), 1, PLAIN),
    "a level": lambda model: model.level(TEXT[:150], (-1,) * 8, 8, PLAIN),
    "the next level": lambda model: model.level(
        TEXT[:152], (-1,) * 8 + (0, 3), 2, PLAIN
    ),
}


@pytest.mark.parametrize("pair, role", MODELS)
def test_whatever_is_asked_they_say_what_transformers_says(pair, role):
    """One after the other, so that each finds what the one before it has cached."""
    usual, short = both(pair, role)
    for asked in ASKED.values():
        expected, got = asked(usual), asked(short)
        np.testing.assert_allclose(got, expected, atol=1e-5)
        assert (usual.prefix.fed, usual.prefix.count) == (
            short.prefix.fed,
            short.prefix.count,
        )
        np.testing.assert_allclose(
            short.features_fed(), usual.features_fed(), atol=1e-4
        )


@pytest.mark.parametrize("pair", [LLAMA, QWEN])
def test_many_texts_at_once_take_the_usual_way(pair):
    usual, short = both(pair, "target")
    ids = torch.tensor([TEXT[:12], (0,) * 4 + TEXT[:8]])
    is_text = torch.tensor([[1] * 12, [0] * 4 + [1] * 8])
    written = [
        model.network.generate(
            input_ids=ids, attention_mask=is_text, max_new_tokens=8, do_sample=False
        )
        for model in (usual, short)
    ]
    assert (written[0] == written[1]).all()


@pytest.mark.parametrize("calibrate", [True, False])
@pytest.mark.parametrize("lp", [2, 4])
def test_layers_that_share_an_input_say_what_they_say_in_transformers(lp, calibrate):
    """EasySpec's fuzzy passes, of lines and levels, and an exact one after them."""
    usual, short = both(QWEN, "draft")
    said = []
    for model in (usual, short):
        model.reset()
        rows = [model.rows(TEXT[:50], 0, PLAIN)]
        with model.drafting(lp, calibrate):
            rows += [model.rows(TEXT[: 51 + n], 0, PLAIN) for n in range(3)]
            rows.append(model.level(TEXT[:56], (-1,) * 3, 3, PLAIN))
        rows.append(model.rows(TEXT[:57], 0, PLAIN))
        said.append(np.concatenate(rows))
    np.testing.assert_allclose(*said, atol=1e-5)
    exact = usual.rows(TEXT[:53], 0, PLAIN)[0]
    assert abs(said[0][3] - exact).max() > 1e-4  # so those were fuzzy


def tiny_llama(**settings):
    """Two queries share a key."""
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        **settings,
    )


def test_other_and_larger_networks_stay_as_they_are(monkeypatch):
    from transformers import AutoModelForCausalLM, GPT2Config

    class Quantised(torch.nn.Linear):
        """A layer whose weight is not what it multiplies by."""

    def has_changed(config, product=None):
        network = AutoModelForCausalLM.from_config(config)
        if product is not None:
            network.model.layers[1].mlp.up_proj = product
        before = network.get_decoder().forward
        short_passes.shorten(network)
        return network.get_decoder().forward != before

    assert has_changed(tiny_llama())
    assert not has_changed(tiny_llama(), Quantised(32, 48, bias=False))
    assert not has_changed(GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=64))
    monkeypatch.setattr(short_passes, "MOST_WEIGHTS", 1000)
    assert not has_changed(tiny_llama())


def test_queries_that_share_keys_are_grouped():
    from transformers import AutoModelForCausalLM

    from speclib.models.hf import HFModel

    torch.manual_seed(0)
    network = AutoModelForCausalLM.from_config(tiny_llama(attention_bias=True))
    text = tuple(range(3, 43))
    expected = HFModel(network, 64).rows(text, 9, PLAIN)
    got = HFModel(short_passes.shorten(network), 64).rows(text, 9, PLAIN)
    np.testing.assert_allclose(got, expected, atol=1e-6)
