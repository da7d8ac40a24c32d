"""A model that cannot be loaded is told by its own name, and with what helps.

Paths that lead nowhere, files that are not what they are called, weights in a form that
is not read. What is expected here is what a user has to know, in words.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors_torch = pytest.importorskip("safetensors.torch")

from helpers.checkpoints import network, numbered_words, save_tokenizer  # noqa: E402

import speclib  # noqa: E402
from speclib.data.pairs import ModelSpec  # noqa: E402
from speclib.errors import BadValue, SpeclibError  # noqa: E402
from speclib.models import checkpoint, configuration, vocabulary, zoo  # noqa: E402
from speclib.models.load_errors import with_reason  # noqa: E402

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
    assert f"there is no folder {missing}: {folder.parent} has no 'ein Model'" in says
    assert f"Did you mean {folder.name!r}?" in says


@pytest.mark.parametrize(
    "model, missing",
    [
        ("./models/target", "models"),
        ("../models", "models"),
        ("data/of/three", "data"),
        ("models/target/", "models"),
        ("C:\\models\\llama", "C:\\\\models\\\\llama"),
    ],
)
def test_a_relative_path_that_leads_nowhere_says_where_it_was_looked_for(
    tmp_path, monkeypatch, model, missing
):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    at = tmp_path if model.startswith("..") else here
    assert f": {at} has no '{missing}' in it" in error_of(model)


def test_a_name_that_may_be_the_hubs_says_that_it_is_no_folder_either(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    from huggingface_hub.errors import OfflineModeIsEnabled

    says = str(with_reason("models/llama", "weights", OfflineModeIsEnabled()))
    assert f"{tmp_path} has no folder of this name" in says
    assert "HF_HUB_OFFLINE" in says


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_in_place_of_a_folder_names_the_folder(folder, name):
    says = error_of(str(folder / name))
    assert (
        f"it is a file: give the folder of a transformers checkpoint, {folder}" in says
    )


def test_a_path_and_the_users_folder_are_taken_everywhere(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    own = f"~/{folder.name}"
    by_path = speclib.pair(target=folder, draft={"model": folder})
    by_home = speclib.pair(target=own, draft={"model": Path(own)}, datastore=own)
    for pair in (by_path, by_home):
        assert pair.target.model == pair.draft.model == str(folder)
    assert by_home.datastore == str(folder)
    assert ModelSpec(model="~/a.gguf").model == str(folder.parent / "a.gguf")
    assert vocabulary.limits(by_home.draft.model).vocab == 61
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


def test_a_path_that_cannot_be_followed_says_why(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    assert "(Too many levels of symbolic links)" in error_of(str(loop))
    assert "(File name too long)" in error_of("/" + "a" * 5000)
    assert "no path (embedded null byte)" in error_of("/a\0b")


ASK_AS_ANOTHER_USER = """
import os, sys
from speclib.models.load_errors import path_problem
if os.getuid() == 0:
    os.setuid(65534)  # root may read all
for path in sys.argv[1:]:
    print(path_problem(path))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="becomes another user")
def test_a_folder_that_this_user_may_not_read_is_said_to_be_so():
    with TemporaryDirectory() as around:  # tmp_path is hidden from other users
        os.chmod(around, 0o755)
        locked = Path(around) / "model"
        locked.mkdir(0o000)
        asked = [sys.executable, "-c", ASK_AS_ANOTHER_USER, locked, locked / "part"]
        done = subprocess.run(asked, capture_output=True, text=True)
    of_folder, of_part = done.stdout.splitlines()
    assert "this user may not read that folder" in of_folder
    assert "(Permission denied)" in of_part


@pytest.mark.parametrize(
    "inside, says",
    [
        ({}, "Give a folder of one, zoo/<name> or a hub id"),
        ({"a/config.json": "{}"}, "Give one that is in it, such as {folder}/a"),
        (
            {"snapshots/1f/config.json": "{}"},
            "Give one that is in it, such as {folder}/snapshots/1f",
        ),
        ({"a.gguf": "GGUF"}, "A draft may be the file itself, {folder}/a.gguf"),
        (
            {"adapter_config.json": '{"base_model_name_or_path": "meta/llama"}'},
            "it is an adapter, by its adapter_config.json. Merge it with its base, "
            "'meta/llama',",
        ),
    ],
)
def test_a_folder_without_a_configuration_is_told_what_it_seems_to_be(
    tmp_path, inside, says
):
    for name, text in inside.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    said = error_of(str(tmp_path))
    assert f"there is no config.json in {tmp_path}" in said
    assert says.format(folder=tmp_path) in said


