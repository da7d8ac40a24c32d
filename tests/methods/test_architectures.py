"""Any pair of models: every method writes what transformers' own ``generate`` writes.

The models are random ones of eleven architectures, saved as the hub has them: sharded,
in bfloat16, with tied embeddings and several end tokens. Where there is a sliding
window, one prompt is shorter than it, so that the text grows beyond the window while it
is written, and one prompt is ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

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
from speclib.data.pairs import Pair  # noqa: E402
from speclib.decoding.transformers_baselines import EXTERNAL, External  # noqa: E402
from speclib.methods import METHODS, VARIANTS, takes_gamma  # noqa: E402
from speclib.models import factory  # noqa: E402
from speclib.models.parallel.layer_parallel import Layered  # noqa: E402

pytestmark = pytest.mark.slow

SHORT, LONG = 46, 644  # tokens
PROMPTS = (SHORT, LONG)
ROLES = ("draft", "target")

# One of each kind of window: none, in all layers, in half of them, and in turns.
EACH_KIND_OF_WINDOW = (
    "LlamaConfig",
    "MistralConfig",
    "Qwen3Config",
    "Gemma3TextConfig",
)


def each_architecture_and_length() -> Iterator[Any]:
    """All pairs of the two; long prompts of every change for each kind of window."""
    for length in PROMPTS:
        for name in ARCHITECTURES:
            is_brief = length == SHORT or name in EACH_KIND_OF_WINDOW
            marks = [] if is_brief else [pytest.mark.thorough]
            yield pytest.param(name, length, marks=marks)


@pytest.fixture(scope="module")
def pair_of(tmp_path_factory):
    """pair_of(architecture): a pair of two checkpoints of it."""

    @cache
    def pair_of(name: str) -> Pair:
        folders = save_snapshots(name, tmp_path_factory.mktemp(name))
        return speclib.pair(**folders._asdict())

    return pair_of


@pytest.fixture(scope="module")
def expected(pair_of):
    """expected(architecture, length): what transformers writes after a prompt."""

    @cache
    def expected(name: str, length: int) -> list[int]:
        network = transformers.AutoModelForCausalLM.from_pretrained(
            pair_of(name).target.model, dtype=torch.float32
        )
        return generate(network, prompt(length))

    return expected


def cases_of(draft: Any, all_variants: bool) -> Iterator[tuple[str, dict]]:
    """Every method with its settings; with ``all_variants`` in each of these."""
    for method in METHODS:
        variants = VARIANTS.get(method, [{}])
        for variant in variants if all_variants else variants[:1]:
            settings = dict(variant)
            if takes_gamma(method):
                settings["gamma"] = 3
            if method == "easyspec" and not isinstance(draft, Layered):
                settings["lp"] = 1
            yield method, settings


def differences(pair, tokens, expected, decode, all_variants=False) -> list[str]:
    """The methods whose output is not the expected one, and those that raised."""
    models = {role: factory.build(pair, role) for role in ROLES}
    found = []
    for method, settings in cases_of(models["draft"], all_variants):
        output, _ = decode(
            METHODS[method],
            models,
            NEW_TOKENS,
            prompt=tokens,
            eos=factory.end_tokens(pair),
            **settings,
        )
        if list(output) != expected:
            found.append(f"{method} {settings}: {output}")
    return found


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_these_checkpoints_are_laid_out_as_the_hubs(pair_of, expected, name):
    """Else the tests below would try less than they say."""
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
    assert len(factory.end_tokens(pair)) == 2

    # The text is no monotone one, and an end token ends it before its limit.
    written = expected(name, PROMPTS[0])
    assert is_varied(written)
    assert len(written) < NEW_TOKENS
    assert written[-1] in factory.end_tokens(pair)


@pytest.mark.parametrize("name, length", list(each_architecture_and_length()))
def test_every_method_writes_what_transformers_generates(
    pair_of, expected, decode, name, length
):
    wanted = expected(name, length)
    assert differences(pair_of(name), prompt(length), wanted, decode) == []


@pytest.mark.thorough
@pytest.mark.parametrize("length", PROMPTS)
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_variant_writes_what_transformers_generates(
    pair_of, expected, decode, name, length
):
    wanted = expected(name, length)
    found = differences(
        pair_of(name), prompt(length), wanted, decode, all_variants=True
    )
    assert found == []


# -- more rows in the one or in the other ----------------------------------------------
FAMILIES = (
    "LlamaConfig",
    "Qwen2Config",
    "Qwen3Config",
    "MistralConfig",
    "Gemma3TextConfig",
    "GPT2Config",
    "Phi3Config",
)

# The families for which every change tries both; it tries one of the other families'.
BOTH_WAYS = ("LlamaConfig", "Gemma3TextConfig")
WIDER_OF = {
    "Qwen2Config": "target",
    "Qwen3Config": "draft",
    "MistralConfig": "target",
    "GPT2Config": "draft",
    "Phi3Config": "target",
}


def each_family_and_wider_model() -> Iterator[Any]:
    """All pairs of the two, those marked that are left to the night."""
    for wider in ROLES:
        for name in FAMILIES:
            is_brief = name in BOTH_WAYS or wider == WIDER_OF[name]
            marks = [] if is_brief else [pytest.mark.thorough]
            yield pytest.param(name, wider, marks=marks)


@pytest.fixture(scope="module")
def widths_of(tmp_path_factory):
    """widths_of(architecture): two checkpoints, of which one has added tokens."""

    @cache
    def widths_of(name: str) -> Widths:
        return save_widths(name, tmp_path_factory.mktemp(f"{name}-widths"))

    return widths_of


@pytest.mark.parametrize("name, wider", list(each_family_and_wider_model()))
def test_every_method_writes_it_whichever_of_the_two_models_has_added_tokens(
    widths_of, decode, name, wider
):
    """Windows are of 8 tokens, where there are any: a tree is larger than one."""
    few, many = widths_of(name)
    if wider == "target":
        pair, tokens = speclib.pair(target=many, draft=few), MANY_PROMPT
    else:
        pair, tokens = speclib.pair(target=few, draft=many), FEW_PROMPT
    network = transformers.AutoModelForCausalLM.from_pretrained(
        pair.target.model, dtype=torch.float32
    )
    wanted = generate(network, tokens)
    assert is_varied(wanted)
    assert wanted[-1] in factory.end_tokens(pair)
    assert has_both(wanted) == (wider == "target")
    assert differences(pair, tokens, wanted, decode) == []


@pytest.mark.parametrize("name", ["Gemma3TextConfig", "MistralConfig"])
def test_real_processes_and_peers_end_at_the_first_of_several_end_tokens(
    pair_of, expected, name
):
    """Peers are transformers' own decoding, in a process of their own."""
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
