"""Llama checkpoints of transformers as GGUF files, dilated and quantised.

A file is written once per content into speclib's cache, whole or not at all, so that
any number of workers may ask for it at the same time. Token ids are the checkpoint's
own, and speclib hands over nothing else; how llama.cpp would split a text is only as
near as its GPT-2 rule. This module knows no worker and no pair.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from transformers import PretrainedConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from speclib.atomic_files import whole_files
from speclib.errors import BadValue, SpeclibError
from speclib.models.checkpoint import Checkpoint
from speclib.models.complete import load_network
from speclib.models.dilate import ROTARY, Architecture, dilate
from speclib.paths import CACHE

from .gguf import quantise

try:
    import gguf
except ImportError as error:
    raise SpeclibError(
        f"the package gguf is missing ({error}): `make llamacpp`, or `pip install "
        "gguf`; without it llama.cpp runs ready .gguf files only"
    ) from error

FAMILY = "LlamaForCausalLM"
VERSION = 1  # of what this module writes
UNQUANTISED = {"F32": torch.float32, "F16": torch.float16}
CONTENT = ("*.safetensors", "*.json", "*.jinja")  # files that decide what is written


def find_or_write(
    checkpoint: Checkpoint, shape: Sequence[int] | None, quantization: str
) -> Path:
    """The GGUF of a checkpoint, found in the cache by its content or written there.

    shape: (layers, width, heads, ffn) to dilate it to; None: as it was trained.

    Raises BadValue for what does not fit a GGUF.
    """
    _check_architecture(checkpoint.model, checkpoint.config)
    checkpoint.weight_files()  # those of the hub are downloaded
    folder = checkpoint.folder
    key = _digest(folder, shape, quantization)
    path = CACHE / "gguf" / f"{folder.name}-{quantization}-{key}.gguf"
    if not path.exists():
        _write_whole(checkpoint, shape, path, quantization)
    return path


def _write_whole(
    checkpoint: Checkpoint, shape: Sequence[int] | None, path: Path, quantization: str
) -> None:
    """Writes a GGUF to ``path`` in one step: others may write it at the same time."""
    with whole_files(path.parent) as part:
        whole = part / path.name
        if quantization in UNQUANTISED:
            write(checkpoint, shape, whole, quantization)
            return
        plain = part / "plain"
        write(checkpoint, shape, plain, quantization)
        quantise(plain, whole, quantization)
        plain.unlink()


def _digest(folder: Path, shape: Sequence[int] | None, quantization: str) -> str:
    """A digest of all that decides what is in the file."""
    packages = [(name, version(name)) for name in ("gguf", "llama-cpp-python")]
    settings = (VERSION, shape, quantization, packages)
    digest = hashlib.sha256(repr(settings).encode())

    paths: list[Path] = []
    for pattern in CONTENT:
        paths += folder.glob(pattern)
    for path in sorted(paths):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.name} {content}".encode())
    return digest.hexdigest()[:16]


def write(
    checkpoint: Checkpoint,
    shape: Sequence[int] | None,
    path: Path,
    quantization: str = "F16",
) -> None:
    """Writes ``checkpoint``, dilated to ``shape`` if given, to ``path``.

    Matrices are in float16 for F16, else in float32, to be quantised; vectors are in
    float32.
    """
    model = checkpoint.model
    network = load_network(checkpoint, dtype=torch.float32)
    if shape is not None:
        network = dilate(network, tuple(shape))
    _check_widths(model, Architecture.of(network.config), quantization)

    writer = gguf.GGUFWriter(path, "llama")
    _add_config(writer, network, model, quantization)
    _add_tokens(writer, network.config, checkpoint)
    _add_weights(writer, network, UNQUANTISED.get(quantization, torch.float32))
    _add_rotary_rates(writer, network)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _check_architecture(model: str, config: PretrainedConfig) -> None:
    """Raises BadValue for a network that is not written here, before it is loaded.

    The family comes first: what another family's configuration has is not known.
    """
    family = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[config.model_type]
    if family != FAMILY:
        raise _not_written(model, f"a {family}")
    rotary = config.rope_parameters.get("rope_type")
    if rotary not in ROTARY or config.hidden_act != "silu":
        raise _not_written(
            model, f"a {family} with rope_type {rotary!r} and {config.hidden_act!r}"
        )


def _not_written(model: str, kind: str) -> BadValue:
    return BadValue(
        f"model {model!r} is {kind}: what is written for llama.cpp here is {FAMILY} "
        f"with one of {ROTARY} and 'silu'; for others give a .gguf made by llama.cpp's "
        'convert_hf_to_gguf.py, or runtime = "torch"'
    )


def _check_widths(model: str, sizes: Architecture, quantization: str) -> None:
    """Raises BadValue for rows that do not divide into the format's blocks.

    llama.cpp would fall back to other formats, tensor by tensor, without a word.
    """
    block = _block_size(quantization)
    row_lengths = {
        "width": sizes.width,
        "heads * head_dim": sizes.heads * sizes.head_dim,
        "ffn": sizes.ffn,
    }
    alternative = "Q8_0 or F16" if block == 256 else "F16"
    for name, length in row_lengths.items():
        if length % block:
            raise BadValue(
                f"{quantization} stores blocks of {block} weights, and {name} of "
                f"{model!r} is {length}: dilate it to a shape = [layers, width, "
                f"heads, ffn] of multiples of {block}, or choose {alternative}"
            )


def _block_size(quantization: str) -> int:
    """How many weights of a row a format stores together."""
    if "_K" in quantization:
        return 256
    if quantization in UNQUANTISED:
        return 1
    return 32


def _add_config(
    writer: gguf.GGUFWriter, network: PreTrainedModel, model: str, quantization: str
) -> None:
    """Adds what the file says of the model's architecture."""
    config = network.config
    sizes = Architecture.of(config)
    file_type = gguf.LlamaFileType.ALL_F32
    if quantization == "F16":
        file_type = gguf.LlamaFileType.MOSTLY_F16

    writer.add_name(f"{model} {list(sizes.shape)}")
    writer.add_file_type(file_type)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_vocab_size(sizes.vocab)
    writer.add_block_count(sizes.layers)
    writer.add_embedding_length(sizes.width)
    writer.add_feed_forward_length(sizes.ffn)
    writer.add_head_count(sizes.heads)
    writer.add_head_count_kv(sizes.kv_heads)
    writer.add_key_length(sizes.head_dim)
    writer.add_value_length(sizes.head_dim)
    writer.add_rope_dimension_count(sizes.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)


