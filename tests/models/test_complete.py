"""A checkpoint has all weights of its network and none but those, or it is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors_torch = pytest.importorskip("safetensors.torch")

from helpers.checkpoints import (  # noqa: E402
    network,
    numbered_words,
    save_tokenizer,
)
from helpers.snapshots import random_network  # noqa: E402

import speclib  # noqa: E402
from speclib.data.pairs import ModelSpec  # noqa: E402
from speclib.errors import BadValue  # noqa: E402
from speclib.models import hf  # noqa: E402
from speclib.models.checkpoint import find  # noqa: E402
from speclib.models.weights import open_weights  # noqa: E402

LAYERS = 4
LARGER = (6, 64, 8, 96)
UP = "model.layers.1.mlp.up_proj.weight"
LATENCY = "pearl/llama2-7-70"


@pytest.fixture
def folder(tmp_path) -> Path:
    """A checkpoint that is whole."""
    network("Qwen3", layers=LAYERS).save_pretrained(tmp_path)
    save_tokenizer(tmp_path, numbered_words())
    return tmp_path


def change_weights(folder: Path, change: Callable[[dict], object]) -> None:
    """Has ``change`` change the weights in ``folder``, by their names."""
    path = folder / "model.safetensors"
    weights = safetensors_torch.load_file(path)
    change(weights)
    safetensors_torch.save_file(weights, path, metadata={"format": "pt"})


def change_json(folder: Path, name: str, **changes) -> None:
    """Changes keys of a file of ``folder``."""
    path = folder / name
    keys = json.loads(path.read_text())
    path.write_text(json.dumps(keys | changes))


# -- weights ---------------------------------------------------------------------------
def lose_a_weight(folder: Path) -> None:
    change_weights(folder, lambda weights: weights.pop(UP))


def lose_the_head(folder: Path) -> None:
    change_weights(folder, lambda weights: weights.pop("lm_head.weight"))


def gain_a_weight(folder: Path) -> None:
    odd = {"model.layers.1.mlp.odd.weight": torch.zeros(3)}
    change_weights(folder, lambda weights: weights.update(odd))


def get_another_shape(folder: Path) -> None:
    change_weights(folder, lambda weights: weights.update({UP: torch.zeros(5, 32)}))


def say_two_of_four_layers(folder: Path) -> None:
    change_json(
        folder,
        "config.json",
        num_hidden_layers=2,
        layer_types=["full_attention"] * 2,
    )


DAMAGES = [
    (lose_a_weight, rf"of the Qwen3ForCausalLM that .* 1 missing \({UP}\)"),
    (lose_the_head, r"of the Qwen3ForCausalLM that .* 1 missing \(lm_head.weight\)"),
    (gain_a_weight, r"1 not used \(model.layers.1.mlp.odd.weight\)"),
    (get_another_shape, rf"1 of another shape \('{UP}' is \[5, 32\], not \[48, 32"),
    (
        say_two_of_four_layers,
        r"22 not used \(model.layers.2.inp",
    ),
]
WAYS = {
    "whole": lambda spec: hf.network(find(spec), "float32", ()),
    "a rank's": lambda spec: open_weights(find(spec), "float32", torch.device("cpu")),
    "dilated": lambda spec: hf.network(find(larger(spec)), "float32", ()),
    "a rank's, dilated": lambda spec: open_weights(
        find(larger(spec)), "float32", torch.device("cpu")
    ),
}


def larger(spec: ModelSpec) -> ModelSpec:
    return spec.model_copy(update={"shape": LARGER})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "damage, says", DAMAGES, ids=[damage.__name__ for damage, _ in DAMAGES]
)
def test_weights_that_are_not_those_of_the_configuration_are_refused_by_name(
    folder, way, damage, says
):
    spec = ModelSpec(model=str(folder))
    WAYS[way](spec)  # as it was
    damage(folder)
    with pytest.raises(BadValue, match=says) as caught:
        WAYS[way](spec)
    message = str(caught.value)
    assert "\n" not in message
    assert f"model {str(folder)!r}" in message
    assert "Copy or download the checkpoint again, or give another" in message


def test_a_user_is_told_so_by_decode(folder):
    lose_the_head(folder)
    model = str(folder)
    pair = speclib.pair(target=model, draft=model, latency=LATENCY)
    with pytest.raises(BadValue, match="lm_head.weight"):
        speclib.decode("w1", pair=pair, world="virtual", method="autoregressive")


def test_an_expert_that_is_missing_is_refused(tmp_path):
    """transformers makes one weight of all experts', so that none has this name."""
    random_network("MixtralConfig").save_pretrained(tmp_path)
    names = []
    with safetensors_torch.safe_open(tmp_path / "model.safetensors", "pt") as file:
        names = [name for name in file.keys() if "experts" in name]  # noqa: SIM118
    assert len(names) > LAYERS
    change_weights(tmp_path, lambda weights: weights.pop(names[0]))
    with pytest.raises(BadValue, match="weights of model") as caught:
        hf.network(find(ModelSpec(model=str(tmp_path))), "float32", ())
    assert "\n" not in str(caught.value)
    assert "report" not in str(caught.value)


