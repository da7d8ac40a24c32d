"""How this package came here: as a checkout, or as a wheel that pip installed.

A checkout has its files beside the packages, in ``data/`` and ``notebooks/``. A wheel
has the small ones within it, in ``_data``: setup.py copies them when a wheel is built.
"""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent
DATA_OF_WHEEL = PACKAGE / "_data"
IS_CHECKOUT = not DATA_OF_WHEEL.is_dir()

CITATION = (CHECKOUT if IS_CHECKOUT else DATA_OF_WHEEL) / "CITATION.cff"
STATED = re.compile(r"^repository-code:\s*[\"']?([^\"'\s]+)", re.M)


def name_on_index() -> str:
    """What pip calls us, as pyproject.toml had it when we were installed."""
    from importlib.metadata import packages_distributions  # only a mistake needs it

    names = packages_distributions().get(PACKAGE.name, [PACKAGE.name])
    return names[0]


def stated_address(citation: str) -> str:
    """The address of the repository that a CITATION.cff states; "" without one."""
    found = STATED.search(citation)
    return found[1] if found else ""
