"""What a model's files say is remembered until they change.

A configuration and a tokenizer take long to read and are asked for often, but somebody
may write other files into the same folder. Names, sizes and times of change tell
whether that has happened. Importing this module imports neither torch nor transformers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

State = tuple[tuple[str, int, int], ...]  # of each file: its name, size, time of change


def state_of(model: str) -> State:
    """The state of a model's files: a folder's, a .gguf, or the hub's newest copy here.

    Empty where there are none.
    """
    path = Path(model)
    if not path.exists():
        cached = hubs_copy(model)
        if cached is None:
            return ()
        path = cached
    return state_of_path(path)


def state_of_path(path: Path) -> State:
    """The state of a file, or of what a folder has in it; the time in nanoseconds."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    state = []
    for file in files:
        if file.exists():  # no link into nothing
            facts = file.stat()
            state.append((str(file), facts.st_size, facts.st_mtime_ns))
    return tuple(state)


def hubs_copy(model: str) -> Path | None:
    """The folder of the hub's cache that a hub id stands for now; None: it has none."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        config = try_to_load_from_cache(model, "config.json")
    except HFValidationError:
        return None  # a folder that does not exist
    return Path(config).parent if isinstance(config, str) else None


def remembered(
    locate: Callable[[str], str],
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Makes a function of models remember what it said, until their files change.

    ``locate``: where a model is. It is asked each time, and may refuse the model.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        known: dict[tuple[str, ...], tuple[tuple[State, ...], T]] = {}

        @wraps(function)
        def remember(*models: str) -> T:
            states = tuple(state_of(locate(model)) for model in models)
            earlier = known.get(models)
            if earlier is not None and earlier[0] == states:
                return earlier[1]
            value = function(*models)
            known[models] = (states, value)
            return value

        return remember

    return decorate
