"""The files of a checkpoint: where they are on this machine, and which are missing.

A checkpoint is a folder, or an id of the hub, whose files are in the hub's cache once
they were downloaded. Its weights are in one file of safetensors, or in several *shards*
that an index names. Importing this module imports neither torch nor transformers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from speclib.errors import BadValue

from .file_states import hubs_copy
from .load_errors import damaged, is_lfs_pointer, lfs_problem, with_reason
from .zoo import locate

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
OTHER_FORMATS = ("*.bin", "*.pt", "*.pth", "*.h5", "*.msgpack", "*.gguf")


class StoredWeight(NamedTuple):
    """Where a weight is, and how many numbers it has in each dimension."""

    path: Path
    shape: tuple[int, ...]


class Copy(NamedTuple):
    """What this machine has of a checkpoint.

    folder: where its files are.
    missing: the names of those that are not there.
    """

    folder: Path
    missing: tuple[str, ...]


def copy_of(model: str) -> Copy | None:
    """This machine's copy of a checkpoint; None for a hub id of which it has nothing.

    Raises BadValue for an embedded model that is missing or damaged, and for an index
    that cannot be read.
    """
    folder = _folder(model)
    if folder is None:
        return None
    if (folder / WEIGHTS).is_file():
        return Copy(folder, ())
    if not (folder / INDEX).is_file():
        return Copy(folder, (WEIGHTS,))

    shards = sorted(set(_weight_map(folder / INDEX).values()))
    missing = tuple(name for name in shards if not (folder / name).is_file())
    return Copy(folder, missing)


def check(model: str) -> None:
    """Raises BadValue for a checkpoint that this machine lacks files of.

    What the hub's cache lacks is left to the download, unless this machine is offline.
    """
    copy = copy_of(model)
    if copy is not None and not copy.missing:
        return
    if copy is None or not Path(locate(model)).is_dir():
        _check_hub(model)
        return
    for name in copy.missing:
        if (copy.folder / name).is_symlink():
            raise BadValue(
                f"model {model!r}: {copy.folder / name} is a link to "
                f"{(copy.folder / name).readlink()}, where no file is: copy or "
                "download it again"
            )
    if copy.missing == (WEIGHTS,):
        raise BadValue(
            f"model {model!r} has no weights in {copy.folder}: give it {WEIGHTS}, or "
            f"shards with {INDEX}. {_advice_on_formats(copy.folder)}"
        )
    names = ", ".join(copy.missing[:3]) + (", ..." if copy.missing[3:] else "")
    raise BadValue(
        f"model {model!r} lacks {len(copy.missing)} of the files that {INDEX} names in "
        f"{copy.folder}: {names}. Copy or download it again"
    )


def _advice_on_formats(folder: Path) -> str:
    """What to do about the weights in other formats that a folder has."""
    others: list[Path] = []
    for pattern in OTHER_FORMATS:
        others += sorted(folder.glob(pattern))
    if not others:
        return "Weights in other formats are not read"
    return (
        f"{others[0].name} is in a format that is not read: write it as safetensors, "
        "by transformers' from_pretrained and then save_pretrained of this folder"
    )


def _check_hub(model: str) -> None:
    """Raises BadValue where nothing can be downloaded."""
    from huggingface_hub import is_offline_mode
    from huggingface_hub.errors import OfflineModeIsEnabled

    if is_offline_mode():
        raise with_reason(model, "weights", OfflineModeIsEnabled())


def stored_weights(model: str) -> dict[str, StoredWeight]:
    """Each weight of a checkpoint -> the file that it is in, and its shape.

    What the hub's cache lacks is downloaded. Raises BadValue where a file is missing,
    not whole or out of reach.
    """
    check(model)
    copy = copy_of(model)
    folder = _download(model) if copy is None or copy.missing else copy.folder
    names = [WEIGHTS]
    if not (folder / WEIGHTS).is_file():
        names = sorted(set(_weight_map(folder / INDEX).values()))

    weights = {}
    for name in names:
        with opened(folder / name) as file:
            for weight in file.keys():  # noqa: SIM118, it is no dict
                shape = tuple(file.get_slice(weight).get_shape())
                weights[weight] = StoredWeight(folder / name, shape)
    return weights


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
        raise BadValue(damaged(path, error)) from error
    with file:
        yield file


def _folder(model: str) -> Path | None:
    """Where the files of a model are; None for a hub id that is not in the cache."""
    location = Path(locate(model))
    if location.is_dir():
        return location
    return hubs_copy(model)


def _weight_map(index: Path) -> dict[str, str]:
    """Weight -> name of its file, as an index has it."""
    if is_lfs_pointer(index):
        raise BadValue(lfs_problem(index))
    try:
        content = json.loads(index.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise _no_index(index, str(error)) from error

    weight_map = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise _no_index(index, "it has no weight_map")
    if not all(isinstance(name, str) for name in weight_map.values()):
        raise _no_index(index, "its weight_map has a name that is no text")
    return weight_map


def _no_index(index: Path, reason: str) -> BadValue:
    return BadValue(
        f"{index} is no index of a checkpoint ({reason}): copy or download it again"
    )


def _download(model: str) -> Path:
    """Brings a hub model's weights into the hub's cache; the folder they are in."""
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.errors import EntryNotFoundError

    try:
        try:
            index = hf_hub_download(model, INDEX)
        except EntryNotFoundError:  # all of it is in one file
            return Path(hf_hub_download(model, WEIGHTS)).parent
        shards = sorted(set(_weight_map(Path(index)).values()))
        return Path(snapshot_download(model, allow_patterns=[INDEX, *shards]))
    except BadValue:
        raise
    except Exception as error:  # of many kinds, and of its libraries'
        raise with_reason(model, "weights", error) from error
