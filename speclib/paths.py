"""Where the project's files are. This module knows folders, not formats.

    PACKAGE the code. A checkout has the data next to it, in ``data/`` and
            ``notebooks/``. A wheel has the small data files inside it, in ``_data``;
            setup.py copies them there when it builds the wheel
    ROOT    files to read: data and notebooks. The checkout, or the wheel's part of it
    HOME    files to write: reports, caches and locks. The checkout, or ~/.speclib for
            an installed wheel, unless SPECLIB_HOME names another folder, for example
            because the checkout is read-only
    REPORTS where reports are written: in a checkout ``reports/local``, which git
            ignores, unless SPECLIB_REPORTS names another folder
    PUBLISHED the committed reports
    MODELS  the embedded models. A checkout has them in its data. A wheel has none:
            they are fetched into HOME
    FETCHED all other fetched models, each in its own folder

If SPECLIB_HOME contains a folder ``data``, it is another copy of the project, and
everything is read from there, too.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent
DATA_OF_WHEEL = PACKAGE / "_data"
IS_CHECKOUT = not DATA_OF_WHEEL.is_dir()


def _usual_home() -> Path:
    """The folder to write to if SPECLIB_HOME names none."""
    return CHECKOUT if IS_CHECKOUT else Path(os.path.expanduser("~/.speclib"))


HOME = Path(os.environ.get("SPECLIB_HOME") or _usual_home()).absolute()
if (HOME / "data").is_dir():
    ROOT, DATA, MODELS = HOME, HOME / "data", HOME / "data" / "models"
elif IS_CHECKOUT:
    ROOT, DATA, MODELS = CHECKOUT, CHECKOUT / "data", CHECKOUT / "data" / "models"
else:
    ROOT, DATA, MODELS = DATA_OF_WHEEL, DATA_OF_WHEEL, HOME / "models"
FETCHED = HOME / "models"
REPORTS = HOME / "reports"
if HOME.resolve() == CHECKOUT:
    REPORTS /= "local"
if "SPECLIB_REPORTS" in os.environ:
    REPORTS = Path(os.environ["SPECLIB_REPORTS"]).absolute()
PUBLISHED = ROOT / "reports"
CACHE = HOME / ".cache"

CITATION = (CHECKOUT if IS_CHECKOUT else DATA_OF_WHEEL) / "CITATION.cff"
STATED = re.compile(r"^repository-code:\s*[\"']?([^\"'\s]+)", re.M)


def stated_address(citation: str) -> str:
    """The repository's address in the text of a CITATION.cff; "" if it has none."""
    found = STATED.search(citation)
    return found[1] if found else ""
