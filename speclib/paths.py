"""Where the project's files are. Knows no formats: only folders.

    ROOT    what is read: data and notebooks. The checkout
    HOME    what is written: reports, caches and locks. The checkout too, unless
            SPECLIB_HOME names another folder, as for a checkout that is read-only

A SPECLIB_HOME with a folder ``data`` of its own is another copy of the project, of
which everything is read there as well.
"""

from __future__ import annotations

import os
from pathlib import Path

from speclib.errors import SpeclibError

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent

HOME = Path(os.environ.get("SPECLIB_HOME") or CHECKOUT).absolute()
ROOT = HOME if (HOME / "data").is_dir() else CHECKOUT
DATA = ROOT / "data"
REPORTS = HOME / "reports"
CACHE = HOME / ".cache"

WITHOUT_DATA = (
    f"There is no folder {DATA}: install a checkout by `pip install -e .`, or let "
    "SPECLIB_HOME name one"
)

# Official benchmark files, which are measured instead of our own prompts.
OFFICIAL_PROMPTS = os.environ.get("SPECLIB_PROMPTS")


def cannot_write(path: Path, error: OSError) -> SpeclibError:
    """The error where nothing can be written to ``path``, which is below ``HOME``."""
    return SpeclibError(
        f"cannot write {path}: {error.strerror}. Set SPECLIB_HOME to a folder that you "
        "may write to: reports, caches and locks then go there"
    )
