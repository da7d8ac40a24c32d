"""Converts a GGUF file to a checkpoint folder, with dequantised weights.

    file.gguf  ->  model.safetensors, config.json, tokenizer.json, ...

transformers reads the file, and the package gguf decodes its quantised numbers. The
result is a checkpoint like any other, with the file's weights in a dtype that torch
supports. The file itself, run by llama.cpp, can be the draft of that checkpoint.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from speclib.errors import BadValue, SpeclibError, how_to_install, is_installed

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MAGIC = b"GGUF"  # the first bytes of every such file


def fetch_gguf(file: Path, say: Callable[[str], object] = print) -> Path:
    """Converts ``file`` to a checkpoint in a folder of the same name, next to it.

    Keeps an existing folder. Returns the folder; raises the same errors as ``convert``.
    """
    folder = file.with_suffix("")
    if not folder.exists():
        say(f"converting {file} to a checkpoint")
        convert(file, folder)
    say(
        f"{folder} can be a target, and {file} its draft: "
        f"speclib.pair(target={str(folder)!r}, draft={str(file)!r})"
    )
    return folder


def convert(file: Path, folder: Path) -> None:
    """Converts a GGUF ``file`` to the checkpoint ``folder``, whole or not at all.

    The weights are stored in float32, which can represent the file's values.

    Raises BadValue if the file is not a GGUF file, is damaged, or has an architecture
    that transformers does not read from GGUF files; SpeclibError if a library is
    missing, or the folder cannot be written.
    """
    _check(file)
    from safetensors import SafetensorError

    network, tokenizer = _read(file)
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        tokenizer.save_pretrained(unfinished)
        _save(network, unfinished)
        unfinished.chmod(0o755)  # only the owner can read a temporary folder
        unfinished.rename(folder)
    except (OSError, SafetensorError) as error:
        raise SpeclibError(f"{folder} cannot be written: {error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _check(file: Path) -> None:
    if not is_installed("gguf"):
        raise SpeclibError(f"reading {file} needs gguf: {how_to_install('models')}")
    try:
        with file.open("rb") as opened:
            begins = opened.read(len(MAGIC))
    except OSError as error:
        raise BadValue(f"{file} cannot be read: {error.strerror}") from error
    if begins != MAGIC:
        raise BadValue(
            f"{file} is not a GGUF file: it begins with {begins!r}, not {MAGIC!r}. "
            "A safetensors checkpoint needs no conversion: give its folder"
        )


def _read(file: Path) -> tuple[PreTrainedModel, Any]:
    """Reads the file's network, in float32, and its tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()  # its advice is followed here anyway

    options = {"gguf_file": file.name, "trust_remote_code": False}
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(file.parent), **options)
        network = AutoModelForCausalLM.from_pretrained(
            str(file.parent), dtype=torch.float32, **options
        )
    except Exception as error:  # readers of damaged files raise errors of any type
        raise BadValue(
            f"{file} cannot be read by transformers ({type(error).__name__}: {error}). "
            "It may be damaged: compare its checksum with its source; or give a "
            "safetensors checkpoint instead"
        ) from error
    return network, tokenizer


def _save(network: PreTrainedModel, folder: Path) -> None:
    """Writes the weights and the configurations; tied weights are stored once."""
    from safetensors.torch import save_file

    network.tie_weights()
    weights = network.state_dict()
    if network.config.tie_word_embeddings:
        weights.pop("lm_head.weight", None)
    contiguous = {name: weight.contiguous() for name, weight in weights.items()}
    path = folder / "model.safetensors"
    save_file(contiguous, path, metadata={"format": "pt"})
    path.chmod(0o644)  # like the other files; safetensors lets only the owner read it
    if hasattr(network.config, "quantization_config"):
        del network.config.quantization_config
    network.config.save_pretrained(folder)
    network.generation_config.save_pretrained(folder)
