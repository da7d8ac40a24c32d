"""Transformers checkpoints of the Llama architecture as GGUF files, dilated and quantised.

Written once per content into speclib's cache, whole or not at all, so that any number of workers
may ask at the same time. Token ids are the checkpoint's own and speclib hands over nothing else;
how llama.cpp would split a text is only as near as its GPT-2 rule. Knows no worker and no pair.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from importlib.metadata import version
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from speclib.errors import SpeclibError
from speclib.models.dilate import ROTARY, Shape, dilate
from speclib.models.zoo import load_part, locate, tokenizer
from speclib.paths import CACHE

from .gguf import quantised

try:
    import gguf
except ImportError as error:
    raise SpeclibError(
        f"the package gguf is missing ({error}): `make llamacpp`, or `pip install "
        "gguf`; without it llama.cpp runs ready .gguf files only"
    ) from error

VERSION = 1  # of what this module writes
PLAIN = {"F32": torch.float32, "F16": torch.float16}
CONTENT = ("*.safetensors", "*.json", "*.jinja")


def exported(model: str, shape, quantization: str) -> Path:
    """The GGUF of ``model`` (zoo/<name> or a folder), dilated to ``shape`` if given: found in the
    cache by its content, or written there. Raises SpeclibError for what does not fit a GGUF."""
    folder = Path(locate(model))
    if not (folder / "config.json").is_file():
        raise SpeclibError(
            f"model {model!r} is no folder of a checkpoint: to run it in llama.cpp, "
            "download it and give its folder, or give a .gguf"
        )
    key = _digest(folder, shape, quantization)
    path = CACHE / "gguf" / f"{folder.name}-{quantization}-{key}.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=path.parent
        ) as own:  # another may write it, too
            plain, whole = Path(own) / "plain", Path(own) / "whole"
            write(model, shape, plain, quantization)
            if quantization not in PLAIN:
                quantised(plain, whole, quantization)
            (plain if quantization in PLAIN else whole).replace(path)
    return path


def _digest(folder: Path, shape, quantization: str) -> str:
    """Of all that decides what is in the file."""
    packages = [(name, version(name)) for name in ("gguf", "llama-cpp-python")]
    found = hashlib.sha256(repr((VERSION, shape, quantization, packages)).encode())
    for path in sorted(p for pattern in CONTENT for p in folder.glob(pattern)):
        with path.open("rb") as file:
            found.update(
                f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}".encode()
            )
    return found.hexdigest()[:16]


def write(model: str, shape, path: Path, quantization: str = "F16") -> None:
    """Writes ``model``, dilated to ``shape`` if given, to ``path``: matrices in float16 for F16,
    else in float32, to be quantised; vectors in float32."""
    network = load_part(
        model,
        AutoModelForCausalLM,
        "weights",
        dtype=torch.float32,
        use_safetensors=True,
    )
    _check(model, network)
    if shape is not None:
        network = dilate(network, tuple(shape))
    _check_widths(model, Shape.of(network.config), quantization)
    writer = gguf.GGUFWriter(path, "llama")
    _add_config(writer, network, model, quantization)
    _add_tokens(writer, network.config, model)
    _add_weights(writer, network, PLAIN.get(quantization, torch.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _check(model: str, network) -> None:
    name, config = type(network).__name__, network.config
    rotary = config.rope_parameters["rope_type"]
    if (
        name != "LlamaForCausalLM"
        or rotary not in ROTARY
        or config.hidden_act != "silu"
    ):
        raise SpeclibError(
            f"model {model!r} is a {name} with rope_type {rotary!r} and "
            f"{config.hidden_act!r}: what is written here is LlamaForCausalLM with "
            f"one of {ROTARY} and 'silu'; for others give a .gguf made by "
            "llama.cpp's convert_hf_to_gguf.py"
        )


def _check_widths(model: str, shape: Shape, quantization: str) -> None:
    """llama.cpp would fall back to other formats, tensor by tensor, without a word."""
    block = 256 if "_K" in quantization else 1 if quantization in PLAIN else 32
    rows = {
        "width": shape.width,
        "heads * head_dim": shape.heads * shape.head_dim,
        "ffn": shape.ffn,
    }
    for name, size in rows.items():
        if size % block:
            raise SpeclibError(
                f"{quantization} stores blocks of {block} weights, and {name} of "
                f"{model!r} is {size}: dilate it to a shape = [layers, width, "
                f"heads, ffn] of multiples of {block}, or choose "
                f"{'Q8_0 or F16' if block == 256 else 'F16'}"
            )


def _add_config(writer, network, model: str, quantization: str) -> None:
    config, shape = network.config, Shape.of(network.config)
    writer.add_name(f"{model} {list(shape[:4])}")
    writer.add_file_type(
        gguf.LlamaFileType.MOSTLY_F16
        if quantization == "F16"
        else gguf.LlamaFileType.ALL_F32
    )
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_vocab_size(shape.vocab)
    writer.add_block_count(shape.layers)
    writer.add_embedding_length(shape.width)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)


def _add_tokens(writer, config, model: str) -> None:
    """Tokens by id, merges, special ids and the chat template, as the checkpoint has them."""
    bpe = tokenizer(model)
    kind = json.loads(bpe.backend_tokenizer.to_str())
    if (
        kind["model"]["type"] != "BPE"
        or (kind.get("decoder") or {}).get("type") != "ByteLevel"
    ):
        raise SpeclibError(
            f"the tokenizer of {model!r} is no byte-level BPE, the only kind "
            "written here: give a .gguf made by llama.cpp's convert_hf_to_gguf.py"
        )
    types, words = gguf.TokenType, {i: word for word, i in bpe.get_vocab().items()}
    added = {
        i: types.CONTROL if token.special else types.USER_DEFINED
        for i, token in bpe.added_tokens_decoder.items()
    }
    rows = range(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([words.get(i, f"[PAD{i}]") for i in rows])
    writer.add_token_types(
        [added.get(i, types.NORMAL) if i in words else types.UNUSED for i in rows]
    )
    gguf.SpecialVocab(
        locate(model), load_merges=True, n_vocab=config.vocab_size
    ).add_to_gguf(writer, quiet=True)


def _add_weights(writer, network, dtype: torch.dtype) -> None:
    """A tied output is not written: llama.cpp takes the embedding then, too."""
    shape = Shape.of(network.config)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, shape.layers)
    heads = {"q_proj": shape.heads, "k_proj": shape.kv_heads}
    for name, weight in network.named_parameters():
        module = name.split(".")[-2]
        weight = weight.detach()
        if module in heads:
            weight = _paired(weight, heads[module])
        weight = weight.to(torch.float32 if weight.dim() == 1 else dtype).contiguous()
        writer.add_tensor(
            names.get_name(name, try_suffixes=(".weight", ".bias")), weight.numpy()
        )
    turns = network.model.rotary_emb.inv_freq.double()
    plain = network.config.rope_parameters["rope_theta"] ** -(
        torch.arange(len(turns)).double() / len(turns)
    )
    slower = (plain / turns).float()  # as linear and llama3 scaling turn less
    if not torch.allclose(slower, torch.ones_like(slower), atol=1e-5):
        writer.add_tensor("rope_freqs.weight", slower.numpy())


def _paired(weight, heads: int):
    """The rows of each head from (all first, all second) of its rotary pairs to pair after pair:
    llama.cpp turns neighbours, transformers the halves."""
    return weight.unflatten(0, (heads, 2, -1)).transpose(1, 2).reshape(weight.shape)