def _add_tokens(
    writer: gguf.GGUFWriter, config: PretrainedConfig, checkpoint: Checkpoint
) -> None:
    """Adds the checkpoint's tokens by id, merges, special ids and chat template."""
    bpe: Any = checkpoint.tokenizer
    words = checkpoint.words
    _check_tokenizer(checkpoint.model, json.loads(bpe.backend_tokenizer.to_str()))

    texts, kinds = [], []
    for token_id in range(config.vocab_size):
        texts.append(words.get(token_id, f"[PAD{token_id}]"))
        if token_id not in words:
            kinds.append(gguf.TokenType.UNUSED)
        elif token_id not in bpe.added_tokens_decoder:
            kinds.append(gguf.TokenType.NORMAL)
        elif bpe.added_tokens_decoder[token_id].special:
            kinds.append(gguf.TokenType.CONTROL)
        else:
            kinds.append(gguf.TokenType.USER_DEFINED)

    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    special = gguf.SpecialVocab(
        checkpoint.folder, load_merges=True, n_vocab=config.vocab_size
    )
    special.add_to_gguf(writer, quiet=True)


def _check_tokenizer(model: str, description: dict[str, Any]) -> None:
    """Raises BadValue for a tokenizer that is not written here."""
    is_bpe = description["model"]["type"] == "BPE"
    decoder = description.get("decoder") or {}
    if not is_bpe or decoder.get("type") != "ByteLevel":
        raise BadValue(
            f"the tokenizer of {model!r} is no byte-level BPE, the only kind "
            "written here: give a .gguf made by llama.cpp's convert_hf_to_gguf.py"
        )


def _add_weights(
    writer: gguf.GGUFWriter, network: PreTrainedModel, matrix_dtype: torch.dtype
) -> None:
    """Adds every weight under llama.cpp's name for it.

    A tied output is not written: llama.cpp takes the embedding then, too.
    """
    sizes = Architecture.of(network.config)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, sizes.layers)
    heads_of_rotated = {"q_proj": sizes.heads, "k_proj": sizes.kv_heads}
    for name, parameter in network.named_parameters():
        module = name.split(".")[-2]
        weight = parameter.detach()
        if module in heads_of_rotated:
            weight = _neighbouring_pairs(weight, heads_of_rotated[module])
        dtype = torch.float32 if weight.dim() == 1 else matrix_dtype
        weight = weight.to(dtype).contiguous()
        llama_name = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if llama_name is None:
            raise BadValue(f"llama.cpp has no name for the weight {name!r}")
        writer.add_tensor(llama_name, weight.numpy())


def _neighbouring_pairs(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Reorders the rows of each head so that rotary pairs are neighbours.

    transformers turns the two halves of a head against each other, llama.cpp turns
    neighbours. A head of six rows, with pairs (a, A), (b, B), (c, C)::

        a b c A B C   ->   a A b B c C
    """
    halves: torch.Tensor = weight.unflatten(0, (heads, 2, -1))
    return halves.transpose(1, 2).reshape(weight.shape)


def _add_rotary_rates(writer: gguf.GGUFWriter, network: PreTrainedModel) -> None:
    """Adds by how much slower each pair turns than llama.cpp would have it turn.

    Linear and llama3 scaling turn pairs less; without scaling nothing is added.
    """
    rates = network.model.rotary_emb.inv_freq.double()
    theta = network.config.rope_parameters["rope_theta"]
    exponents = torch.arange(len(rates)).double() / len(rates)
    plain_rates = theta**-exponents
    slower = (plain_rates / rates).float()
    if not torch.allclose(slower, torch.ones_like(slower), atol=1e-5):
        writer.add_tensor("rope_freqs.weight", slower.numpy())
