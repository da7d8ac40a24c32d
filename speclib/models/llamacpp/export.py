"""Exports transformers' Llama checkpoints to GGUF files, dilated and quantised.

A file is written once per checkpoint into speclib's cache, whole or not at all, so any
number of workers can request it at the same time. It contains weights but no tokenizer,
since llama.cpp only receives token ids. This module does not depend on workers or
pairs.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import torch
from transformers import PretrainedConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from speclib.atomic_files import whole_files
from speclib.errors import BadValue, SpeclibError
from speclib.models.checkpoint import Checkpoint
from speclib.models.dilate import ROTARY, Architecture, dilate
from speclib.models.weights import load_network
from speclib.paths import CACHE

from .gguf import api, latest_errors

try:
    import gguf
except ImportError as error:
    raise SpeclibError(
        f"the package gguf is missing ({error}): `make llamacpp`, or `pip install "
        "gguf`; without it, llama.cpp can only run .gguf files that exist already"
    ) from error

FAMILY = "LlamaForCausalLM"
VERSION = 2  # the version of the files that this module writes
UNQUANTISED = {"F32": torch.float32, "F16": torch.float16}


def find_or_write(
    checkpoint: Checkpoint, shape: Sequence[int] | None, quantization: str
) -> Path:
    """Returns a checkpoint's GGUF file; writes it to the cache if it is not there.

    shape: (layers, width, heads, ffn) to dilate it to; None: as trained.

    Raises BadValue for a model that cannot be written as a GGUF file.
    """
    _check_architecture(checkpoint.model, checkpoint.config)
    folder = checkpoint.folder
    weights = [  # downloads a hub checkpoint's weights
        (str(file), file.stat().st_size, file.stat().st_mtime_ns)
        for file in checkpoint.weight_files()
    ]
    packages = [(name, version(name)) for name in ("gguf", "llama-cpp-python")]
    content = repr((VERSION, shape, quantization, packages, weights))
    key = hashlib.sha256(content.encode()).hexdigest()[:16]
    path = CACHE / "gguf" / f"{folder.name}-{quantization}-{key}.gguf"
    if not path.exists():
        with whole_files(path.parent) as unfinished:
            write(checkpoint, shape, unfinished / path.name, quantization)
    return path


def write(
    checkpoint: Checkpoint,
    shape: Sequence[int] | None,
    path: Path,
    quantization: str = "F16",
) -> None:
    """Writes ``checkpoint``, dilated to ``shape`` if given, to ``path``.

    Before quantisation, matrices are in float16 for F16 and otherwise in float32;
    vectors are in float32.
    """
    model = checkpoint.model
    network = load_network(checkpoint, dtype=torch.float32)
    if shape is not None:
        network = dilate(network, tuple(shape))
    _check_widths(model, Architecture.of(network.config), quantization)

    if quantization in UNQUANTISED:
        _write_plain(network, path, quantization)
        return
    plain = path.with_suffix(".plain")
    _write_plain(network, plain, "F32")
    _quantise(plain, path, quantization)
    plain.unlink()


def _quantise(source: Path, target: Path, quantization: str) -> None:
    """Writes ``source``, a GGUF file in F32 or F16, to ``target``, quantised."""
    params = api.llama_model_quantize_default_params()
    params.ftype = getattr(api, f"LLAMA_FTYPE_MOSTLY_{quantization}")
    params.nthread = 1
    latest_errors.clear()
    failed = api.llama_model_quantize(
        os.fsencode(source), os.fsencode(target), ctypes.byref(params)
    )
    if failed:
        raise SpeclibError(
            f"llama.cpp cannot quantise {source} to {quantization}: "
            f"{'; '.join(latest_errors)}"
        )


def _check_architecture(model: str, config: PretrainedConfig) -> None:
    """Raises BadValue, before weights are read, if a network cannot be exported."""
    family = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[config.model_type]
    rotary = (getattr(config, "rope_parameters", None) or {}).get("rope_type")
    activation = getattr(config, "hidden_act", None)
    if family != FAMILY or rotary not in ROTARY or activation != "silu":
        raise BadValue(
            f"model {model!r} is a {family} with rope_type {rotary!r} and "
            f"{activation!r}: speclib exports to llama.cpp only {FAMILY} with one of "
            f"{ROTARY} and 'silu'; for others give a .gguf made by llama.cpp's "
            'convert_hf_to_gguf.py, or runtime = "torch"'
        )


def _check_widths(model: str, sizes: Architecture, quantization: str) -> None:
    """Raises BadValue unless each row is a whole number of the format's blocks.

    llama.cpp would silently fall back to other formats, tensor by tensor.
    """
    if quantization in UNQUANTISED:
        return
    block = 256 if "_K" in quantization else 32  # weights stored together
    row_lengths = {
        "width": sizes.width,
        "heads * head_dim": sizes.heads * sizes.head_dim,
        "ffn": sizes.ffn,
    }
    for name, length in row_lengths.items():
        if length % block:
            raise BadValue(
                f"{quantization} stores blocks of {block} weights, and {name} of "
                f"{model!r} is {length}: dilate it to a shape = [layers, width, "
                f"heads, ffn] of multiples of {block}, or choose Q8_0 or F16, whose "
                "blocks have 32 weights and 1"
            )


def _write_plain(network: PreTrainedModel, path: Path, quantization: str) -> None:
    """Writes an unquantised GGUF file, in F32 or F16."""
    writer = gguf.GGUFWriter(path, "llama")
    _add_config(writer, network.config, quantization)
    _add_weights(writer, network, UNQUANTISED[quantization])
    _add_rotary_rates(writer, network)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_config(
    writer: gguf.GGUFWriter, config: PretrainedConfig, quantization: str
) -> None:
    """Adds the metadata of the model's architecture."""
    sizes = Architecture.of(config)
    is_half = quantization == "F16"
    types = gguf.LlamaFileType
    writer.add_file_type(types.MOSTLY_F16 if is_half else types.ALL_F32)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_tokenizer_model("no_vocab")
    writer.add_vocab_size(sizes.vocab)
    writer.add_block_count(sizes.layers)
    writer.add_embedding_length(sizes.width)
    writer.add_feed_forward_length(sizes.ffn)
    writer.add_head_count(sizes.heads)
    writer.add_head_count_kv(sizes.kv_heads)
    writer.add_key_length(sizes.head_dim)
    writer.add_value_length(sizes.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)


