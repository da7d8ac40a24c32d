"""Where checkpoints are: the embedded zoo, folders, hub ids.

Embedded checkpoints are compared with their checksums before anything of them is
loaded. A wheel has the checksums, and not the checkpoints, which ``fetch`` brings.
Importing this module imports neither torch nor transformers.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speclib.errors import BadValue, SpeclibError
from speclib.installed import IS_CHECKOUT
from speclib.paths import DATA, MODELS

from .file_states import State, remembered, state_of_path

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

ZOO = MODELS  # where the embedded checkpoints are
CHECKSUMS = DATA / "models" / "SHA256SUMS"  # what each of their files must be
WEIGHTS = "model.safetensors"
CONFIG = "config.json"

# What has a tokenizer's words; tokenizer_config.json only says how they are used.
TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.*",
    "*.model",
    "*.tiktoken",
    "tekken.json",
    "merges.txt",
)


def locate(model: str) -> str:
    """Where a model is: the folder of ``zoo/<name>``; any other name stays as it is.

    Raises BadValue for an embedded model that is missing, or whose files do not
    match SHA256SUMS.
    """
    if not model.startswith("zoo/"):
        return model
    folder = ZOO / model.removeprefix("zoo/")
    if not (folder / WEIGHTS).exists():
        raise BadValue(
            f"embedded model {model!r} is missing in {folder}: {how_to_get()}"
        )
    _check(folder, state_of_path(folder), state_of_path(CHECKSUMS))
    return str(folder)


def how_to_get() -> str:
    """What to do about an embedded model, or a file of one, that is not there."""
    fetch = "`python -m speclib fetch`"
    if not IS_CHECKOUT:
        return f"bring it by {fetch}, or let SPECLIB_HOME name a checkout, which has it"
    return (
        "restore it from the repository, train it with `make models`, which rewrites "
        f"the checksums, or bring it by {fetch}"
    )


@cache
def _check(folder: Path, state: State, state_of_sums: State) -> None:
    """Compares a folder's files with their committed checksums.

    That is done once in a process for each state of these files.
    """
    all_checksums = checksums()
    for path in sorted(folder.iterdir()):
        expected = all_checksums.get(path.relative_to(ZOO).as_posix())
        if expected is None and path.name == WEIGHTS:
            raise BadValue(
                f"embedded model file {path} has no line in {CHECKSUMS}: "
                "restore it from the repository, or run "
                "`python -m speclab.training checksums`, which writes the checksums"
            )
        if expected is None:
            continue  # a file of the system's, or the user's
        actual = hashlib.sha256(path.read_bytes()).hexdigest()
        if actual != expected:
            raise BadValue(
                f"embedded model file {path} does not match data/models/SHA256SUMS: "
                f"it is corrupt or changed; {how_to_get()}"
            )


def checksums() -> dict[str, str]:
    """Each file's path within the zoo -> its SHA-256, as SHA256SUMS states them."""
    path = CHECKSUMS
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadValue(
            f"the checksums of the embedded models, {path}, cannot be read: {error}. "
            "Restore the file from the repository"
        ) from error

    checksum_of_file = {}
    for line in lines:
        if not line.strip():
            continue
        fields = line.split(maxsplit=1)
        if len(fields) != 2:
            raise BadValue(
                f"{path} has the line {line!r}, which is no checksum and file: "
                "restore the file from the repository"
            )
        checksum, name = fields
        checksum_of_file[name] = checksum
    return checksum_of_file


def load_part(model: str, loader: Any, what: str, **options: Any) -> Any:
    """Loads a part of a checkpoint with transformers.

    loader: a class of transformers with ``from_pretrained``.
    what: the part's name, for the error.

    Raises BadValue with the model and the part, if it cannot be loaded.
    """
    try:
        return loader.from_pretrained(locate(model), trust_remote_code=False, **options)
    except SpeclibError:
        raise
    except Exception as error:  # a damaged file makes its reader raise anything
        raise with_reason(model, what, error) from error


def with_reason(model: str, what: str, error: Exception) -> BadValue:
    """The error that says why the part ``what`` of a model cannot be loaded."""
    reason = _hubs_reason(model, error)
    if reason is None and Path(model).is_dir():
        reason = _folders_reason(Path(model), error)
    if reason is None:
        reason = (
            f"{_one_line(error)}. Give zoo/<name>, a folder of a transformers "
            "checkpoint, or a hub id that this machine can reach"
        )
    return BadValue(f"cannot load the {what} of model {model!r}: {reason}")


def _folders_reason(folder: Path, error: Exception) -> str:
    """Why a part of a checkpoint in ``folder`` cannot be loaded."""
    if not (folder / CONFIG).is_file():
        return (
            f"there is no {CONFIG} in it, so that it is no folder of a transformers "
            "checkpoint. Give one, zoo/<name> or a hub id"
        )
    return (
        f"{_one_line(error)}. A file of this folder is damaged, or of another version "
        "of transformers: copy or download it again"
    )


def _one_line(error: Exception) -> str:
    """What an error says, without the library's line breaks and final full stop."""
    said = " ".join(str(error).split()).rstrip(".")
    if "above report" in said:  # transformers has printed it, or was told not to
        return "some of them are missing, or not of the shapes that it converts"
    return said


def _hubs_reason(model: str, error: BaseException) -> str | None:
    """What kept a model of the hub's from being read; None if it was something else.

    The libraries say it in paragraphs of their own; what they raise has the hub's own
    error as its cause.
    """
    from huggingface_hub import constants, errors

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, errors.GatedRepoError):
            return (
                f"it is gated. Accept its licence at {constants.ENDPOINT}/{model}, "
                "then log in by `hf auth login`"
            )
        if isinstance(cause, errors.RepositoryNotFoundError):
            return (
                f"{constants.ENDPOINT} has no such model, or it is private: check the "
                "id, or log in by `hf auth login`"
            )
        if isinstance(cause, errors.LocalEntryNotFoundError | ConnectionError):
            return (
                f"it is not in the cache, {constants.HF_HUB_CACHE}, and "
                f"{constants.ENDPOINT} cannot be reached. Connect this machine, unset "
                "HF_HUB_OFFLINE, or give a folder of a transformers checkpoint"
            )
        cause = cause.__cause__ or cause.__context__
    return None


@remembered(locate)
def tokenizer(model: str) -> PreTrainedTokenizerBase:
    """A checkpoint's tokenizer; raises BadValue where it has none, as has a .gguf."""
    if model.endswith(".gguf"):
        raise BadValue(
            f"{model} has no tokenizer for transformers: let the target be a "
            "checkpoint; its draft may be a .gguf"
        )
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    folder = Path(locate(model))
    is_checkpoint = (folder / CONFIG).is_file()
    has_words = any(any(folder.glob(pattern)) for pattern in TOKENIZER_FILES)
    if is_checkpoint and not has_words:  # transformers would make one without words
        raise BadValue(
            f"model {model!r} has no tokenizer in {folder}: copy tokenizer.json and "
            "tokenizer_config.json there, from the model that it was made of"
        )

    # For any Qwen2 AutoTokenizer cuts words as the original does, not as its file does.
    loader = PreTrainedTokenizerFast if model.startswith("zoo/") else AutoTokenizer
    loaded: PreTrainedTokenizerBase = load_part(model, loader, "tokenizer")
    return loaded
