"""Opens and describes GGUF files with llama.cpp.

llama.cpp's own messages are not printed. Importing this module without the extra
``llamacpp`` raises an error that explains how to install it. This module uses neither
torch nor a KV cache.
"""

from __future__ import annotations

import ctypes
import os
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from speclib.errors import BadValue, SpeclibError

try:
    from llama_cpp import llama_cpp
except (ImportError, OSError, RuntimeError) as error:
    raise SpeclibError(
        f"llama.cpp's Python package cannot be imported ({error}): `make llamacpp`, "
        "or, in the checkout, `pip install -e '.[llamacpp]'`, compiles it from source "
        'in about six minutes; or give the model runtime = "torch" ("auto" uses torch '
        "until then)"
    ) from error

api = llama_cpp  # its C functions, also for the other modules here

ERROR = 4  # of ggml's log levels

# g++ 12 removes the writes to the memory that ldtilecfg reads. A llama.cpp built by it
# with AMX therefore crashes at the first quantised matrix. Weights that are not
# repacked avoid that code.
CAN_REPACK = b"AMX_INT8 = 1" not in api.llama_print_system_info()

latest_errors: deque[str] = deque(maxlen=3)  # llama.cpp's messages on its last failure


def _listen(level: int, text: bytes, _user_data: Any) -> None:
    """Receives llama.cpp's messages, which would otherwise go to standard error.

    Errors become part of speclib's error messages; progress and warnings are dropped.
    """
    if level == ERROR:
        latest_errors.append(text.decode(errors="replace").strip())


LISTENER = api.llama_log_callback(_listen)  # kept alive, since C calls it
api.llama_log_set(LISTENER, ctypes.c_void_p(0))
api.llama_backend_init()


class Card(NamedTuple):
    """The description of a model in its GGUF file.

    model: its path. tokens: the tokens' texts, by id.
    context: the longest text that it was made for, in tokens.
    quantization: its format, as llama.cpp names it.
    named_tokens: its unknown token and its end token, if it defines them.
    """

    model: str
    tokens: tuple[str, ...]
    context: int
    quantization: str
    named_tokens: tuple[int, ...]

    @property
    def vocab(self) -> int:
        """The number of tokens that it can read and write."""
        return len(self.tokens)

    @property
    def words(self) -> dict[int, str]:
        """Its tokens by id."""
        return dict(enumerate(self.tokens))


def open_model(path: str | Path, **settings: Any) -> Any:
    """Opens the model in ``path`` on the CPU; returns llama.cpp's pointer to it.

    settings: fields of llama_model_params. The caller frees the pointer with
    llama_model_free.

    Raises BadValue for a file that is missing, truncated or not a GGUF file, and for a
    model whose KV cache cannot be cut.
    """
    params = api.llama_model_default_params()
    params.n_gpu_layers = 0
    params.use_extra_bufts = CAN_REPACK
    for name, value in settings.items():
        setattr(params, name, value)
    latest_errors.clear()
    model = api.llama_model_load_from_file(os.fsencode(path), params)
    if not model:
        reason = "; ".join(latest_errors) or "no reason given"
        raise BadValue(
            f"llama.cpp cannot load {path}: {reason}. Give a complete GGUF file, not a "
            "folder or Git LFS pointer, and not newer than this llama.cpp. If it is "
            "in speclib's cache, delete it: speclib then writes it again"
        )

    if not _has_cuttable_cache(model):
        api.llama_model_free(model)
        raise BadValue(
            f"the KV cache of the model in {path} cannot be cut to a common prefix: "
            "give a decoder with attention in every layer"
        )
    return model


def _has_cuttable_cache(model: Any) -> bool:
    """Whether every layer of a model attends to a KV cache."""
    if api.llama_model_is_recurrent(model) or api.llama_model_is_hybrid(model):
        return False
    return bool(api.llama_model_has_decoder(model))


def describe(path: str | Path) -> Card:
    """Describes the GGUF file ``path``; raises the same errors as ``open_model``."""
    model = open_model(path, vocab_only=True)
    try:
        _check_has_tokens(model, path)
        architecture = _metadata(model, "general.architecture")
        context = _metadata(model, f"{architecture}.context_length")
        file_type = _metadata(model, "general.file_type")
        quantization = api.llama_ftype_name(int(file_type or 0))
        return Card(
            str(path),
            _tokens(model),
            int(context or 0),
            quantization.decode(),
            _named_tokens(model),
        )
    finally:
        api.llama_model_free(model)


def _check_has_tokens(model: Any, path: str | Path) -> None:
    """Raises BadValue for a file without a vocabulary, such as ``export`` writes."""
    vocab = api.llama_model_get_vocab(model)
    if api.llama_vocab_type(vocab) == api.LLAMA_VOCAB_TYPE_NONE:
        raise BadValue(
            f"the GGUF file {path} has no vocabulary, so its tokens cannot be compared "
            "with the target's: give the checkpoint that it was made from"
        )


def _tokens(model: Any) -> tuple[str, ...]:
    """The texts of a model's tokens, by id."""
    vocab = api.llama_model_get_vocab(model)
    tokens = []
    for token_id in range(api.llama_vocab_n_tokens(vocab)):
        text = api.llama_vocab_get_text(vocab, token_id)
        tokens.append(text.decode(errors="replace"))
    return tuple(tokens)


def _named_tokens(model: Any) -> tuple[int, ...]:
    """The ids of a model's unknown token and end token, if it defines them."""
    tokens = []
    for name in ("unknown", "eos"):
        token = _metadata(model, f"tokenizer.ggml.{name}_token_id")
        if token:
            tokens.append(int(token))
    return tuple(tokens)


def _metadata(model: Any, key: str) -> str:
    """Reads a value from the file's metadata; empty if missing."""
    buffer = ctypes.create_string_buffer(256)
    size = api.llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
    return buffer.value.decode() if size > 0 else ""
