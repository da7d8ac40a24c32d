"""Pitfalls of penalties: which drafts and which tokens of a step count.

The expected output is computed token by token, with transformers' passes without a
cache. docs/pitfalls.md summarises the threads named here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers.checkpoints import numbered_words, save_tokenizer  # noqa: E402
from helpers.snapshots import (  # noqa: E402
    VOCAB,
    random_network,
    rounded_to_bfloat16,
    with_noise,
)

import speclib  # noqa: E402
from speclib import METHODS  # noqa: E402
from speclib.methods import about, takes_gamma  # noqa: E402
from speclib.worlds.virtual import Virtual  # noqa: E402

pytestmark = pytest.mark.slow

PROMPT = (5, 9, 2, 7, 11)
TOKENS, LEAST = 30, 12
REPETITION, PRESENCE, FREQUENCY = 1.2, 0.3, 0.5


@pytest.fixture(scope="module")
def target():
    return rounded_to_bfloat16(random_network("LlamaConfig", 3))


def written_one_by_one(target, ends: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the target's greedy output under all four settings."""
    divide = transformers.RepetitionPenaltyLogitsProcessor(REPETITION)
    new: list[int] = []
    while len(new) < TOKENS and not (new and new[-1] in ends):
        text = torch.tensor([[*PROMPT, *new]])
        with torch.inference_mode():
            logits = target(text).logits[:, -1]
        row = divide(text, logits)[0]
        for token, times in Counter(new).items():
            row[token] -= PRESENCE + FREQUENCY * times
        if len(new) < LEAST:
            row[list(ends)] = -float("inf")
        new.append(int(row.argmax()))
    return tuple(new)


@pytest.fixture(scope="module")
def world(target, tmp_path_factory) -> Iterator[Virtual]:
    """A pair whose target would end before ``LEAST`` tokens if allowed to."""
    without_ends = written_one_by_one(target, ())
    end = without_ends[LEAST // 2]
    folders = {}
    for role, network in (("target", target), ("draft", with_noise(target))):
        network.generation_config.eos_token_id = end
        folder = tmp_path_factory.mktemp(role)
        network.save_pretrained(folder)
        save_tokenizer(folder, numbered_words(VOCAB))
        folders[role] = str(folder)
    pair = speclib.pair(**folders, latency="pearl/llama2-7-70")
    with speclib.open_world("virtual", pair) as world:
        yield world


@pytest.mark.parametrize("method", [name for name in METHODS if name != "eagle"])
def test_penalties_count_the_tokens_of_the_text_and_no_others(world, target, method):
    """All methods except EAGLE, which needs a pair with a head.

    https://github.com/sgl-project/sglang/pull/33643: one token of each step counts,
    so penalties are too weak, and min_new_tokens holds for too long.

    https://github.com/osaurus-ai/vmlx-swift/issues/357: rejected drafts count as well.
    https://github.com/NVIDIA/TensorRT-LLM/pull/17701: penalties are ignored.
    """
    settings = dict(about(method).variants[0])
    if takes_gamma(method):
        settings["gamma"] = 4
    if method == "easyspec":
        settings["lp"] = 1
    result = speclib.decode(
        " ".join(f"w{token}" for token in PROMPT),
        world=world,
        method=method,
        max_new_tokens=TOKENS,
        repetition_penalty=REPETITION,
        presence_penalty=PRESENCE,
        frequency_penalty=FREQUENCY,
        min_new_tokens=LEAST,
        **settings,
    )
    ends = tuple(world.opened.end_tokens)
    expected = written_one_by_one(target, ends)
    assert result.tokens == expected
    assert len(expected) > LEAST
    assert len(set(expected)) > 10