def test_a_folder_that_is_called_as_a_hub_id_is_told_to_come_first(
    tmp_path, monkeypatch
):
    (tmp_path / "gpt2").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "A folder comes before a model of this id on the hub" in error_of("gpt2")


@pytest.mark.parametrize(
    "model, says",
    [
        ("https://huggingface.co/gpt2", "this is an address"),
        ("file:///models/llama", "this is an address"),
        ("gpt2 ", "begins or ends with a blank"),
    ],
)
def test_what_is_nearly_a_hub_id_says_what_is_wrong_with_it(model, says):
    assert says in error_of(model)


def test_a_gguf_whose_name_ends_in_another_way_says_how_it_should(tmp_path):
    path = tmp_path / "a.GGUF"
    path.write_bytes(b"GGUF")
    assert 'let its name end in ".gguf"' in error_of(str(path))


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
    assert f"its weights are quantised by {name} (quantization_config in " in says
    assert "Give the checkpoint that it was made of" in says
    assert "damaged" not in says


def test_quantised_weights_that_transformers_takes_for_plain_ones_are_told_apart(
    folder,
):
    """It passes over a method that it does not know; the scales are left over."""
    path = folder / "model.safetensors"
    weights = safetensors_torch.load_file(path)
    name = "model.layers.0.mlp.up_proj"
    weights[f"{name}.weight_scale"] = torch.ones(1)
    safetensors_torch.save_file(weights, path, metadata={"format": "pt"})
    change_config(folder, quantization_config={"quant_method": "new-method"})
    says = error_of(str(folder))
    assert f"'{name}.weight_scale'" in says
    assert "They are quantised by new-method" in says


def test_a_quantisation_that_is_no_object_is_shown(folder):
    change_config(folder, quantization_config="gptq")
    says = error_of(str(folder))
    assert "quantization_config in" in says
    assert "is 'gptq', not a JSON object" in says


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
def test_a_git_lfs_pointer_is_called_so(folder, replace):
    name = replace(folder)
    says = error_of(str(folder))
    assert f"{folder / name} is a Git LFS pointer, not the file itself" in says
    assert "git lfs pull" in says
    assert "damaged" not in says


def test_ranks_that_read_slices_call_a_git_lfs_pointer_so(folder):
    replace_by_pointer("model.safetensors")(folder)
    with pytest.raises(BadValue, match="is a Git LFS pointer"):
        checkpoint.stored_weights(str(folder))


# -- code, architectures, machines -----------------------------------------------------
def test_a_model_with_code_of_its_own_is_said_not_to_be_run(folder):
    code = {"AutoConfig": "configuration_x.XConfig"}
    change_config(folder, auto_map=code, model_type="x")
    says = error_of(str(folder))
    assert "Python code that comes with it (auto_map in its config.json)" in says
    assert "trust_remote_code" not in says
    assert "https://hf.co//" not in says


def test_a_tokenizer_with_code_of_its_own_is_said_not_to_be_run(folder):
    settings = {"auto_map": {"AutoTokenizer": ["tokenization_x.X", None]}}
    settings["tokenizer_class"] = "X"
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    assert "(auto_map in its tokenizer_config.json)" in error_of(str(folder))


def test_a_pointer_that_is_not_read_is_not_to_blame(folder):
    (folder / "pytorch_model.bin").write_text(POINTER)
    (folder / "config.json").write_text("[]")
    assert f"{folder / 'config.json'} holds []" in error_of(str(folder))


