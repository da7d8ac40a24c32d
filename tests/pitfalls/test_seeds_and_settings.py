"""Pitfalls between requests: seeds, leftovers of a request, ignored settings.

The tests run toys on a virtual clock by the public API. docs/pitfalls.md summarises the
threads named here.
"""

from __future__ import annotations

import pytest

import speclib
from speclib import METHODS, SpeclibError
from speclib.decoding.decode import Result
from speclib.methods import about

PROMPT = "3 4"
# Methods that run in lock-step: all except DSI.
IN_A_BATCH = [method for method in METHODS if method != "dsi"]
# Each method's setting for the number of tokens drafted at a time.
LENGTHS = {
    "speculative": "gamma",
    "pearl": "gamma",
    "assisted": "num_assistant_tokens",
    "dsi": "lookahead",
}


@pytest.fixture(scope="module")
def world():
    with speclib.open_world("virtual", speclib.load_pair("toy"), servers=2) as world:
        yield world


def decoded(world, method: str, tokens: int = 16, **how) -> Result:
    return speclib.decode(
        PROMPT, world=world, method=method, max_new_tokens=tokens, **how
    )


# -- seeds -----------------------------------------------------------------------------
@pytest.mark.parametrize("method", METHODS)
def test_a_seed_decides_what_is_sampled_and_another_one_samples_anew(world, method):
    """https://github.com/vllm-project/vllm/issues/6038: a request's seed is ignored.

    https://github.com/EricLBuehler/mistral.rs/pull/2424 and
    https://github.com/sgl-project/sglang/pull/39253: nothing is sampled at all.
    """
    texts = {}
    for seed in range(4):
        texts[seed] = decoded(world, method, temperature=1.0, seed=seed).tokens
    assert len(set(texts.values())) == 4
    assert decoded(world, method, temperature=1.0, seed=2).tokens == texts[2]


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_changes_nothing_where_nothing_is_sampled(world, method):
    """https://github.com/vllm-project/vllm/issues/13196 expects different outputs for
    different seeds at temperature 0, but there is only one.
    """
    first = decoded(world, method, temperature=0.0, seed=0)
    other = decoded(world, method, temperature=0.0, seed=5)
    assert first.tokens == other.tokens
    assert first.stats == other.stats


@pytest.mark.parametrize("method", IN_A_BATCH)
def test_equal_requests_of_a_batch_are_sampled_independently(method):
    """https://github.com/NVIDIA/TensorRT-LLM/issues/19487: requests without a seed
    share one stream of random numbers, and have the same output.
    """
    how = dict(pair="toy", method=method, world="virtual", max_new_tokens=12, batch=2)
    how |= about(method).variants[0]
    batch = speclib.decode_batch([PROMPT] * 5, temperature=1.0, **how)
    assert len({result.tokens for result in batch.results}) == 5
    batch = speclib.decode_batch([PROMPT] * 5, temperature=0.0, **how)
    assert len({result.tokens for result in batch.results}) == 1


# -- leftovers of a request ------------------------------------------------------------
@pytest.mark.parametrize("method", METHODS)
def test_a_request_starts_afresh_whatever_came_before_it(world, method):
    """https://github.com/huggingface/transformers/pull/28759: an adapted draft length
    is kept for the next call.

    Passes and drafts are counted in all variants, one of which adapts the length.
    """
    for variant in about(method).variants:
        first = decoded(world, method, **variant)
        decoded(world, method, tokens=40, temperature=1.0, **variant)
        assert decoded(world, method, **variant).stats == first.stats


# -- ignored settings ------------------------------------------------------------------
@pytest.mark.parametrize("method", LENGTHS)
def test_as_many_tokens_are_drafted_as_were_asked_for(world, method):
    """https://github.com/huggingface/transformers/issues/40739: the assistant drafts
    its own default number.

    https://github.com/ml-explore/mlx-lm/pull/1297: flags are read but not passed on, so
    decoding is plain.
    """
    for length in (2, 5):
        settings = {LENGTHS[method]: length}
        if method == "assisted":
            settings["confidence_threshold"] = 0.0
        trace = decoded(world, method, tokens=40, **settings).trace
        drafted = [len(event.tokens) for event in trace.operations if event.is_drafting]
        assert max(drafted) == length


@pytest.mark.parametrize("method", METHODS)
def test_a_setting_that_a_method_does_not_have_is_refused_by_name(method):
    """https://github.com/ggml-org/llama.cpp/issues/25345: a draft model is loaded but
    silently not used.
    """
    for setting in ("draft_max", "num_draft_tokens", "spec_type"):
        with pytest.raises(SpeclibError, match=f"no parameter '{setting}'"):
            speclib.decode(
                PROMPT, pair="toy", world="virtual", method=method, **{setting: 5}
            )
