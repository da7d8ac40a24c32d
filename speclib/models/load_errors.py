"""Why a checkpoint cannot be loaded, in words: what is wrong with it, and what helps.

Libraries raise one error for causes that have nothing in common, and several for one
cause. So this module looks for the cause itself::

    its name          no such folder, a file, a hub that is out of reach
    its files         Git LFS pointers, no JSON, cut off, not to be read
    what it is        an adapter, code of its own, an architecture that is too new
    its weights       quantised
    this machine      too little memory, a library that is not installed

Where it finds none, it says what transformers says. Importing this module imports
neither torch nor transformers.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from speclib.arguments import shown
from speclib.errors import BadValue, nearest_name

from .file_states import hubs_copy

CONFIG = "config.json"
ADAPTER = "adapter_config.json"
LFS_POINTER = b"version https://git-lfs"  # how such a file begins

# The files of each part, for what is said where no cause is found.
JSON_FILES = {
    "configuration": (CONFIG,),
    "generation configuration": ("generation_config.json",),
    "tokenizer": (
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
    ),
    "weights": (CONFIG, "generation_config.json", "model.safetensors.index.json"),
}
READ = ("*.json", "*.safetensors", "*.model", "*.txt")  # of a checkpoint
# quant_method in a config.json -> what people call it; all others go by that name.
QUANTISATIONS = {
    "gptq": "GPTQ",
    "awq": "AWQ",
    "bitsandbytes": "bitsandbytes",
    "fp8": "FP8",
    "fbgemm_fp8": "FP8",
    "mxfp4": "MXFP4",
}
WHOLE_MODEL = (
    "Give the checkpoint that it was made of, in bfloat16 or float16; a draft may be a "
    ".gguf of it, too"
)


def with_reason(model: str, what: str, error: Exception) -> BadValue:
    """The error that says why the part ``what`` of a model cannot be loaded.

    what: one of JSON_FILES.
    """
    reason = _hubs_reason(model, what, error)
    folder = Path(model) if Path(model).is_dir() else hubs_copy(model)
    if reason is None and folder is not None:
        reason = _folders_reason(Attempt(model, folder, what, error))
    if reason is None:
        reason = (
            f"{_one_line(error)}. Give zoo/<name>, a folder of a transformers "
            "checkpoint, or a hub id that this machine can reach"
        )
    return BadValue(f"cannot load the {what} of model {model!r}: {reason}")


# -- the name of a model ---------------------------------------------------------------
def path_problem(model: str) -> str | None:
    """What is wrong with a model's name, if it can only be a path; None if nothing is.

    A name that is no folder may be a hub id, which is left to the hub.
    """
    try:
        os.stat(model)
    except (FileNotFoundError, NotADirectoryError):
        return None if _may_be_on_hub(model) else _missing_folder(model)
    except OSError as error:
        return f"this path cannot be followed ({error.strerror}): give another one"
    except ValueError as error:
        return f"this is no path ({error}): give a folder or a hub id"

    if not os.path.isdir(model):
        return _file_in_place_of_folder(Path(model).absolute())
    if not os.access(model, os.R_OK | os.X_OK):
        return "this user may not read that folder: change its permissions"
    return None


def _may_be_on_hub(model: str) -> bool:
    """Whether the hub could have a model of this name."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        try_to_load_from_cache(model, CONFIG)  # which looks at the name first
    except HFValidationError:
        return False
    return True


def _file_in_place_of_folder(path: Path) -> str:
    problem = "it is a file: give the folder of a transformers checkpoint"
    if (path.parent / CONFIG).is_file():
        return f"{problem}, {path.parent}"
    if path.suffix.lower() == ".gguf":
        return f'{problem}, or let its name end in ".gguf", as a draft\'s may'
    return problem


