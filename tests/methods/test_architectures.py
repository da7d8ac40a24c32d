"""For any pair of models, methods write what transformers' ``generate`` writes.

The models have random weights and eleven architectures. They are saved in the hub's
format: sharded, in bfloat16, with tied embeddings and several end tokens. The usual
tests try every method on two architectures, and on five others a few methods that
together use every kind of pass. The thorough tests try every variant of every method on
all eleven.

If a model has a sliding window, one prompt is shorter than the window, which the output
outgrows, and one prompt is ten times as long as the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers.each_operation import EACH_KIND_OF_PASS  # noqa: E402
from helpers.snapshots import (  # noqa: E402
    ARCHITECTURES,
    FEW_PROMPT,
    MANY_PROMPT,
    NEW_TOKENS,
    Widths,
    generate,
    has_both,
    is_varied,
    prompt,
    save_snapshots,
    save_widths,
)

import speclib  # noqa: E402
from speclab.peers.external import EXTERNAL, External  # noqa: E402
from speclib.data.pairs import Pair  # noqa: E402
from speclib.methods import METHODS, about, takes_gamma  # noqa: E402
from speclib.models.open_pair import open_pair  # noqa: E402
from speclib.models.parallel.layer_parallel import Layered  # noqa: E402
from speclib.models.toy import Toy  # noqa: E402
from speclib.operations import OPERATIONS  # noqa: E402

pytestmark = pytest.mark.slow

SHORT, LONG = 46, 644  # tokens
PROMPTS = (SHORT, LONG)
ROLES = ("draft", "target")

# Without a window, and with a window in every second layer.
MOST_UNLIKE = ("LlamaConfig", "Gemma3TextConfig")
# Each is unique in something: norms of queries and keys, experts, or its encoding of
# positions. The four others resemble one of these or of those two.
OTHERS = ("Qwen3Config", "MixtralConfig", "GPTNeoXConfig", "GPT2Config", "OPTConfig")


@pytest.fixture(scope="module")
def pair_of(tmp_path_factory):
    """pair_of(architecture) returns a pair of two checkpoints."""

    @cache
    def pair_of(name: str) -> Pair:
        folders = save_snapshots(name, tmp_path_factory.mktemp(name))
        return speclib.pair(**folders._asdict())

    return pair_of


@pytest.fixture(scope="module")
def expected(pair_of):
    """expected(architecture, length) returns transformers' output for a prompt."""

    @cache
    def expected(name: str, length: int) -> list[int]:
        network = transformers.AutoModelForCausalLM.from_pretrained(
            pair_of(name).target.model, dtype=torch.float32
        )
        return generate(network, prompt(length))

    return expected


def cases_of(
    methods: Iterable[str], draft: Any, all_variants: bool
) -> Iterator[tuple[str, dict]]:
    """Yields methods with their settings: the first variant's, or every variant's."""
    for method in methods:
        variants = about(method).variants
        if not all_variants:
            variants = variants[:1]
        for variant in variants:
            settings = dict(variant)
            if takes_gamma(method):
                settings["gamma"] = 3
            if method == "easyspec" and not isinstance(draft, Layered):
                settings["lp"] = 1
            yield method, settings


def differences(
    pair, tokens, expected, decode, methods=METHODS, all_variants=False
) -> list[str]:
    """Lists the methods whose output differs from the expected one, with the output."""
    models = {role: open_pair(pair).build(role) for role in ROLES}
    end_tokens = open_pair(pair).end_tokens
    differing = []
    for method, settings in cases_of(methods, models["draft"], all_variants):
        output, _ = decode(
            METHODS[method],
            models,
            NEW_TOKENS,
            prompt=tokens,
            eos=end_tokens,
            **settings,
        )
        if list(output) != expected:
            differing.append(f"{method} {settings}: {output}")
    return differing


def test_a_few_methods_together_use_every_operation(decode):
    """So tests that only try these methods use every kind of pass."""
    models = {"draft": Toy(0.7), "target": Toy()}
    operations = set()
    for method, settings in cases_of(EACH_KIND_OF_PASS, models["draft"], False):
        _, trace = decode(METHODS[method], models, NEW_TOKENS, **settings)
        operations.update(event.op for event in trace.operations)
    assert operations == OPERATIONS.keys()


@pytest.mark.parametrize("name", MOST_UNLIKE)
def test_these_checkpoints_have_the_hubs_layout(pair_of, expected, name):
    """Otherwise the tests below would cover less than they claim."""
    pair = pair_of(name)
    for role in ROLES:
        folder = pair.model(role).model
        shards = list(Path(folder).glob("*-of-*.safetensors"))
        assert len(shards) > 1
        network = transformers.AutoModelForCausalLM.from_pretrained(folder)
        assert network.dtype == torch.bfloat16
        assert network.get_output_embeddings().weight is (
            network.get_input_embeddings().weight
        )
    assert len(open_pair(pair).end_tokens) == 2

    # The text is varied, and an end token ends it before its limit.
    written = expected(name, PROMPTS[0])
    assert is_varied(written)
    assert len(written) < NEW_TOKENS
    assert written[-1] in open_pair(pair).end_tokens


