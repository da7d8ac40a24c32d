"""Finds, checks and describes a checkpoint once, for all loaders.

    ModelSpec  ->  find  ->  Checkpoint  ->  a loader  ->  a model

A checkpoint is embedded (``zoo/<name>``), a folder, or a hub id. With a hub id, the
small files are downloaded when the checkpoint is found, and the weights when loaded.
Weights are one safetensors file, or several *shards* that an index lists. No other
format is read, and no code from a checkpoint is run. Importing this module imports
neither torch nor transformers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from speclib.data.pairs import ModelSpec
from speclib.errors import BadValue
from speclib.paths import FETCHED

from . import zoo
from .configuration import check_config, longest_text, real_rows
from .generation_config import (
    GENERATION_CONFIG,
    GenerationSettings,
    end_tokens_in,
    settings_in,
)
from .zoo import WEIGHTS

if TYPE_CHECKING:
    from transformers import (
        GenerationConfig,
        PretrainedConfig,
        PreTrainedTokenizerBase,
    )

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
SMALL_FILES = ("*.json", "*.jinja", "*.model", "*.tiktoken", "*.txt")

NEXT_STEP = (
    "Copy or download the checkpoint again, or give another one; speclib runs no code "
    "from a checkpoint"
)

# Files that contain a tokenizer's words, unlike tokenizer_config.json.
TOKENIZER_FILES = ("tokenizer.json", "vocab.*", "*.model", "*.tiktoken", "tekken.json")


class StoredWeight(NamedTuple):
    """The file that contains a weight, and the weight's shape."""

    path: Path
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Checkpoint:
    """One model of a pair, as its files describe it.

    spec     the pair's description of it
    folder   where its files are
    config   its configuration; for a multimodal model, the whole model's
    vocab    the number of tokens that it can read and write
    context  the longest text that it can handle, in tokens
    """

    spec: ModelSpec
    folder: Path
    config: PretrainedConfig
    vocab: int
    context: int

    @property
    def model(self) -> str:
        """The model's name in its pair."""
        return self.spec.model

    @property
    def undilated(self) -> Checkpoint:
        """The same checkpoint, to be loaded without dilation."""
        return replace(self, spec=self.spec.undilated)

    @property
    def text_config(self) -> PretrainedConfig:
        """The configuration of the part that writes text."""
        text: PretrainedConfig = self.config.get_text_config(decoder=True)
        return text

    # -- tokens ------------------------------------------------------------------------
    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Its tokenizer; raises BadValue if it has none."""
        from transformers import AutoTokenizer, PreTrainedTokenizerFast

        if not any(any(self.folder.glob(pattern)) for pattern in TOKENIZER_FILES):
            raise BadValue(  # transformers would make a tokenizer without words
                f"model {self.model!r} has no tokenizer in {self.folder}: copy "
                "tokenizer.json and tokenizer_config.json there, from the model that "
                "it was made from"
            )
        # For any Qwen2, AutoTokenizer ignores the file, and splits text as Qwen does.
        is_embedded = self.model.startswith("zoo/")
        loader = PreTrainedTokenizerFast if is_embedded else AutoTokenizer
        loaded: PreTrainedTokenizerBase = self.read(loader, "tokenizer")
        return loaded

    @cached_property
    def words(self) -> dict[int, str]:
        """Maps each token id to the token as its tokenizer spells it."""
        return {token: word for word, token in self.tokenizer.get_vocab().items()}

    @cached_property
    def end_tokens(self) -> frozenset[int]:
        """The tokens that end a text, if there are any.

        They come from generation_config.json, or else config.json, or else the
        tokenizer.

        Source: transformers' ``generate``. Differences: ``generate`` reads only the
        first of these files, even if that file names no end token, and never the
        tokenizer.
        """
        for config in (self._generation_config, self.config, self.text_config):
            ends = end_tokens_in(config, self.model)
            if ends is not None:
                return ends
        own = self.tokenizer.eos_token_id
        return frozenset() if own is None else frozenset({own})

    @property
    def named_tokens(self) -> tuple[int, ...]:
        """Its unknown token, if it has one, and its end tokens."""
        unknown = self.tokenizer.unk_token_id
        unknown_tokens = () if unknown is None else (unknown,)
        return (*unknown_tokens, *sorted(self.end_tokens))

    @cached_property
    def generation_settings(self) -> GenerationSettings:
        """The settings in its generation_config.json."""
        return settings_in(self._generation_config, self.model)

    @cached_property
    def _generation_config(self) -> GenerationConfig:
        """Its generation_config.json, or config.json if that file is missing."""
        from transformers import GenerationConfig

        name = GENERATION_CONFIG
        if not (self.folder / name).exists():
            name = CONFIG
        config: GenerationConfig = self.read(
            GenerationConfig, "generation configuration", config_file_name=name
        )
        return config

    # -- files -------------------------------------------------------------------------
    def read(self, loader: Any, what: str, **options: Any) -> Any:
        """Loads the part called ``what`` with a transformers class.

        Raises BadValue, naming the model and the part, if it cannot be loaded.
        """
        return _read(self.model, self.folder, loader, what, **options)

    def check_weights(self) -> None:
        """Raises BadValue if weights are missing and cannot be downloaded."""
        from huggingface_hub import is_offline_mode

        if not self._is_on_hub or is_offline_mode():
            self._refuse_missing_weights()

    def weight_files(self) -> list[Path]:
        """The paths of its weight files; downloads those that the hub's cache lacks.

        Raises BadValue for a file that is missing or cannot be downloaded.
        """
        names = weight_names(self.folder)
        if self._is_on_hub and missing_weights(self.folder):
            _download(self.model, names, revision=self.folder.name)
        self._refuse_missing_weights()
        return [self.folder / name for name in names]

    def _refuse_missing_weights(self) -> None:
        missing = missing_weights(self.folder)
        if missing:
            raise BadValue(
                f"model {self.model!r} lacks {len(missing)} of its weight files in "
                f"{self.folder}: {', '.join(missing[:3])}. Copy or download them; "
                "convert weights in formats other than safetensors, such as .bin, with "
                "transformers' save_pretrained"
            )

    @property
    def _is_on_hub(self) -> bool:
        return not self.model.startswith("zoo/") and not Path(self.model).is_dir()

    def stored_weights(self) -> dict[str, StoredWeight]:
        """Maps each weight to its file and shape.

        Raises BadValue for a file that is incomplete, or that ``weight_files`` rejects.
        """
        weights = {}
        for path in self.weight_files():
            with opened(path) as file:
                for name in file.keys():  # noqa: SIM118, it is not a dict
                    shape = tuple(file.get_slice(name).get_shape())
                    weights[name] = StoredWeight(path, shape)
        return weights


def find(spec: ModelSpec) -> Checkpoint:
    """Finds and checks the checkpoint of ``spec`` without reading its weights.

    Raises BadValue, naming the model and the reason, if it is missing or damaged, or if
    no method can run it (see ``configuration``).
    """
    from transformers import AutoConfig

    model = spec.model
    folder = _folder_of(model)
    config: PretrainedConfig = _read(model, folder, AutoConfig, "configuration")
    check_config(model, config)
    text = config.get_text_config(decoder=True)
    try:
        return Checkpoint(spec, folder, config, real_rows(text), longest_text(text))
    except AttributeError as error:
        raise BadValue(
            f"the configuration of model {model!r} does not state its vocabulary or "
            f"its longest text ({error}): give a text decoder, such as a Llama or Qwen"
        ) from error


def _folder_of(model: str) -> Path:
    """Finds a checkpoint's folder; downloads a hub checkpoint's small files first."""
    if model.startswith("zoo/"):
        return zoo.locate(model)
    path = Path(model)
    if path.is_dir():
        return path
    if path.parent == FETCHED:
        raise BadValue(
            f"the model {path.name} is not here yet: `python -m speclib fetch "
            f"{path.name}` downloads it"
        )
    return _download(model, SMALL_FILES)


def _read(model: str, folder: Path, loader: Any, what: str, **options: Any) -> Any:
    """See ``Checkpoint.read``."""
    try:
        return loader.from_pretrained(folder, trust_remote_code=False, **options)
    except Exception as error:  # readers of damaged files raise errors of any type
        reason = f"{one_line(error)}. {NEXT_STEP}"
        if not (folder / CONFIG).is_file():
            reason = (
                f"it lacks {CONFIG}, so it is not a transformers checkpoint. Give the "
                "folder of one (an adapter must first be merged with its base model)"
            )
        raise BadValue(
            f"cannot load the {what} of model {model!r} in {folder}: {reason}"
        ) from error


def _download(model: str, files: Sequence[str], revision: str | None = None) -> Path:
    """Downloads hub files that the cache lacks; returns their folder."""
    from huggingface_hub import constants, snapshot_download

    try:
        return Path(
            snapshot_download(model, revision=revision, allow_patterns=list(files))
        )
    except Exception as error:  # of many types, some from the hub's dependencies
        raise BadValue(
            f"cannot load model {model!r}: there is no folder "
            f"{os.path.abspath(model)}, it is not in the cache, "
            f"{constants.HF_HUB_CACHE}, and "
            f"{constants.ENDPOINT} does not serve it ({one_line(error)}). Check the "
            "name; if the model is gated, accept its licence there and log in with "
            "`hf auth login`; connect to the network, and unset HF_HUB_OFFLINE; or "
            "give the folder of a transformers checkpoint"
        ) from error


def missing_weights(folder: Path) -> list[str]:
    """The names of the weight files that a folder lacks."""
    return [name for name in weight_names(folder) if not (folder / name).is_file()]


def weight_names(folder: Path) -> list[str]:
    """The names of a folder's weight files: one file, or its shards.

    Raises BadValue for an index that cannot be read.
    """
    index = folder / INDEX
    if (folder / WEIGHTS).is_file() or not index.is_file():
        return [WEIGHTS]
    try:
        weight_map = json.loads(index.read_text("utf-8"))["weight_map"]
        return sorted(set(weight_map.values()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadValue(
            f"{index} is not the index of a checkpoint ({one_line(error)}): "
            "copy or download it again"
        ) from error


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Opens a safetensors file, for reading weights and slices of them.

    Whatever was read and not copied stays in memory until the file is closed. Raises
    BadValue for an incomplete file.
    """
    from safetensors import safe_open

    try:
        file = safe_open(path, framework="pt")
    except Exception as error:  # from safetensors, or from the operating system
        size = path.stat().st_size if path.exists() else 0
        raise BadValue(
            f"{path}, of {size:,} bytes, is truncated, damaged, or a Git LFS pointer "
            f"({one_line(error)}): copy or download it again"
        ) from error
    with file:
        yield file


def one_line(error: BaseException) -> str:
    """A library's error message on one line."""
    said = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {said}"
