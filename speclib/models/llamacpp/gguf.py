"""GGUF files as llama.cpp reads and writes them: opened, described, quantised; quietly.

Needs the extra ``llamacpp``; importing this module without it is the error that says so. Knows no
torch and no KV cache.
"""

from __future__ import annotations

import ctypes
import os
from collections import deque
from functools import cache
from pathlib import Path
from typing import NamedTuple

from speclib.errors import SpeclibError

try:
    from llama_cpp import llama_cpp as api
except (ImportError, OSError, RuntimeError) as error:
    raise SpeclibError(
        f"llama.cpp's Python package cannot be imported ({error}): `make llamacpp`, or `pip "
        "install 'speclib[llamacpp]'`, compiles it from source in about six minutes; or give the "
        'model runtime = "torch" ("auto": torch until then)'
    ) from error

MAGIC = b"GGUF"
# g++ 12 drops the writes to what ldtilecfg reads, so a llama.cpp that it built with AMX crashes at
# its first quantised matrix; weights that are not repacked do not come that way
REPACKED = b"AMX_INT8 = 1" not in api.llama_print_system_info()
ERROR = 4  # of ggml's log levels
said = deque(maxlen=3)  # llama.cpp's latest errors


@api.llama_log_callback
def _hear(level, text, _):
    """Instead of standard error: progress and warnings are nobody's, errors go into ours."""
    if level == ERROR:
        said.append(text.decode(errors="replace").strip())


api.llama_log_set(_hear, ctypes.c_void_p(0))
api.llama_backend_init()


class Card(NamedTuple):
    """What a GGUF says of itself: its tokens' texts by id, the longest text it was made for, and
    its quantization, as llama.cpp calls it."""

    tokens: tuple[str, ...]
    context: int
    quantization: str


def opened(path: str | Path, **settings):
    """llama.cpp's pointer to the model in ``path``, its weights on the CPU; free it with
    llama_model_free. ``settings``: of llama_model_params. Raises SpeclibError for a file that is
    missing, no GGUF, truncated, or of a model without a KV cache that can be cut."""
    path = Path(path)
    if not path.is_file():
        raise SpeclibError(
            f"there is no file {path}: give the path of a GGUF, or a checkpoint "
            'with runtime = "llamacpp", which is written as one'
        )
    with path.open("rb") as file:
        magic = file.read(len(MAGIC))
    if magic != MAGIC:
        raise SpeclibError(
            f"{path} is no GGUF: it begins with {magic!r}, not {MAGIC!r}; give a "
            "GGUF, or the folder of a transformers checkpoint"
        )
    params = api.llama_model_default_params()
    for name, value in {
        "n_gpu_layers": 0,
        "use_extra_bufts": REPACKED,
        **settings,
    }.items():
        setattr(params, name, value)
    said.clear()
    model = api.llama_model_load_from_file(os.fsencode(path), params)
    if not model:
        raise SpeclibError(
            f"llama.cpp cannot load {path}: {'; '.join(said) or 'no reason given'}. "
            "It is truncated or damaged, or newer than this llama.cpp: get or "
            "write it again (in speclib's cache: delete it)"
        )
    if (
        api.llama_model_is_recurrent(model)
        or api.llama_model_is_hybrid(model)
        or not api.llama_model_has_decoder(model)
    ):
        api.llama_model_free(model)
        raise SpeclibError(
            f"the model in {path} has no KV cache that can be cut to a common "
            "prefix: give a decoder with attention in every layer"
        )
    return model


def described(path: str | Path) -> Card:
    """The card of the GGUF ``path``; errors as ``opened``."""
    return _described(
        Path(path), Path(path).stat().st_mtime_ns if Path(path).exists() else 0
    )


@cache
def _described(path: Path, _changed: int) -> Card:
    model = opened(path, vocab_only=True)
    try:
        vocab = api.llama_model_get_vocab(model)
        count = api.llama_vocab_n_tokens(vocab)
        tokens = (api.llama_vocab_get_text(vocab, i) for i in range(count))
        kind = _meta(model, "general.architecture")
        longest = int(_meta(model, f"{kind}.context_length") or 0)
        quantization = api.llama_ftype_name(int(_meta(model, "general.file_type") or 0))
        return Card(
            tuple(t.decode(errors="replace") for t in tokens),
            longest,
            quantization.decode(),
        )
    finally:
        api.llama_model_free(model)


def _meta(model, key: str) -> str:
    """A value of the file's metadata; empty where it has none."""
    buffer = ctypes.create_string_buffer(256)
    size = api.llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
    return buffer.value.decode() if size > 0 else ""


def quantised(source: Path, target: Path, quantization: str) -> None:
    """Writes ``source``, a GGUF in F32 or F16, to ``target`` with llama.cpp's own quantiser."""
    params = api.llama_model_quantize_default_params()
    params.ftype = getattr(api, f"LLAMA_FTYPE_MOSTLY_{quantization}")
    params.nthread = 1
    said.clear()
    if api.llama_model_quantize(
        os.fsencode(source), os.fsencode(target), ctypes.byref(params)
    ):
        raise SpeclibError(
            f"llama.cpp cannot quantise {source} to {quantization}: {'; '.join(said)}"
        )