def _missing_folder(model: str) -> str:
    """That there is no such folder, and which one may be meant."""
    if "://" in model:
        return "this is an address: give a folder, or the hub id alone, as owner/name"
    if model != model.strip():
        return "it begins or ends with a blank: leave that out"
    path = Path(os.path.abspath(model))
    existing = path.parent
    while not existing.is_dir():
        existing = existing.parent

    wrong = path.relative_to(existing).parts[0]
    problem = f"there is no folder {path}: {existing} has no {wrong!r} in it"
    names = []
    with suppress(OSError):  # a folder that this user may not list
        names = [folder.name for folder in existing.iterdir() if folder.is_dir()]
    nearest = nearest_name(wrong, names)
    if nearest is not None:
        return f"{problem}. Did you mean {nearest!r}?"
    return f"{problem}. Give a folder that is there, zoo/<name> or a hub id"


# -- the hub ---------------------------------------------------------------------------
def _hubs_reason(model: str, what: str, error: BaseException) -> str | None:
    """What kept a model of the hub's from being read; None if it was something else.

    The libraries say it in paragraphs of their own; what they raise has the hub's own
    error as its cause.
    """
    from huggingface_hub import constants, errors

    for cause in _causes(error):
        if isinstance(cause, errors.GatedRepoError):
            return (
                f"it is gated. Accept its licence at {constants.ENDPOINT}/{model}, "
                "then log in by `hf auth login`"
            )
        if isinstance(cause, errors.RepositoryNotFoundError):
            return (
                f"{Path.cwd()} has no folder of this name, and {constants.ENDPOINT} "
                "has no such model, or it is private: check the id, or log in by "
                "`hf auth login`"
            )
        if isinstance(cause, errors.LocalEntryNotFoundError | ConnectionError):
            return (
                f"{Path.cwd()} has no folder of this name, it is not in the "
                f"cache, {constants.HF_HUB_CACHE}, and {constants.ENDPOINT} cannot be "
                "reached. Connect this machine, unset HF_HUB_OFFLINE, or give a folder "
                "of a transformers checkpoint"
            )
    if isinstance(error, errors.EntryNotFoundError):
        return (
            f"{constants.ENDPOINT}/{model} has none that is read here: give a model of "
            "the hub with safetensors, or download one and convert it"
        )
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, what it was raised from, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


# -- a folder --------------------------------------------------------------------------
class Attempt(NamedTuple):
    """A part of a model that could not be loaded from a folder, and the error."""

    model: str
    folder: Path
    what: str
    error: Exception

    @property
    def config(self) -> dict[str, Any]:
        """What config.json says; empty where it cannot be read."""
        return _json_object(self.folder / CONFIG)


def _folders_reason(attempt: Attempt) -> str:
    """Why a part of a checkpoint in a folder cannot be loaded."""
    for find in REASONS:
        reason = find(attempt)
        if reason is not None:
            return reason

    from transformers import __version__

    file = JSON_FILES[attempt.what][0]
    return (
        f"{_one_line(attempt.error)}. So says transformers {__version__}: mend {file} "
        f"in {attempt.folder}, or copy or download the checkpoint again"
    )


def _is_no_checkpoint(attempt: Attempt) -> str | None:
    """That a folder has no config.json, and what it seems to be."""
    folder = attempt.folder
    if (folder / CONFIG).is_file():
        return None
    problem = f"there is no {CONFIG} in {folder.absolute()}, so that it is no "
    problem += "transformers checkpoint"
    if (folder / ADAPTER).is_file():
        base = _json_object(folder / ADAPTER).get("base_model_name_or_path")
        return (
            f"{problem}: it is an adapter, by its {ADAPTER}. Merge it with its base"
            f"{f', {base!r},' if base else ''} by peft's merge_and_unload and then "
            "save_pretrained, and give the folder that this writes"
        )

    checkpoints = [*folder.glob(f"*/{CONFIG}"), *folder.glob(f"snapshots/*/{CONFIG}")]
    if checkpoints:
        return f"{problem}. Give one that is in it, such as {checkpoints[0].parent}"
    ggufs = sorted(folder.glob("*.gguf"))
    if ggufs:
        return f"{problem}. A draft may be the file itself, {ggufs[0]}"
    if _may_be_on_hub(attempt.model):
        return (
            f"{problem}. A folder comes before a model of this id on the hub: rename "
            "it, or give a folder of a checkpoint"
        )
    return f"{problem}. Give a folder of one, zoo/<name> or a hub id"