def test_buffers_of_old_checkpoints_are_no_weights(folder):
    buffers = {
        "model.rotary_emb.inv_freq": torch.ones(4),
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4),
        "model.layers.0.self_attn.masked_bias": torch.ones(1),
    }
    change_weights(folder, lambda weights: weights.update(buffers))
    for load in WAYS.values():
        load(ModelSpec(model=str(folder)))


@pytest.mark.parametrize("stored_twice", [False, True])
def test_tied_weights_may_be_stored_once_or_twice(tmp_path, stored_twice):
    network(tie_word_embeddings=True).save_pretrained(tmp_path)
    if stored_twice:

        def store_twice(weights):
            weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone()

        change_weights(tmp_path, store_twice)
    for load in (WAYS["whole"], WAYS["a rank's"]):
        load(ModelSpec(model=str(tmp_path)))


def test_ranks_refuse_tied_weights_that_differ(tmp_path):
    """transformers leaves them untied, and so does a model in one piece."""
    network(tie_word_embeddings=True).save_pretrained(tmp_path)

    def differ(weights):
        weights["lm_head.weight"] = 2 * weights["model.embed_tokens.weight"]

    change_weights(tmp_path, differ)
    spec = ModelSpec(model=str(tmp_path))
    with pytest.raises(BadValue, match="ties 'lm_head.weight' to .*different values"):
        WAYS["a rank's"](spec)
    whole = WAYS["whole"](spec)
    assert whole.lm_head.weight is not whole.model.embed_tokens.weight


# -- other files -----------------------------------------------------------------------
def remove(*names: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return damage


def keep_only_bin(folder: Path) -> None:
    weights = safetensors_torch.load_file(folder / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def cut_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")


@pytest.mark.parametrize(
    "damage, says",
    [
        (
            remove("tokenizer.json", "tokenizer_config.json"),
            "has no tokenizer in .*: copy tokenizer.json and tokenizer_config.json",
        ),
        (remove("tokenizer.json"), "has no tokenizer in .*: copy tokenizer.json"),
        (cut_tokenizer, "cannot load the tokenizer of model "),
        (remove("config.json"), "no config.json, so it is no transformers"),
        (
            remove("model.safetensors"),
            "lacks 1 of its files of weights in .*: model.safetens",
        ),
        (
            keep_only_bin,
            "weights in other formats than safetensors, such as .bin, must",
        ),
    ],
)
def test_a_file_that_is_missing_or_damaged_is_named_in_one_line(folder, damage, says):
    damage(folder)
    model = str(folder)
    pair = speclib.pair(target=model, draft=model, latency=LATENCY)
    with pytest.raises(BadValue, match=says) as caught:
        speclib.decode("w1", pair=pair, world="virtual", method="autoregressive")
    assert "\n" not in str(caught.value)
    assert model in str(caught.value)
