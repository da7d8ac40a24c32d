"""Pitfalls between tokens and text: characters that take several tokens.

The tokens are the bytes of UTF-8, and the target writes three characters of two, three
and four bytes in turn. docs/pitfalls.md summarises the threads named here.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers.checkpoints import network  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402

import speclib  # noqa: E402

pytestmark = pytest.mark.slow

CHARACTERS = "é数🎉"
BYTES = len(CHARACTERS.encode())  # all different
HALF = "\ufffd"  # what a decoder writes for half a character


def tokenizer_of_bytes() -> transformers.PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: token for token, letter in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def saying(order: list[int]) -> transformers.PreTrainedModel:
    """Returns a network that writes the tokens of ``order`` again and again.

    Its layers add nothing, and its head determines the next token.
    """
    net = network(layers=1, vocab_size=256)
    layer, embedding, head = net.model.layers[0], net.model.embed_tokens, net.lm_head
    for weight in (
        layer.self_attn.o_proj.weight,
        layer.mlp.down_proj.weight,
        embedding.weight,
        head.weight,
    ):
        weight.zero_()
    for place, token in enumerate(order):
        embedding.weight[token, place] = 1
        head.weight[order[(place + 1) % len(order)], place] = 1
    return net


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A world whose draft confuses two bytes of the last character."""
    tokenizer = tokenizer_of_bytes()
    right = tokenizer.encode(CHARACTERS)
    wrong = [*right[:6], right[7], right[6], right[8]]
    folders = {}
    for role, order in (("target", right), ("draft", wrong)):
        folder = tmp_path_factory.mktemp(role)
        tokenizer.save_pretrained(folder)
        saying(order).save_pretrained(folder)
        folders[role] = str(folder)
    pair = speclib.pair(**folders, latency="pearl/llama2-7-70")
    with speclib.open_world("virtual", pair) as world:
        yield world


@pytest.mark.parametrize("method", ["autoregressive", "speculative", "pearl", "tree"])
def test_a_character_is_whole_though_its_tokens_are_committed_apart(world, method):
    """https://github.com/antonellof/ferrox/issues/124 and
    https://github.com/exo-explore/exo/pull/1691: each token is decoded alone, so half a
    character is lost.

    https://github.com/vllm-project/vllm/pull/47616: text and tokens end at different
    positions.
    """
    commits: list[tuple[int, ...]] = []
    result = speclib.decode(
        CHARACTERS,
        world=world,
        method=method,
        gamma=2 if method != "autoregressive" else "auto",
        max_new_tokens=3 * BYTES,
        on_commit=commits.append,
    )
    assert result.text == 3 * CHARACTERS
    heard = [token for tokens in commits for token in tokens]
    assert tuple(heard) == result.tokens
    assert tokenizer_of_bytes().decode(heard) == result.text

    piece_by_piece = [tokenizer_of_bytes().decode(list(tokens)) for tokens in commits]
    assert HALF in "".join(piece_by_piece)  # decoding alone is wrong here
