"""If a model cannot be loaded, the error names it, the cause and a remedy.

Causes are wrong paths, damaged or mislabelled files, and checkpoints with custom code.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors_torch = pytest.importorskip("safetensors.torch")

from helpers.checkpoints import found, network, numbered_words, save_tokenizer  # noqa: E402

import speclib  # noqa: E402
from speclib.data.pairs import ModelSpec  # noqa: E402
from speclib.errors import BadValue, SpeclibError  # noqa: E402
from speclib.models import checkpoint, zoo  # noqa: E402

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A complete checkpoint with a space and non-ASCII letters in its path."""
    path = tmp_path / "ein Modell \N{LATIN SMALL LETTER U WITH DIAERESIS}"
    network().save_pretrained(path)
    save_tokenizer(path, numbered_words())
    return path


def error_of(model: object) -> str:
    """Returns the error message of ``decode`` for a pair with this target."""
    with pytest.raises(SpeclibError) as caught:
        pair = speclib.pair(target=model, draft=model, latency="pearl/llama2-7-70")
        speclib.decode("w1", pair=pair, world="virtual", method="autoregressive")
    says = str(caught.value)
    assert "\n" not in says
    return says


def change_config(folder: Path, **keys: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


# -- paths -----------------------------------------------------------------------------
@pytest.mark.parametrize("model", ["./models/target", Path("models/target"), "/a\0b"])
def test_the_error_for_a_wrong_path_says_where_we_looked(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    says = error_of(model)
    assert f"there is no folder {tmp_path / 'models/target'}" in says or "\0" in says


def test_paths_and_the_home_directory_work_everywhere(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    own = f"~/{folder.name}"
    by_path = speclib.pair(target=folder, draft={"model": folder})
    by_home = speclib.pair(target=own, draft={"model": Path(own)}, datastore=own)
    for pair in (by_path, by_home):
        assert pair.target.model == pair.draft.model == str(folder)
    assert by_home.datastore == str(folder)
    assert ModelSpec(model="~/a.gguf").model == str(folder.parent / "a.gguf")
    assert found(by_home.draft.model).vocab == 61
    result = speclib.decode(
        "w1 w2",
        pair=speclib.pair(target=folder, draft=folder, latency="pearl/llama2-7-70"),
        world="virtual",
        max_new_tokens=4,
    )
    assert len(result.tokens) == 4


def test_a_folder_without_a_configuration_is_no_checkpoint(tmp_path):
    (tmp_path / "adapter_config.json").write_text("{}")
    says = error_of(str(tmp_path))
    assert f"in {tmp_path}: it lacks config.json" in says
    assert "an adapter must first be merged" in says


def test_a_mistyped_embedded_model_suggests_the_nearest():
    with pytest.raises(BadValue, match="Did you mean 'zoo/draft-good'"):
        zoo.locate("zoo/draft-god")


# -- unsupported checkpoints -----------------------------------------------------------
def test_quantised_weights_are_refused_naming_the_quantisation(folder):
    if speclib.errors.is_installed("optimum"):
        pytest.skip("an installed library can read them")
    change_config(folder, quantization_config={"quant_method": "gptq", "bits": 4})
    assert "GPTQ" in error_of(str(folder))


def test_a_model_that_needs_its_own_code_is_refused(folder):
    code = {"AutoConfig": "configuration_x.XConfig"}
    change_config(folder, auto_map=code, model_type="x")
    assert "speclib runs no code from a checkpoint" in error_of(str(folder))


# -- missing or mislabelled files ------------------------------------------------------
def replace_shard(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    shard = "model-00001-of-00001.safetensors"
    (folder / shard).write_text(POINTER)
    index = {"metadata": {}, "weight_map": {"lm_head.weight": shard}}
    (folder / checkpoint.INDEX).write_text(json.dumps(index))


def lose_shard(folder: Path) -> None:
    replace_shard(folder)
    (folder / "model-00001-of-00001.safetensors").unlink()


def keep_only_bin(folder: Path) -> None:
    weights = safetensors_torch.load_file(folder / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def write(name: str, content: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).write_text(content)

    return damage


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    "damage, says",
    [
        (remove("tokenizer.json"), "has no tokenizer in {}: copy tokenizer.json"),
        (write("tokenizer.json", POINTER), "cannot load the tokenizer of model "),
        (write("config.json", "[1, 2]"), "cannot load the configuration of model "),
        (write("generation_config.json", "[]"), "cannot load the generation conf"),
        (write("model.safetensors", POINTER), "{}/model.safetensors, of 70 bytes, is"),
        (
            replace_shard,
            "{}/model-00001-of-00001.safetensors, of 70 bytes, is truncated",
        ),
        (lose_shard, "lacks 1 of its weight files in {}: model-00001-of-00001"),
        (remove("model.safetensors"), "lacks 1 of its weight files in {}: model.s"),
        (keep_only_bin, "convert weights in formats other than safetensors"),
    ],
)
def test_a_missing_or_damaged_file_is_named_in_one_line(folder, damage, says):
    damage(folder)
    message = error_of(str(folder))
    assert says.format(folder) in message
    assert str(folder) in message


def test_an_index_without_weights_is_refused_with_an_explanation(folder):
    (folder / "model.safetensors").unlink()
    (folder / checkpoint.INDEX).write_text("[]")
    says = error_of(str(folder))
    assert f"{checkpoint.INDEX} is not the index of a checkpoint (" in says


# -- end tokens ------------------------------------------------------------------------
@pytest.mark.parametrize("stated", ["</s>", -1])
def test_an_invalid_end_token_is_named_with_its_file_and_value(folder, stated):
    text = json.dumps({"eos_token_id": stated})
    (folder / "generation_config.json").write_text(text)
    with pytest.raises(BadValue) as caught:
        _ = found(folder).end_tokens
    says = str(caught.value)
    assert f"model {str(folder)!r} has eos_token_id = {stated!r} in its files" in says


def test_with_an_empty_list_of_end_tokens_no_token_ends_a_text(folder):
    (folder / "generation_config.json").write_text('{"eos_token_id": []}')
    assert found(folder).end_tokens == frozenset()
