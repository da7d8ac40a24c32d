"""Pitfalls of wrongly cut KV caches: the text stays right, but drafts get worse.

The models are random networks with caches in virtual worlds. One pass of transformers
over the whole text gives the expected drafts. docs/pitfalls.md summarises the threads
named here.
"""

from __future__ import annotations

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
from speclib.decoding.decode import Result  # noqa: E402
from speclib.methods import about, takes_gamma  # noqa: E402
from speclib.trace.events import Trace  # noqa: E402
from speclib.worlds.virtual import Virtual  # noqa: E402

pytestmark = pytest.mark.slow

# Methods with drafts only from a draft model, and settings for sequences of drafts.
DRAFTING = {
    "speculative": {},
    "pearl": {},
    "ssd": {},
    "assisted": {"num_assistant_tokens": 5, "confidence_threshold": 0.0},
    "dsi": {"lookahead": 2},
    "duodecoding": {"k": 1},
    "tree": {"width": 1},
    "easyspec": {"width": 1, "lp": 1},
}
IN_A_LINE = ("speculative", "pearl", "assisted", "dsi")
TOKENS = 64


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, str]:
    """Checkpoints of a target and of a draft that sometimes agrees with it."""
    target = rounded_to_bfloat16(random_network("LlamaConfig", 3))
    folders = {}
    for role, network in (("target", target), ("draft", with_noise(target))):
        folder = tmp_path_factory.mktemp(role)
        network.save_pretrained(folder)
        save_tokenizer(folder, numbered_words(VOCAB))
        folders[role] = str(folder)
    return folders


@pytest.fixture(scope="module")
def worlds(folders) -> Iterator[dict[str, Virtual]]:
    """A world with the draft, and one where the target drafts for itself."""
    opened = {}
    for name in ("draft", "target"):
        pair = speclib.pair(
            target=folders["target"], draft=folders[name], latency="pearl/llama2-7-70"
        )
        opened[name] = speclib.open_world("virtual", pair)
    yield opened
    for world in opened.values():
        world.close()


def decoded(world, method: str) -> Result:
    settings = dict(about(method).variants[0]) | DRAFTING[method]
    if takes_gamma(method):
        settings["gamma"] = 4
    return speclib.decode(
        "w5 w9 w2 w7 w11",
        world=world,
        method=method,
        max_new_tokens=TOKENS,
        ignore_eos=True,
        **settings,
    )


@pytest.mark.parametrize("method", DRAFTING)
def test_a_draft_that_is_the_target_itself_is_never_rejected(worlds, method):
    """Every round is accepted completely, which reveals what such rounds leave behind.

    https://github.com/vllm-project/vllm/pull/9730: wrong entries after a bonus token.
    https://github.com/meta-pytorch/gpt-fast/issues/107: is the last accepted draft fed?
    https://github.com/ggml-org/llama.cpp/issues/10174: the same model as its draft
    writes one token and no more.
    """
    result = decoded(worlds["target"], method)
    assert len(result.tokens) == TOKENS
    assert result.stats.accepted > TOKENS / 2
    assert result.stats.rejected == 0


def drafts_of(trace: Trace) -> Iterator[tuple[int, int, str]]:
    """Yields position, token and outcome of each tested draft in a sequence."""
    for event in trace.operations:
        if event.op != "propose":
            continue
        drafts = zip(event.positions, event.tokens, event.outcome, strict=True)
        for position, token, outcome in drafts:
            if outcome != "discarded":
                yield position, token, outcome


@pytest.mark.parametrize("method", IN_A_LINE)
def test_every_draft_is_what_the_draft_says_of_the_text_without_any_cache(
    worlds, folders, method
):
    """This includes drafts after rejections, so a wrong number of entries is noticed.

    https://github.com/lablup/mlxcel/issues/994: two entries too many are cut, and fewer
    drafts pass the longer the text is.
    https://github.com/paiml/aprender/pull/2014: the cache is emptied, not cut.
    https://github.com/romsto/Speculative-Decoding/issues/4: caches of long texts.
    """
    result = decoded(worlds["draft"], method)
    text = [5, 9, 2, 7, 11, *result.tokens]
    draft = transformers.AutoModelForCausalLM.from_pretrained(
        folders["draft"], dtype=torch.float32
    )
    with torch.inference_mode():
        said = draft(torch.tensor([text])).logits[0].argmax(-1).tolist()

    drafts = list(drafts_of(result.trace))
    for position, token, outcome in drafts:
        assert token == said[position - 1], position
        assert (outcome == "accepted") == (token == text[position])
    outcomes = [outcome for _, _, outcome in drafts]
    assert min(outcomes.count("accepted"), outcomes.count("rejected")) > 10
