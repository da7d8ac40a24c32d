"""Finds official benchmark files, which replace our own prompts in measurements."""

from __future__ import annotations

import os
from pathlib import Path

from speclib.data import prompts
from speclib.errors import BadValue

OFFICIAL_PROMPTS = os.environ.get("SPECLIB_PROMPTS")


def official_folder(task: str) -> Path | None:
    """The folder of a task's official prompts; None if our own are used.

    The environment variable SPECLIB_PROMPTS names a folder of official files (see
    ``prompts.load``). Tasks without a file there use our prompts. Raises BadValue if
    SPECLIB_PROMPTS is not a folder, or contains no official file.
    """
    if not OFFICIAL_PROMPTS:
        return None
    folder = Path(OFFICIAL_PROMPTS)
    if not folder.is_dir():
        raise BadValue(
            f"SPECLIB_PROMPTS is {str(folder)!r}, which is not a folder: set it to a "
            "folder with official files, or unset it"
        )
    files = {
        str(prompts.path_of(name, ""))
        for name in (*prompts.tasks(), prompts.MATH_REASONING)
    }
    if not any((folder / file).is_file() for file in files):
        raise BadValue(
            f"SPECLIB_PROMPTS is {str(folder)!r}, which contains no official file: put "
            f"any of {', '.join(sorted(files))} there, or unset it"
        )
    return folder if prompts.path_of(task, folder).is_file() else None