def _has_lfs_pointer(attempt: Attempt) -> str | None:
    """That some file is what Git LFS puts in place of a large one."""
    for pattern in READ:
        for path in sorted(attempt.folder.glob(pattern)):
            if is_lfs_pointer(path):
                return lfs_problem(path)
    return None


def is_lfs_pointer(path: Path) -> bool:
    """Whether a file is what Git LFS puts in place of a large one."""
    try:
        with path.open("rb") as file:
            return file.read(len(LFS_POINTER)) == LFS_POINTER
    except OSError:
        return False


def lfs_problem(path: Path) -> str:
    """What is wrong with a file that is_lfs_pointer, and what helps."""
    return (
        f"{path} is a Git LFS pointer, not the file itself: run `git lfs install` and "
        "`git lfs pull` in that repository, or download the model by `hf download`"
    )


def _has_no_json(attempt: Attempt) -> str | None:
    """That a file that should hold a JSON object holds something else."""
    for name in JSON_FILES[attempt.what]:
        path = attempt.folder / name
        if not path.exists():
            continue
        try:
            content = json.loads(path.read_text("utf-8"))
        except (ValueError, RecursionError) as error:  # UnicodeDecodeError is one
            return f"{path} is no JSON ({error}): copy or download it again"
        except OSError as error:
            return _unreadable(path, error)
        if not isinstance(content, dict):
            return (
                f"{path} holds {shown(content)}, not a JSON object: copy or download "
                "it again"
            )
    return None


def _may_not_be_read(attempt: Attempt) -> str | None:
    """That the system does not let this user read a file."""
    for cause in _causes(attempt.error):
        is_forbidden = getattr(cause, "errno", None) in (errno.EACCES, errno.EPERM)
        if isinstance(cause, OSError) and is_forbidden:
            return _unreadable(cause.filename or attempt.folder, cause)
    return None


def _unreadable(path: object, error: OSError) -> str:
    return f"{path} cannot be read ({error.strerror}): change its permissions"


def _lacks_memory(attempt: Attempt) -> str | None:
    """That there was no memory for it."""
    for cause in _causes(attempt.error):
        said = str(cause).lower()
        is_full = "out of memory" in said or "allocate memory" in said
        if isinstance(cause, MemoryError) or is_full:
            return (
                f"there is too little memory for it ({_one_line(cause)}): free some, "
                'take dtype="bfloat16", or give a smaller model'
            )
    return None


def _brings_code(attempt: Attempt) -> str | None:
    """That a model has code of its own, which is never run here."""
    if "custom code" not in str(attempt.error):
        return None
    names = []
    for name in (CONFIG, "tokenizer_config.json"):
        if "auto_map" in _json_object(attempt.folder / name):
            names.append(name)
    where = f" (auto_map in its {' and '.join(names)})" if names else ""
    return (
        f"it is loaded by Python code that comes with it{where}, and speclib runs no "
        "code of a checkpoint: give a model that transformers itself has the code of"
    )


def _lacks_fast_tokenizer(attempt: Attempt) -> str | None:
    """That there is a tokenizer, but in a form that only other libraries read."""
    if attempt.what != "tokenizer" or (attempt.folder / "tokenizer.json").exists():
        return None
    return (
        f"there is no tokenizer.json in {attempt.folder}, and what is there cannot be "
        f"made into one here: {_one_line(attempt.error)}. Copy tokenizer.json from the "
        "model that it was made of, or install what is named"
    )


