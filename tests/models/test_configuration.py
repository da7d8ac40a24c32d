"""Configurations decide which models can run, and which tokens end their texts.

These folders have no weights, so a refusal must come before weights are read.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers.checkpoints import found, numbered_words, save_tokenizer  # noqa: E402
from helpers.snapshots import ARCHITECTURES, VOCAB, random_network  # noqa: E402

import speclib  # noqa: E402
from speclib.data.pairs import Pair  # noqa: E402
from speclib.errors import BadValue  # noqa: E402
from speclib.models.configuration import attention_windows  # noqa: E402
from speclib.models.loading import Rank  # noqa: E402
from speclib.models.open_pair import open_pair  # noqa: E402

LLAMA = ARCHITECTURES["LlamaConfig"]
FIRST_OF_TWO = Rank(0, 2, patience=5.0)


def save_config(folder: Path, name: str, **settings) -> str:
    """Saves a tokenizer and a configuration, without weights; returns the folder."""
    getattr(transformers, name)(**settings).save_pretrained(folder)
    save_tokenizer(folder, numbered_words(VOCAB))
    return str(folder)


def write_json(folder: Path, name: str, **keys) -> None:
    (folder / name).write_text(json.dumps(keys))


def pair_of(model: str) -> Pair:
    return speclib.pair(target=model, draft=model, latency="pearl/llama2-7-70")


# -- models that no method can run -----------------------------------------------------
GEMMA3N = {"num_hidden_layers": 4, "num_kv_shared_layers": 2}
REFUSED = [
    ("MambaConfig", {}, "mamba.* 'linear_attention', whose cache cannot"),
    ("Llama4TextConfig", {}, "llama4_text.* 'chunked_attention', whose cache cannot"),
    ("T5Config", {}, "t5.* reads a text with one network and writes with another"),
    ("BloomConfig", {}, "bloom.* has no positions"),
    ("FalconConfig", {"alibi": True}, "falcon.* has no positions"),
    ("GPTNeoConfig", {}, "gpt_neo.* local layers count a window along the cache"),
    ("Gemma3nTextConfig", GEMMA3N, "gemma3n_text.* read the cache of another layer"),
    ("Qwen2VLConfig", {}, "qwen2_vl.* no text-only network for it"),
]


@pytest.mark.parametrize(
    "name, settings, reason", REFUSED, ids=[name for name, _, _ in REFUSED]
)
def test_a_model_that_no_method_can_run_is_refused_by_name(
    tmp_path, name, settings, reason
):
    model = save_config(tmp_path, name, **settings)
    with pytest.raises(BadValue, match=reason) as caught:
        speclib.decode("w1 w2", pair=pair_of(model), world="processes", gamma=2)
    assert f"model {model!r}" in str(caught.value)


def test_a_model_without_position_ids_is_refused_before_reading_weights(tmp_path):
    model = save_config(tmp_path, "RwkvConfig", vocab_size=VOCAB)
    with pytest.raises(BadValue, match="rwkv.* forward method lacks .*position_ids"):
        open_pair(pair_of(model)).build("target")


def test_a_network_that_ranks_cannot_split_is_refused_before_reading_weights(tmp_path):
    model = save_config(tmp_path, "GPTNeoXConfig", **ARCHITECTURES["GPTNeoXConfig"])
    pair = speclib.pair(target={"model": model, "spread": "tensors"}, draft=model)
    with pytest.raises(BadValue, match="GPTNeoX.* between which heads") as caught:
        open_pair(pair).build("target", rank=FIRST_OF_TWO)
    assert f"model {model!r}" in str(caught.value)


# -- the text part of a multimodal model -----------------------------------------------
VISION = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 4,  # as in the text part
    "num_attention_heads": 2,
    "image_size": 8,
    "patch_size": 4,
}


def multimodal(folder: Path, **text_settings) -> str:
    text = ARCHITECTURES["Gemma3TextConfig"] | text_settings
    return save_config(
        folder,
        "Gemma3Config",
        text_config=transformers.Gemma3TextConfig(**text).to_dict(),
        vision_config=VISION,
        mm_tokens_per_image=4,
    )


def test_a_multimodal_model_has_its_text_parts_limits(tmp_path):
    model = multimodal(tmp_path, eos_token_id=[7, 9])
    assert found(model).end_tokens == {7, 9}
    assert (found(model).vocab, found(model).context) == (VOCAB, 1024)
    windows = attention_windows(found(model).text_config)
    assert windows == {"sliding_attention": 60, "full_attention": None}


@pytest.mark.slow
def test_a_multimodal_model_writes_text_as_transformers_does(tmp_path):
    model = multimodal(tmp_path)
    config = transformers.AutoConfig.from_pretrained(model)
    torch.manual_seed(1)
    network = transformers.Gemma3ForConditionalGeneration(config).eval()
    for weight in network.requires_grad_(False).parameters():
        weight.normal_(0, 0.2)
    network.save_pretrained(model)

    words = [f"w{(number * 7) % VOCAB}" for number in range(50)]
    result = speclib.decode(
        " ".join(words),
        pair=pair_of(model),
        world="processes",
        method="tree",
        gamma=3,
        max_new_tokens=24,
    )
    ids = torch.tensor([[int(word[1:]) for word in words]])
    expected = network.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=24,
        do_sample=False,
        pad_token_id=0,
    )
    assert list(result.tokens) == expected[0, 50:].tolist()


# -- the context length ----------------------------------------------------------------
def test_the_context_ends_where_longrope_switches_factors(tmp_path):
    """Beyond 128 tokens, transformers drops its cache and rereads the whole text."""
    model = save_config(
        tmp_path,
        "Phi3Config",
        **ARCHITECTURES["Phi3Config"],
        original_max_position_embeddings=128,
        rope_parameters={
            "rope_type": "longrope",
            "rope_theta": 10_000.0,
            "short_factor": [1.0] * 4,
            "long_factor": [2.0] * 4,
        },
    )
    assert found(model).context == 128


# -- end tokens ------------------------------------------------------------------------
@pytest.mark.parametrize(
    "generation, model_config, expected",
    [
        ({"eos_token_id": [3, 5]}, {"eos_token_id": 4}, {3, 5}),
        ({"eos_token_id": 6}, {"eos_token_id": [4]}, {6}),
        (None, {"eos_token_id": [4, 8]}, {4, 8}),
        (None, {"eos_token_id": 4}, {4}),
    ],
)
def test_end_tokens_are_those_that_transformers_generate_uses(
    tmp_path, generation, model_config, expected
):
    """For the same checkpoint, transformers finds the same end tokens."""
    network = random_network("LlamaConfig")
    network.save_pretrained(tmp_path)
    save_tokenizer(tmp_path, numbered_words(VOCAB))
    config = json.loads((tmp_path / "config.json").read_text())
    write_json(tmp_path, "config.json", **config | model_config)
    (tmp_path / "generation_config.json").unlink(missing_ok=True)
    if generation is not None:
        write_json(tmp_path, "generation_config.json", **generation)

    assert found(tmp_path).end_tokens == expected
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    theirs = loaded.generation_config.eos_token_id
    assert {theirs} if isinstance(theirs, int) else set(theirs) == expected


@pytest.mark.parametrize("generation", [None, {}, {"eos_token_id": None}])
def test_without_end_tokens_in_the_configuration_the_tokenizers_is_used(
    tmp_path, generation
):
    model = save_config(tmp_path, "LlamaConfig", **LLAMA)
    if generation is not None:
        write_json(tmp_path, "generation_config.json", **generation)
    assert found(model).end_tokens == frozenset()

    other = tmp_path / "with an end token"
    save_config(other, "LlamaConfig", **LLAMA)
    tokenizer = transformers.AutoTokenizer.from_pretrained(other)
    tokenizer.eos_token = "w17"
    tokenizer.save_pretrained(other)
    assert found(other).end_tokens == {17}