def test_a_tokenizer_in_a_form_that_other_libraries_read_says_so(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.model").write_bytes(b"no tokenizer")
    says = error_of(str(folder))
    assert f"there is no tokenizer.json in {folder}" in says
    assert "damaged" not in says


def test_a_text_part_that_the_architecture_does_not_have_is_refused(folder):
    change_config(folder, text_config={"a": 1})
    assert "its text_config is none of this architecture" in error_of(str(folder))


def test_an_architecture_that_transformers_does_not_know_is_named(folder):
    change_config(folder, model_type="futuremodel9")
    says = error_of(str(folder))
    version = transformers.__version__
    assert f"transformers {version} does not know the architecture 'futurem" in says
    assert "damaged" not in says


@pytest.mark.parametrize(
    "error, says",
    [
        (MemoryError(), "too little memory for it"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried"), "too little memory"),
        (ImportError("You need to have sentencepiece"), "a library is missing. You"),
        (PermissionError(13, "Permission denied", "/a/b"), "/a/b cannot be read (Perm"),
    ],
)
def test_what_the_machine_lacks_is_no_fault_of_the_files(folder, error, says):
    said = str(with_reason(str(folder), "weights", error))
    assert says in said
    assert "damaged" not in said
    assert "download" not in said


# -- files that are not what they are called -------------------------------------------
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
@pytest.mark.parametrize(
    "content, says",
    [
        (b"[1, 2]", "holds [1, 2], not a JSON object"),
        (b"null", "holds None, not a JSON object"),
        (b"", "is no JSON (Expecting value"),
        (b"[" * 100_000, "is no JSON (maximum recursion"),
        (b"<html>Log in</html>", "is no JSON (Expecting value"),
        (b"\xff\xfe{\x00}\x00", "is no JSON ('utf-8' codec can't decode"),
    ],
)
def test_a_file_that_holds_no_json_object_is_named(folder, name, content, says):
    (folder / name).write_bytes(content)
    assert f"{folder / name} {says}" in error_of(str(folder))


def test_a_value_that_transformers_refuses_names_its_file(folder):
    change_config(folder, num_hidden_layers="many")
    says = error_of(str(folder))
    assert "'num_hidden_layers'" in says
    assert f"mend config.json in {folder}" in says


def test_a_configuration_without_its_kind_says_so(folder):
    (folder / "config.json").write_text("{}")
    assert f"{folder / 'config.json'} has no model_type" in error_of(str(folder))


@pytest.mark.parametrize("size", [0, 7, 3000])
def test_weights_that_are_cut_off_are_named_with_their_size(folder, size):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    assert f"{path}, of {size:,} bytes, is cut off or damaged" in error_of(str(folder))


def test_weights_that_are_a_link_into_nothing_are_said_to_be(folder):
    path = folder / "model.safetensors"
    path.unlink()
    path.symlink_to("../blobs/1f")
    assert f"{path} is a link to ../blobs/1f, where no file is" in error_of(str(folder))


@pytest.mark.parametrize(
    "text", ["[]", '{"weight_map": "x"}', '{"weight_map": {}}', '{"weight_map": null}']
)
def test_an_index_of_no_weights_is_refused_in_words(folder, text):
    (folder / "model.safetensors").unlink()
    (folder / checkpoint.INDEX).write_text(text)
    says = error_of(str(folder))
    assert (
        f"{checkpoint.INDEX} is no index of a checkpoint (it has no weight_map" in says
    )


def test_an_index_whose_files_are_no_names_is_refused_in_words(folder):
    (folder / "model.safetensors").unlink()
    (folder / checkpoint.INDEX).write_text('{"weight_map": {"a": 3}}')
    assert "its weight_map has a name that is no text" in error_of(str(folder))


# -- the end of a text -----------------------------------------------------------------
@pytest.mark.parametrize(
    "stated", ["</s>", ["</s>"], [2, "x"], 2.5, -1, True, [[2]], {"a": 1}]
)
def test_an_end_that_is_no_token_names_its_file_and_its_value(folder, stated):
    text = json.dumps({"eos_token_id": stated})
    (folder / "generation_config.json").write_text(text)
    with pytest.raises(BadValue) as caught:
        configuration.end_tokens(str(folder))
    says = str(caught.value)
    assert (
        f"generation_config.json of model {str(folder)!r} has eos_token_id = " in says
    )
    assert repr(stated) in says


def test_an_empty_list_of_ends_means_that_nothing_ends_a_text(folder):
    (folder / "generation_config.json").write_text('{"eos_token_id": []}')
    assert configuration.end_tokens(str(folder)) == frozenset()


def test_a_generation_config_that_is_a_list_is_named(folder):
    path = folder / "generation_config.json"
    path.write_text("[]")
    assert f"{path} holds [], not a JSON object" in error_of(str(folder))


# -- embedded models -------------------------------------------------------------------
def test_a_mistyped_embedded_model_suggests_the_nearest():
    with pytest.raises(BadValue, match="Did you mean 'zoo/draft-good'"):
        zoo.locate("zoo/draft-god")