def _is_of_unknown_kind(attempt: Attempt) -> str | None:
    """That transformers does not know the architecture."""
    from transformers import CONFIG_MAPPING, __version__

    model_type = attempt.config.get("model_type")
    if attempt.what != "configuration":
        return None
    if model_type is None:
        return (
            f"{attempt.folder / CONFIG} has no model_type, which names the "
            "architecture: copy the file from the model that it was made of"
        )
    if model_type in CONFIG_MAPPING:
        return None
    return (
        f"transformers {__version__} does not know the architecture {model_type!r}, "
        f"its model_type in {CONFIG}: if it is a new one, `pip install --upgrade "
        "transformers` may bring it"
    )


def _is_quantised(attempt: Attempt) -> str | None:
    """That the weights are quantised in a way that cannot be loaded here."""
    settings = _quantisation_settings(attempt.folder)
    if settings is None:
        return None
    if not isinstance(settings, dict):
        return (
            f"quantization_config in {attempt.folder / CONFIG} is {shown(settings)}, "
            "not a JSON object: mend it, or copy or download the file again"
        )
    if attempt.what != "weights":
        return None
    return (
        f"its weights are quantised by {quantisation_in(attempt.folder)}, and "
        f"transformers cannot load them here: {_one_line(attempt.error)}. {WHOLE_MODEL}"
    )


def quantisation_in(folder: Path) -> str | None:
    """What the weights of a checkpoint are quantised by, and what says so.

    None where its config.json names no quantisation.
    """
    settings = _quantisation_settings(folder)
    if not isinstance(settings, dict):
        return None
    method = str(settings.get("quant_method", "a method without a name"))
    name = QUANTISATIONS.get(method.lower(), method)
    form = settings.get("format")
    is_named = isinstance(form, str)
    return f"{name}{f', {form}' if is_named else ''} (quantization_config in {CONFIG})"


def _quantisation_settings(folder: Path) -> object:
    """What config.json says of a quantisation; None where it says nothing."""
    config = _json_object(folder / CONFIG)
    of_text = config.get("text_config")
    if "quantization_config" not in config and isinstance(of_text, dict):
        config = of_text
    return config.get("quantization_config")


def _lacks_library(attempt: Attempt) -> str | None:
    """That a library is not installed which this part needs."""
    if not isinstance(attempt.error, ImportError):
        return None
    return f"a library is missing. {_one_line(attempt.error)}. Install it"


def _has_cut_weights(attempt: Attempt) -> str | None:
    """That a file of weights is not whole, or none."""
    if attempt.what != "weights":
        return None
    from safetensors import safe_open

    for path in sorted(attempt.folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="pt"):
                pass
        except Exception as error:  # of safetensors' own, or of the system
            return damaged(path, error)
    return None


def damaged(path: Path, error: Exception) -> str:
    """What is wrong with a file of weights that cannot be opened, and what helps."""
    if is_lfs_pointer(path):
        return lfs_problem(path)
    size = path.stat().st_size if path.exists() else 0
    return (
        f"{path}, of {size:,} bytes, is cut off or damaged ({_one_line(error)}): copy "
        "or download it again"
    )


# In this order: what comes first explains what comes later.
REASONS: tuple[Callable[[Attempt], str | None], ...] = (
    _is_no_checkpoint,
    _has_lfs_pointer,
    _may_not_be_read,
    _has_no_json,
    _lacks_memory,
    _brings_code,
    _is_of_unknown_kind,
    _is_quantised,
    _lacks_fast_tokenizer,
    _lacks_library,
    _has_cut_weights,
)


def _json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty where it has none."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _one_line(error: BaseException) -> str:
    """What an error says, without the library's line breaks and final full stop."""
    said = " ".join(str(error).split()).rstrip(".")
    if "above report" in said:  # transformers has printed it, or was told not to
        return "some of them are missing, or not of the shapes that it converts"
    if isinstance(error, KeyError) or not said:  # which says the key alone
        return f"{type(error).__name__} {said}".rstrip()
    return said