@pytest.mark.parametrize(
    "name, length", [(MOST_UNLIKE[0], SHORT), *product(MOST_UNLIKE[1:], PROMPTS)]
)
def test_every_method_writes_what_transformers_generates(
    pair_of, expected, decode, name, length
):
    wanted = expected(name, length)
    assert differences(pair_of(name), prompt(length), wanted, decode) == []


@pytest.mark.parametrize("name", OTHERS)
def test_each_kind_of_pass_writes_what_transformers_generates(
    pair_of, expected, decode, name
):
    pair, wanted = pair_of(name), expected(name, SHORT)
    assert differences(pair, prompt(SHORT), wanted, decode, EACH_KIND_OF_PASS) == []


@pytest.mark.thorough
@pytest.mark.parametrize("length", PROMPTS)
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_variant_writes_what_transformers_generates(
    pair_of, expected, decode, name, length
):
    pair, wanted = pair_of(name), expected(name, length)
    assert differences(pair, prompt(length), wanted, decode, all_variants=True) == []


# -- added tokens in one of the two models ---------------------------------------------
FAMILIES = (
    "LlamaConfig",
    "Qwen2Config",
    "Qwen3Config",
    "MistralConfig",
    "Gemma3TextConfig",
    "GPT2Config",
    "Phi3Config",
)

# The usual tests try the methods of EACH_KIND_OF_PASS on these, with one model wider.
# worlds/test_exact.py shows that every method is lossless with either model wider.
WIDER_OF = {"Gemma3TextConfig": "target", "GPT2Config": "draft"}


@pytest.fixture(scope="module")
def widths_of(tmp_path_factory):
    """widths_of(architecture) returns two checkpoints, one with added tokens."""

    @cache
    def widths_of(name: str) -> Widths:
        return save_widths(name, tmp_path_factory.mktemp(f"{name}-widths"))

    return widths_of


@pytest.mark.thorough
@pytest.mark.parametrize("wider", ROLES)
@pytest.mark.parametrize("name", FAMILIES)
def test_every_method_writes_the_same_whichever_model_has_added_tokens(
    widths_of, decode, name, wider
):
    assert differences_with(widths_of(name), wider, decode, METHODS) == []


@pytest.mark.parametrize("name, wider", WIDER_OF.items())
def test_each_kind_of_pass_writes_the_same_if_one_model_has_added_tokens(
    widths_of, decode, name, wider
):
    assert differences_with(widths_of(name), wider, decode, EACH_KIND_OF_PASS) == []


def differences_with(widths: Widths, wider: str, decode, methods) -> list[str]:
    """Returns ``differences`` with added tokens in the model of the role ``wider``.

    Any sliding window has 8 tokens, fewer than a tree.
    """
    few, many = widths
    if wider == "target":
        pair, tokens = speclib.pair(target=many, draft=few), MANY_PROMPT
    else:
        pair, tokens = speclib.pair(target=few, draft=many), FEW_PROMPT

    network = transformers.AutoModelForCausalLM.from_pretrained(
        pair.target.model, dtype=torch.float32
    )
    wanted = generate(network, tokens)
    assert is_varied(wanted)
    assert wanted[-1] in open_pair(pair).end_tokens
    assert has_both(wanted) == (wider == "target")
    return differences(pair, tokens, wanted, decode, methods)


@pytest.mark.parametrize(
    "name",
    ["Gemma3TextConfig", pytest.param("MistralConfig", marks=pytest.mark.thorough)],
)
def test_real_processes_and_peers_end_at_the_first_of_several_end_tokens(
    pair_of, expected, name
):
    """Peers are transformers' own decoding in a separate process."""
    pair = pair_of(name)
    words = " ".join(f"w{token}" for token in prompt(PROMPTS[0]))
    wanted = expected(name, PROMPTS[0])
    with speclib.Processes(pair) as world:
        for method in ("autoregressive", "pearl", "tree"):
            settings = {"gamma": 3} if takes_gamma(method) else {}
            result = speclib.decode(
                words,
                world=world,
                method=method,
                max_new_tokens=NEW_TOKENS,
                **settings,
            )
            assert list(result.tokens) == wanted
            assert result.stats.tokens == len(wanted)

    for peer_name in EXTERNAL:
        with External(peer_name, pair) as peer:
            answer = peer.decode(words, max_new_tokens=NEW_TOKENS)
            assert list(answer.tokens) == wanted
            assert answer.stats.tokens == len(wanted)