def _add_weights(
    writer: gguf.GGUFWriter, network: PreTrainedModel, matrix_dtype: torch.dtype
) -> None:
    """Adds every weight under llama.cpp's name.

    A tied output is not written: llama.cpp then uses the embedding.
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
        assert llama_name is not None, f"a Llama has no {name}"
        writer.add_tensor(llama_name, weight.numpy())


def _neighbouring_pairs(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Reorders the rows of each head so that rotary pairs are neighbours.

    transformers rotates a head's first half with its second; llama.cpp rotates
    neighbours. A head of six rows, with pairs (a, A), (b, B), (c, C)::

        a b c A B C   ->   a A b B c C
    """
    halves: torch.Tensor = weight.unflatten(0, (heads, 2, -1))
    return halves.transpose(1, 2).reshape(weight.shape)


def _add_rotary_rates(writer: gguf.GGUFWriter, network: PreTrainedModel) -> None:
    """Adds the factor by which each pair rotates more slowly than llama.cpp's default.

    Linear and llama3 scaling slow pairs down; without scaling, nothing is added.
    """
    rates = network.model.rotary_emb.inv_freq.double()
    theta = network.config.rope_parameters["rope_theta"]
    exponents = torch.arange(len(rates)).double() / len(rates)
    plain_rates = theta**-exponents
    slower = (plain_rates / rates).float()
    if not torch.allclose(slower, torch.ones_like(slower), atol=1e-5):
        writer.add_tensor("rope_freqs.weight", slower.numpy())
