"""Pitfalls at the end of a text: end tokens, limits, and a full context.

The target writes a known text, which gives the expected output. docs/pitfalls.md
summarises the threads named here.
"""

from __future__ import annotations

import pytest

import speclib
from speclib import METHODS
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.errors import BadValue
from speclib.methods import about, takes_gamma
from speclib.models.toy import Toy
from speclib.worlds.virtual import Virtual

WORDS = tuple(range(1, 41))  # all different
GAMMA = 4
NEVER_WRITTEN = 49  # the target never writes it


def settings_of(method: str) -> dict:
    """Returns the method's first variant, with windows of ``GAMMA`` tokens."""
    settings = dict(about(method).variants[0])
    if takes_gamma(method):
        settings["gamma"] = GAMMA
    return settings


def target(context: int = 128) -> Toy:
    """Returns a target that writes WORDS."""
    return Toy(None, 50, 0, WORDS, context)


def agreeing(context: int = 128) -> Toy:
    """Returns a draft that is always right."""
    return Toy(1.0, 50, 0, WORDS, context)


def run(method: str, draft: Toy, target: Toy, limit: int, eos=(), prompt=(0,)):
    """Returns the output of ``method``, and the tokens that it streamed."""
    heard: list[int] = []
    world = Virtual({"draft": draft, "target": target}, Latency.ratio(3))
    world.begin(
        prompt,
        sampler=Sampler(),
        coins=Coins(),
        limit=limit,
        eos=eos,
        on_commit=heard.extend,
    )
    METHODS[method](world, **settings_of(method))
    world.end()
    return world.text[len(prompt) :], tuple(heard)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_handed_over_behind_an_end_token_inside_a_window(method):
    """https://github.com/LostRuins/koboldcpp/issues/1276: drafts that match the target
    are sent to the client although they follow the end token.

    https://github.com/openvinotoolkit/openvino.genai/pull/1951: they are also in the
    result.
    """
    for place in range(2 * GAMMA):
        eos = (WORDS[place],)
        text, heard = run(method, agreeing(), target(), 30, eos)
        assert text == heard == WORDS[: place + 1]


@pytest.mark.parametrize("method", METHODS)
def test_an_end_token_that_only_the_draft_writes_ends_nothing(method):
    """https://github.com/openvinotoolkit/openvino.genai/pull/3293: a draft that the
    target rejects marks the request as finished.
    """
    ends_at_once = Toy(1.0, 50, 0, (NEVER_WRITTEN,), 128)
    eos = (NEVER_WRITTEN,)
    text, heard = run(method, ends_at_once, target(), 20, eos)
    assert text == heard == WORDS[:20]


@pytest.mark.parametrize("method", METHODS)
def test_a_window_that_is_longer_than_what_is_left_writes_no_token_too_many(method):
    """https://github.com/huggingface/transformers/pull/47195: prompt lookup of three
    tokens with max_new_tokens=2 writes three.

    The text repeats itself from the prompt on, so lookups find drafts, which are right.
    """
    words = (7, 8, 9, 10, 11, 12)
    draft, target = Toy(1.0, 50, 0, words, 128), Toy(None, 50, 0, words, 128)
    prompt = (0, *words, *words[:2])
    for limit in (1, 2, 3):
        text, heard = run(method, draft, target, limit, prompt=prompt)
        assert text == heard == words[2 : 2 + limit]


@pytest.mark.parametrize("method", [name for name in METHODS if name != "ssd"])
def test_nothing_is_drafted_for_places_behind_the_limit(method):
    """https://github.com/huggingface/transformers/pull/28555: the assistant writes its
    full number of tokens although fewer are left.

    All branches of SSD have the same length, even those that begin later.
    """
    limit = 6
    world = Virtual({"draft": agreeing(), "target": target()}, Latency.ratio(3))
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=limit)
    settings = settings_of(method)
    if takes_gamma(method):
        settings["gamma"] = 20
    METHODS[method](world, **settings)
    for event in world.end().operations:
        if event.is_drafting:
            assert all(position <= limit for position in event.positions)


@pytest.mark.parametrize("method", METHODS)
def test_drafting_ends_where_the_context_does(method):
    """https://github.com/turboderp-org/exllamav2/issues/274: five drafts are requested
    four tokens before the end of the cache.
    """
    context = 16
    text, _ = run(method, agreeing(context), target(context), context - 1)
    assert text == WORDS[: context - 1]


def test_a_draft_with_a_shorter_context_bounds_the_pair_and_says_so(tmp_path):
    """https://github.com/vllm-project/vllm/issues/5342 and 57941, and
    https://github.com/sgl-project/sglang/issues/3574: the request fails in mid-run.
    """
    pytest.importorskip("torch")
    from helpers.checkpoints import network, numbered_words, save_tokenizer

    folders = {}
    for role, context in (("target", 64), ("draft", 24)):
        folder = tmp_path / role
        net = network(layers=1, max_position_embeddings=context)
        net.save_pretrained(folder)
        save_tokenizer(folder, numbered_words())
        folders[role] = str(folder)
    pair = speclib.pair(**folders, latency="pearl/llama2-7-70")

    how = dict(pair=pair, world="virtual", method="speculative", gamma=3)
    result = speclib.decode("w5 w7", max_new_tokens=22, **how)
    assert len(result.tokens) == 22
    with pytest.raises(BadValue, match="24 tokens that pair"):
        speclib.decode("w5 w7", max_new_tokens=23, **how)
