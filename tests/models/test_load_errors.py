"""A model that cannot be loaded is told by its own name, and with what helps.

Paths that lead nowhere, files that are not what they are called, weights in a form that
is not read. What is expected here is what a user has to know, in words.
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
    """A checkpoint that is whole, with a blank and other letters in its path."""
    path = tmp_path / "ein Modell \N{LATIN SMALL LETTER U WITH DIAERESIS}"
    network().save_pretrained(path)
    save_tokenizer(path, numbered_words())
    return path


def error_of(model: object) -> str:
    """What ``decode`` says of a pair with this target."""
    with pytest.raises(SpeclibError) as caught:
        pair = speclib.pair(target=model, draft=model, latency="pearl/llama2-7-70")
        speclib.decode("w1", pair=pair, world="virtual", method="autoregressive")
    says = str(caught.value)
    assert "\n" not in says
    assert "Repo id" not in says
    return says


def change_config(folder: Path, **keys: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


# -- paths -----------------------------------------------------------------------------
def test_a_folder_that_does_not_exist_is_said_not_to(folder):
    missing = folder.with_name("ein Model")
    says = error_of(str(missing))
    assert f"there is no folder {missing}. Did you mean {folder.name!r}?" in says


@pytest.mark.parametrize("model", ["./models/target", "data/of/three", "C:\\llama"])
def test_a_relative_path_that_leads_nowhere_says_where_it_was_looked_for(
    tmp_path, monkeypatch, model
):
    monkeypatch.chdir(tmp_path)
    assert f"there is no folder {tmp_path / model}" in error_of(model)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_in_place_of_a_folder_says_what_to_give(folder, name):
    says = error_of(str(folder / name))
    assert f"{folder / name} is a file: give the folder of a transformers" in says
    assert 'whose name ends in ".gguf"' in says


def test_a_path_and_the_users_folder_are_taken_everywhere(folder, monkeypatch):
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


def test_a_relative_path_object_is_a_path_and_no_hub_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    says = error_of(Path("models/llama"))
    assert f"there is no folder {tmp_path / 'models' / 'llama'}" in says


def test_a_name_that_no_path_can_have_is_refused_in_a_line():
    assert "/a\\x00b" in error_of("/a\0b")


def test_a_folder_without_a_configuration_is_no_checkpoint(tmp_path):
    (tmp_path / "adapter_config.json").write_text("{}")
    says = error_of(str(tmp_path))
    assert f"in {tmp_path}: there is no config.json" in says
    assert "an adapter must first be merged" in says


# -- weights in a form that is not read ------------------------------------------------
FP8 = {"quant_method": "compressed-tensors", "format": "float-quantized"}
QUANTISED = [
    ({"quant_method": "gptq", "bits": 4}, "GPTQ"),
    ({"quant_method": "awq", "bits": 4, "version": "gemm"}, "AWQ"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes"),
    (FP8 | {"config_groups": {}}, "compressed-tensors, float-quantized"),
]
LIBRARIES = ("optimum", "gptqmodel", "bitsandbytes", "compressed_tensors")


@pytest.mark.parametrize("settings, name", QUANTISED, ids=[n for _, n in QUANTISED])
def test_quantised_weights_are_refused_by_their_quantisation(folder, settings, name):
    if any(speclib.errors.is_installed(library) for library in LIBRARIES):
        pytest.skip("a library is installed that reads them")
    change_config(folder, quantization_config=settings)
    says = error_of(str(folder))
    assert "its weights are quantised" in says
    assert "Give the checkpoint that it was made of" in says
    assert "damaged" not in says


def replace_by_pointer(name: str) -> Callable[[Path], str]:
    def replace(folder: Path) -> str:
        (folder / name).write_text(POINTER)
        return name

    return replace


def replace_shard(folder: Path) -> str:
    (folder / "model.safetensors").unlink()
    shard = "model-00001-of-00001.safetensors"
    (folder / shard).write_text(POINTER)
    index = {"metadata": {}, "weight_map": {"lm_head.weight": shard}}
    (folder / checkpoint.INDEX).write_text(json.dumps(index))
    return shard


@pytest.mark.parametrize(
    "replace",
    [
        replace_by_pointer("model.safetensors"),
        replace_by_pointer("tokenizer.json"),
        replace_by_pointer("config.json"),
        replace_shard,
    ],
)
def test_a_git_lfs_pointer_is_refused_with_its_folder(folder, replace):
    name = replace(folder)
    says = error_of(str(folder))
    assert str(folder) in says
    assert "Copy or download" in says or "copy or download" in says
    if name.endswith(".safetensors"):
        assert f"{folder / name}, of " in says
        assert "or a Git LFS pointer" in says


def test_ranks_that_read_slices_call_a_git_lfs_pointer_so(folder):
    replace_by_pointer("model.safetensors")(folder)
    with pytest.raises(BadValue, match="or a Git LFS pointer"):
        found(folder).stored_weights()


# -- code, architectures, machines -----------------------------------------------------
def test_a_model_with_code_of_its_own_is_said_not_to_be_run(folder):
    code = {"AutoConfig": "configuration_x.XConfig"}
    change_config(folder, auto_map=code, model_type="x")
    says = error_of(str(folder))
    assert "Python code that comes with it, and speclib runs no" in says
    assert "trust_remote_code" not in says
    assert "https://hf.co//" not in says


def test_a_tokenizer_with_code_of_its_own_is_said_not_to_be_run(folder):
    settings = {"auto_map": {"AutoTokenizer": ["tokenization_x.X", None]}}
    settings["tokenizer_class"] = "X"
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    assert "Python code that comes with it" in error_of(str(folder))


def test_a_text_part_that_the_architecture_does_not_have_is_refused(folder):
    change_config(folder, text_config={"a": 1})
    assert "its text_config is none of this architecture" in error_of(str(folder))


def test_an_architecture_that_transformers_does_not_know_is_named(folder):
    change_config(folder, model_type="futuremodel9")
    says = error_of(str(folder))
    assert "futuremodel9" in says
    assert "cannot load the configuration" in says


# -- files that are not what they are called -------------------------------------------
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"[1, 2]", b"", b"<html>Log in</html>", b"\xff{"])
def test_a_file_that_holds_no_json_object_is_refused(folder, name, content):
    (folder / name).write_bytes(content)
    what = "tokenizer" if "tokenizer" in name else "configuration"
    assert f"cannot load the {what} of model" in error_of(str(folder))


def test_a_value_that_transformers_refuses_names_its_file(folder):
    change_config(folder, num_hidden_layers="many")
    says = error_of(str(folder))
    assert "'num_hidden_layers'" in says


@pytest.mark.parametrize("size", [0, 7, 3000])
def test_weights_that_are_cut_off_are_named_with_their_size(folder, size):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    assert f"{path}, of {size:,} bytes, is cut off or damaged" in error_of(str(folder))


@pytest.mark.parametrize("text", ["[]", '{"weight_map": "x"}', '{"weight_map": null}'])
def test_an_index_of_no_weights_is_refused_in_words(folder, text):
    (folder / "model.safetensors").unlink()
    (folder / checkpoint.INDEX).write_text(text)
    says = error_of(str(folder))
    assert f"{checkpoint.INDEX} is no index of a checkpoint (" in says


# -- the end of a text -----------------------------------------------------------------
@pytest.mark.parametrize(
    "stated", ["</s>", ["</s>"], [2, "x"], 2.5, -1, True, [[2]], {"a": 1}]
)
def test_an_end_that_is_no_token_names_its_file_and_its_value(folder, stated):
    text = json.dumps({"eos_token_id": stated})
    (folder / "generation_config.json").write_text(text)
    with pytest.raises(BadValue) as caught:
        _ = found(folder).end_tokens
    says = str(caught.value)
    assert f"model {str(folder)!r} has eos_token_id = {stated!r} in its files" in says


def test_an_empty_list_of_ends_means_that_nothing_ends_a_text(folder):
    (folder / "generation_config.json").write_text('{"eos_token_id": []}')
    assert found(folder).end_tokens == frozenset()


def test_a_generation_config_that_is_a_list_is_named(folder):
    path = folder / "generation_config.json"
    path.write_text("[]")
    assert "cannot load the generation configuration" in error_of(str(folder))


# -- embedded models -------------------------------------------------------------------
def test_a_mistyped_embedded_model_suggests_the_nearest():
    with pytest.raises(BadValue, match="Did you mean 'zoo/draft-good'"):
        zoo.locate("zoo/draft-god")
