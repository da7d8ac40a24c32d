"""Why a checkpoint cannot be loaded, in words: what is wrong with it, and what helps.

The commonest causes have a sentence each. For all others the message names the file,
what the library says, and the next step. Importing this module imports neither torch
nor transformers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from speclib.errors import BadValue, nearest_name
from speclib.paths import FETCHED

CONFIG = "config.json"
NEXT_STEP = "Copy or download the checkpoint again, or give another one"


def path_problem(model: str) -> str | None:
    """What is wrong with a model's name; None for a folder, or what may be a hub id."""
    path = Path(os.path.abspath(model))
    try:
        if path.is_dir():
            return None
        if path.parent == FETCHED:
            return f"it is not here yet: `python -m speclib fetch {path.name}`"
        if path.exists():
            return (
                f"{path} is a file: give the folder of a transformers checkpoint, or a "
                'file whose name ends in ".gguf"'
            )
    except (OSError, ValueError) as error:  # a name that no path can have
        return f"this is no path ({error}): give a folder or a hub id"
    if _may_be_on_hub(model):
        return None
    names = []
    if path.parent.is_dir():
        names = [folder.name for folder in path.parent.iterdir() if folder.is_dir()]
    nearest = nearest_name(path.name, names)
    guess = "" if nearest is None else f" Did you mean {nearest!r}?"
    return (
        f"there is no folder {path}.{guess} Give a folder that is there, zoo/<name> or "
        "a hub id, as owner/name"
    )


def _may_be_on_hub(model: str) -> bool:
    """Whether the hub could have a model of this name."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils._validators import validate_repo_id

    try:
        validate_repo_id(model)
    except HFValidationError:
        return False
    return True


def hub_problem(model: str, error: Exception) -> BadValue:
    """The error that says why a model cannot be downloaded from the hub."""
    from huggingface_hub import constants, errors

    causes = list(_causes(error))
    if any(isinstance(cause, errors.GatedRepoError) for cause in causes):
        reason = (
            f"it is gated. Accept its licence at {constants.ENDPOINT}/{model}, then "
            "log in by `hf auth login`"
        )
    elif any(isinstance(cause, errors.RepositoryNotFoundError) for cause in causes):
        reason = (
            f"there is no folder of this name, and {constants.ENDPOINT} has no such "
            "model, or it is private: check the id, or log in by `hf auth login`"
        )
    else:
        reason = (
            "there is no folder of this name, it is not in the cache, "
            f"{constants.HF_HUB_CACHE}, and {constants.ENDPOINT} cannot be reached "
            f"({one_line(error)}). Connect this machine, unset HF_HUB_OFFLINE, or give "
            "a folder"
        )
    return BadValue(f"cannot load model {model!r}: {reason}")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, what it was raised from, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def load_problem(model: str, what: str, folder: Path, error: Exception) -> BadValue:
    """The error that says why the part ``what`` in a ``folder`` cannot be loaded."""
    reason = f"{one_line(error)}. {NEXT_STEP}"
    if not (folder / CONFIG).is_file():
        reason = (
            f"there is no {CONFIG}, so it is no transformers checkpoint. Give the "
            "folder of one (an adapter must first be merged with its base model)"
        )
    elif "custom code" in str(error):
        reason = (
            "it is loaded by Python code that comes with it, and speclib runs no code "
            "of a checkpoint: give a model that transformers itself has the code of"
        )
    elif "quantiz" in str(error).lower() and what == "weights":
        reason = (
            f"its weights are quantised, and transformers cannot load them here: "
            f"{one_line(error)}. Give the checkpoint that it was made of"
        )
    return BadValue(f"cannot load the {what} of model {model!r} in {folder}: {reason}")


def damaged(path: Path, error: Exception) -> BadValue:
    """The error that says that a file of weights cannot be opened."""
    size = path.stat().st_size if path.exists() else 0
    return BadValue(
        f"{path}, of {size:,} bytes, is cut off or damaged, or a Git LFS pointer "
        f"({one_line(error)}): copy or download it again"
    )


def one_line(error: BaseException) -> str:
    """What an error says, without the library's line breaks and final full stop."""
    said = " ".join(str(error).split()).rstrip(".")
    if "above report" in said:  # which transformers was told not to print
        return "some weights are missing, or not of the shapes that it converts"
    if isinstance(error, KeyError) or not said:  # which says the key alone
        return f"{type(error).__name__} {said}".rstrip()
    return said
