"""Named TOML files: found by their path under a folder, and read with clear errors.

This module knows nothing about their content.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from speclib.errors import BadValue, unknown_name


def read_toml(
    folder: Path, name: str, problem: str, advice: str = ""
) -> dict[str, Any]:
    """The content of ``<folder>/<name>.toml``.

    If there is no such file, raises UnknownName with the ``problem``, the known names
    and ``advice``. If it is not TOML, raises BadValue with its path.
    """
    path = toml_path(folder, name)
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadValue(f"{path} is not TOML in UTF-8: {error}") from error
    except (OSError, ValueError) as error:  # ValueError: not a possible path
        raise unknown_name(problem, name, names_under(folder), advice) from error


def toml_path(folder: Path, name: str) -> Path:
    """The path of the file called ``name``."""
    return folder / f"{name}.toml"


def names_under(folder: Path) -> list[str]:
    """The names of all TOML files under ``folder``, at any depth."""
    names = []
    for path in folder.rglob("*.toml"):
        names.append(path.relative_to(folder).with_suffix("").as_posix())
    return sorted(names)
