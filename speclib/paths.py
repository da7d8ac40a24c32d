"""Where the project's files are. Knows no formats: only folders.

    ROOT    what is read: data and notebooks. The checkout, or what a wheel has of it
    HOME    what is written: reports, caches and locks. The checkout too, or ~/.speclib
            where a wheel is installed, unless SPECLIB_HOME names another folder, as for
            a checkout that is read-only
    MODELS  the embedded models. A checkout has them in its data. A wheel has none:
            they are fetched into HOME

A SPECLIB_HOME with a folder ``data`` of its own is another copy of the project, of
which everything is read there as well.
"""

from __future__ import annotations

import os
from pathlib import Path

from speclib.errors import SpeclibError
from speclib.installed import CHECKOUT, DATA_OF_WHEEL, IS_CHECKOUT


def _usual_home() -> Path:
    """The folder that is written to where SPECLIB_HOME names none."""
    return CHECKOUT if IS_CHECKOUT else Path(os.path.expanduser("~/.speclib"))


HOME = Path(os.environ.get("SPECLIB_HOME") or _usual_home()).absolute()
if (HOME / "data").is_dir():
    ROOT, DATA, MODELS = HOME, HOME / "data", HOME / "data" / "models"
elif IS_CHECKOUT:
    ROOT, DATA, MODELS = CHECKOUT, CHECKOUT / "data", CHECKOUT / "data" / "models"
else:
    ROOT, DATA, MODELS = DATA_OF_WHEEL, DATA_OF_WHEEL, HOME / "models"
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
