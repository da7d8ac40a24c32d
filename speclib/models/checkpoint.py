"""A checkpoint is found, checked and described once, and then handed to its loader.

    ModelSpec  ->  find  ->  Checkpoint  ->  a loader  ->  a model

A checkpoint is embedded (``zoo/<name>``), a folder, or an id of the hub. Of the hub's
the small files are downloaded when it is found, and the weights when they are loaded.
Weights are in one file of safetensors, or in several *shards* that an index names. No
other format is read, and no code of a checkpoint is run. Importing this module imports
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
    "that comes with one"
)

# What has a tokenizer's words; tokenizer_config.json only says how they are used.
TOKENIZER_FILES = ("tokenizer.json", "vocab.*", "*.model", "*.tiktoken", "tekken.json")


class StoredWeight(NamedTuple):
    """Where a weight is, and how many numbers it has in each dimension."""

    path: Path
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Checkpoint:
    """One model of a pair, as its files describe it.

    spec     what the pair says of it
    folder   where its files are
    config   its configuration; of a multimodal model, that of the whole
    vocab    how many tokens it can be fed, and can write
    context  the longest text that it can serve, in tokens
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
        """The same model at the cost that it was trained at."""
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
            raise BadValue(  # transformers would make one without words
                f"model {self.model!r} has no tokenizer in {self.folder}: copy "
                "tokenizer.json and tokenizer_config.json there, from the model that "
                "it was made of"
            )
        # AutoTokenizer cuts any Qwen2's words as the original does, not as its file.
        is_embedded = self.model.startswith("zoo/")
        loader = PreTrainedTokenizerFast if is_embedded else AutoTokenizer
        loaded: PreTrainedTokenizerBase = self.read(loader, "tokenizer")
        return loaded

    @cached_property
    def words(self) -> dict[int, str]:
        """Its tokens by their id, as its tokenizer spells them."""
        return {token: word for word, token in self.tokenizer.get_vocab().items()}

    @cached_property
    def end_tokens(self) -> frozenset[int]:
        """The tokens that each end a text; there may be none.

        Those of generation_config.json, else of config.json, else the tokenizer's.

        Source: transformers' ``generate``. Differences: there a first file without any
        ends nothing, and the tokenizer is not asked.
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
        """What its files say of how tokens are chosen."""
        return settings_in(self._generation_config, self.model)

    @cached_property
    def _generation_config(self) -> GenerationConfig:
        """That of generation_config.json; without that file, of config.json."""
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
        """Loads the part ``what`` with a class of transformers.

        Raises BadValue, with the model and the part, if it cannot be loaded.
        """
        return _read(self.model, self.folder, loader, what, **options)

    def check_weights(self) -> None:
        """Raises BadValue for weights that are neither here nor to be downloaded."""
        from huggingface_hub import is_offline_mode

        if not self._is_on_hub or is_offline_mode():
            self._refuse_missing_weights()

    def weight_files(self) -> list[Path]:
        """Its files of weights; what the hub's cache lacks is downloaded.

        Raises BadValue for a file that is missing or out of reach.
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
                f"model {self.model!r} lacks {len(missing)} of its files of weights in "
                f"{self.folder}: {', '.join(missing[:3])}. Copy or download them; "
                "weights in other formats than safetensors, such as .bin, must be "
                "saved anew by transformers' save_pretrained"
            )

    @property
    def _is_on_hub(self) -> bool:
        return not self.model.startswith("zoo/") and not Path(self.model).is_dir()

    def stored_weights(self) -> dict[str, StoredWeight]:
        """Each weight -> the file that it is in, and its shape.

        Raises BadValue for a file that is missing, not whole or out of reach.
        """
        weights = {}
        for path in self.weight_files():
            with opened(path) as file:
                for name in file.keys():  # noqa: SIM118, it is no dict
                    shape = tuple(file.get_slice(name).get_shape())
                    weights[name] = StoredWeight(path, shape)
        return weights


def find(spec: ModelSpec) -> Checkpoint:
    """Finds and checks the checkpoint of ``spec``; its weights are not read.

    Raises BadValue, with the model and the reason, for one that is missing or damaged,
    or that no method can run (see ``configuration``).
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
            f"the configuration of model {model!r} does not say its vocabulary or its "
            f"longest text ({error}): give a decoder of text, such as a Llama or Qwen"
        ) from error


def _folder_of(model: str) -> Path:
    """The folder of a checkpoint, into which the hub's small files are downloaded."""
    if model.startswith("zoo/"):
        return zoo.locate(model)
    path = Path(model)
    if path.is_dir():
        return path
    if path.parent == FETCHED:
        raise BadValue(
            f"the model {path.name} is not here yet: `python -m speclib fetch "
            f"{path.name}` gets it"
        )
    return _download(model, SMALL_FILES)


def _read(model: str, folder: Path, loader: Any, what: str, **options: Any) -> Any:
    """As of ``Checkpoint.read``."""
    try:
        return loader.from_pretrained(folder, trust_remote_code=False, **options)
    except Exception as error:  # a damaged file makes its reader raise anything
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
    """Downloads files of the hub that its cache lacks; the folder that they are in."""
    from huggingface_hub import constants, snapshot_download

    try:
        return Path(
            snapshot_download(model, revision=revision, allow_patterns=list(files))
        )
    except Exception as error:  # of many kinds, and of its libraries'
        raise BadValue(
            f"cannot load model {model!r}: there is no folder "
            f"{os.path.abspath(model)}, it is not in the cache, "
            f"{constants.HF_HUB_CACHE}, and "
            f"{constants.ENDPOINT} does not give it ({one_line(error)}). Check the "
            "name; if the model is gated, accept its licence there and log in by "
            "`hf auth login`; connect this machine, and unset HF_HUB_OFFLINE; or give "
            "the folder of a transformers checkpoint"
        ) from error


def missing_weights(folder: Path) -> list[str]:
    """The names of the files of weights that a folder lacks."""
    return [name for name in weight_names(folder) if not (folder / name).is_file()]


def weight_names(folder: Path) -> list[str]:
    """The names that files of weights have in a folder: one, or those of its shards.

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
    """A file of safetensors, whose weights and their slices can be read in here.

    What was read stays in memory as long as the file is open, if it was not copied.
    Raises BadValue for a file that is not whole.
    """
    from safetensors import safe_open

    try:
        file = safe_open(path, framework="pt")
    except Exception as error:  # of safetensors' own, or of the system
        size = path.stat().st_size if path.exists() else 0
        raise BadValue(
            f"{path}, of {size:,} bytes, is cut off or damaged, or a Git LFS pointer "
            f"({one_line(error)}): copy or download it again"
        ) from error
    with file:
        yield file


def one_line(error: BaseException) -> str:
    """What an error of a library says, in one line."""
    said = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {said}"
