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

from speclib.errors import BadValue, SpeclibError, unknown_name
from speclib.paths import DATA, IS_CHECKOUT, MODELS

from .file_states import State, remembered, state_of_path
from .load_errors import CONFIG, path_problem, with_reason

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

ZOO = MODELS  # where the embedded checkpoints are
CHECKSUMS = DATA / "models" / "SHA256SUMS"  # what each of their files must be
WEIGHTS = "model.safetensors"

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
    match SHA256SUMS, and for a path that is no folder.
    """
    if not model.startswith("zoo/"):
        problem = None if model.endswith(".gguf") else path_problem(model)
        if problem is not None:
            raise BadValue(f"model {model!r}: {problem}")
        return model
    folder = ZOO / model.removeprefix("zoo/")
    if not (folder / WEIGHTS).exists():
        _check_name(model)
        raise BadValue(
            f"embedded model {model!r} is missing in {folder}: {how_to_get()}"
        )
    _check(folder, state_of_path(folder), state_of_path(CHECKSUMS))
    return str(folder)


def _check_name(model: str) -> None:
    """Raises UnknownName for a name that no embedded model has."""
    names = [f"zoo/{file.split('/')[0]}" for file in checksums()]
    known = sorted(set(names))
    if model not in known:
        raise unknown_name(f"unknown embedded model {model!r}", model, known)


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
