"""Official benchmark files, which are measured in place of our own prompts."""

from __future__ import annotations

import os
from pathlib import Path

from speclib.data import prompts
from speclib.errors import BadValue

OFFICIAL_PROMPTS = os.environ.get("SPECLIB_PROMPTS")


def official_folder(task: str) -> Path | None:
    """Where prompts are taken from when a method is measured; None: they are ours.

    The environment variable SPECLIB_PROMPTS names a folder of official files (see
    ``prompts.load``). Tasks that it lacks are ours. Raises BadValue where it is no
    folder, and where it has no official file at all.
    """
    if not OFFICIAL_PROMPTS:
        return None
    folder = Path(OFFICIAL_PROMPTS)
    if not folder.is_dir():
        raise BadValue(
            f"SPECLIB_PROMPTS is {str(folder)!r}, which is no folder: name one that "
            "has official files, or leave it out"
        )
    files = {
        str(prompts.path_of(name, ""))
        for name in (*prompts.tasks(), prompts.MATH_REASONING)
    }
    if not any((folder / file).is_file() for file in files):
        raise BadValue(
            f"SPECLIB_PROMPTS is {str(folder)!r}, which has no official file: it may "
            f"have {', '.join(sorted(files))}; or leave it out"
        )
    return folder if prompts.path_of(task, folder).is_file() else None
