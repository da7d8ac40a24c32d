"""GGUF files are written from checkpoints, found, described, or refused."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
for package in ("llama_cpp", "gguf"):
    pytest.importorskip(
        package, reason="the extra llamacpp is not installed: make llamacpp"
    )

from helpers.checkpoints import found  # noqa: E402
from helpers.llama_checkpoints import (  # noqa: E402
    pair_with,
    save_checkpoint,
    write_with_tokens,
)

import speclib  # noqa: E402
from speclib import SpeclibError  # noqa: E402
from speclib.data.pairs import ModelSpec  # noqa: E402
from speclib.models.llamacpp import export  # noqa: E402
from speclib.models.llamacpp.gguf import describe  # noqa: E402
from speclib.models.llamacpp.quantised_model import LlamaCpp  # noqa: E402
from speclib.models.open_pair import open_pair  # noqa: E402

DRAFT, SHAPE = "zoo/draft-poor", (4, 512, 8, 1280)
DUO = speclib.load_pair("embedded/duo")


# -- writing and finding ---------------------------------------------------------------
def test_a_gguf_is_found_by_its_content(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "CACHE", tmp_path / "cache")
    folder, _ = save_checkpoint(tmp_path / "m")
    first = export.find_or_write(found(folder), None, "F16")
    written = first.stat().st_mtime_ns
    assert (
        export.find_or_write(found(folder), None, "F16").stat().st_mtime_ns == written
    )
    assert export.find_or_write(found(folder), None, "F32") != first
    assert export.find_or_write(found(folder), (4, 128, 8, 96), "F16") != first

    save_checkpoint(tmp_path / "m", tie_word_embeddings=True)
    assert export.find_or_write(found(folder), None, "F16") != first


def test_a_gguf_with_tokens_is_described_and_one_without_tokens_is_refused(tmp_path):
    card = describe(write_with_tokens(DRAFT, SHAPE, tmp_path / "a.gguf", "Q5_K_M"))
    own = open_pair(DUO).tokenizer
    assert list(card.tokens) == own.convert_ids_to_tokens(range(4096))
    assert card.context == 2048
    assert card.quantization == "Q5_K - Medium"
    with pytest.raises(SpeclibError, match="has no vocabulary.*the checkpoint"):
        describe(export.find_or_write(found(DRAFT), SHAPE, "Q5_K_M"))


# -- in pairs --------------------------------------------------------------------------
def test_a_pair_states_the_runtime_of_its_models(tmp_path):
    path = write_with_tokens(DRAFT, SHAPE, tmp_path / "a.gguf", "Q8_0")
    own = pair_with(ModelSpec(model=path))
    torch_duo = speclib.load_pair("embedded/duo-torch")
    assert open_pair(DUO).runtime("draft") == "llama.cpp Q5_K_M"
    assert open_pair(DUO).runtime("target") == "torch"
    assert open_pair(own).runtime("draft") == "llama.cpp Q8_0"
    assert open_pair(torch_duo).runtime("draft") == "torch"
    assert open_pair(speclib.load_pair("toy")).runtime("draft") == "toy"


def test_the_path_of_a_gguf_can_be_a_draft(tmp_path):
    path = write_with_tokens(DRAFT, SHAPE, tmp_path / "a.gguf")
    own = pair_with(ModelSpec(model=path))
    assert open_pair(own).vocab == 4096
    assert open_pair(own).context == 2048
    assert len(open_pair(own).tokenizer) == 4096
    assert isinstance(open_pair(own).build("draft"), LlamaCpp)


# -- refusals --------------------------------------------------------------------------
def test_a_gguf_of_another_tokenizer_is_refused_with_the_first_difference(tmp_path):
    folder, _ = save_checkpoint(tmp_path / "m")
    other = write_with_tokens(folder, None, tmp_path / "other.gguf")
    own = pair_with(ModelSpec(model=other))
    with pytest.raises(
        SpeclibError, match=r"different tokenizers: id 0 is '<\|pad\|>' and '!'"
    ):
        assert open_pair(own).tokenizer


def test_the_error_for_a_truncated_gguf_says_so(tmp_path):
    whole = export.find_or_write(found(DRAFT), None, "F16").read_bytes()
    short = tmp_path / "short.gguf"
    for size in (len(whole) - 1, 5):
        short.write_bytes(whole[:size])
        with pytest.raises(
            SpeclibError, match="cannot load .*short.gguf: .+Give a complete GGUF"
        ):
            LlamaCpp(short, 4096, 2048)
        own = pair_with(ModelSpec(model=str(short)))
        with pytest.raises(SpeclibError, match="short.gguf"):
            assert open_pair(own).tokenizer


def test_a_file_that_is_no_gguf_is_named(tmp_path):
    (tmp_path / "odd.gguf").write_bytes(b"PK\3\4 something else")
    (tmp_path / "folder.gguf").mkdir()
    for name in ("none.gguf", "odd.gguf", "folder.gguf"):
        with pytest.raises(SpeclibError, match=f"cannot load .*{name}: .+complete"):
            LlamaCpp(tmp_path / name, 16, 16)


def test_k_quants_need_multiples_of_256_and_the_error_names_the_wrong_size():
    with pytest.raises(
        SpeclibError, match="blocks of 256 weights, and width .* is 192: .*Q8_0"
    ):
        export.find_or_write(found(DRAFT), None, "Q5_K_M")
    with pytest.raises(SpeclibError, match="and ffn .* is 1184"):
        export.find_or_write(found(DRAFT), (4, 512, 8, 1184), "Q4_K_M")


def test_an_architecture_that_we_cannot_export_is_refused(tmp_path):
    folder, _ = save_checkpoint(tmp_path / "qwen", transformers.Qwen2ForCausalLM)
    with pytest.raises(SpeclibError, match="is a Qwen2ForCausalLM.*convert_hf_to_gguf"):
        export.find_or_write(found(folder), None, "F16")
