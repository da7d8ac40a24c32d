"""What enters the cache key of a cell: texts, files, and the code that computes it.

Code enters a key through the modules that a cell imports, directly or not, without
their comments and docstrings. An edit elsewhere, or of prose, leaves the key as it was.
The walk through the imports begins at the modules in ``experiment/cells/``; a measured
cell also names the modules of the models it loads.

Knows no method and no statistic.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[2]
PACKAGES = ("speclib", "speclab")  # in FOLDER: all code that is ours

# This module imports every method, and a cell depends on its own method only. The walk
# therefore does not enter it.
METHOD_REGISTRY = "speclib.methods"
# No cell has its devices in a cluster: one that a cluster's node measures has all of
# them there.
CLUSTER = "speclib.worlds.cluster"


# -- values and files
# --------------------------------------------------------------------
def digest(*parts: object) -> str:
    """Hash values of any kind that has a faithful ``repr`` or ``str``.

    Bytes are hashed as they are, everything else through ``str``. Each part is preceded
    by its length, so that ("ab", "c") and ("a", "bc") differ.
    """
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part if isinstance(part, bytes) else str(part).encode()
        hasher.update(len(raw).to_bytes(8, "little") + raw)
    return hasher.hexdigest()


def hash_of_files(*files: Path) -> str:
    """Hash the names and contents of files; a missing file counts as missing."""
    parts: list[str | bytes] = []
    for file in files:
        parts.append(file.name)
        parts.append(file.read_bytes() if file.is_file() else "missing")
    return digest(*parts)


# -- code
# --------------------------------------------------------------------------------
def hash_of_method(method: Callable[..., object], *roots: str) -> str:
    """Hash the code of a cell: its method, and the modules ``roots`` that run it.

    A method that is defined elsewhere, in a notebook for instance, counts with its own
    source alone.
    """
    if is_foreign(method):
        return digest(inspect.getsource(method), hash_of_code(roots))
    return hash_of_code((method.__module__, *roots))


def is_foreign(method: Callable[..., object]) -> bool:
    """Whether a method lives outside our packages: other processes cannot import it."""
    return method.__module__.split(".")[0] not in PACKAGES


@cache
def hash_of_code(roots: tuple[str, ...], folder: Path = FOLDER) -> str:
    """Hash the code of ``roots`` and all they import, less comments and docstrings."""
    parts = []
    for name, path in sorted(imported_modules(roots, folder).items()):
        parts.append(name)
        parts.append(_read_module(name, path).meaning)
    return digest(*parts)


def imported_modules(roots: Iterable[str], folder: Path = FOLDER) -> dict[str, Path]:
    """Find ``roots`` and every module of ours that they import, at any depth.

    Imports inside functions count too. The registry of methods and what clusters need
    are left out. Returns the file of each module by the module's name.
    """
    modules: dict[str, Path] = {}
    to_visit = list(roots)
    while to_visit:
        name = to_visit.pop()
        path = _file_of_module(name, folder)
        if name in modules or name == METHOD_REGISTRY or path is None:
            continue
        if name == CLUSTER or name.startswith(f"{CLUSTER}."):
            continue
        modules[name] = path
        to_visit.extend(_read_module(name, path).imported_names)
    return modules


def _file_of_module(name: str, folder: Path) -> Path | None:
    """The file of a module, or None if the name is no module of ours.

    A name may turn out to be a function, a class, or a module of another package.
    """
    parts = name.split(".")
    if parts[0] not in PACKAGES:
        return None
    path = folder.joinpath(*parts)
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


class ModuleCode(NamedTuple):
    """What a key needs of a module.

    ``imported_names`` are absolute. ``meaning`` is the syntax tree as text: without
    comments, and here without docstrings.
    """

    imported_names: tuple[str, ...]
    meaning: str


@cache
def _read_module(name: str, path: Path) -> ModuleCode:
    """Parse the module ``name`` once: most keys share most of their modules."""
    tree = ast.parse(path.read_text("utf-8"))
    is_package = path.name == "__init__.py"
    own_package = name.split(".") if is_package else name.split(".")[:-1]
    return ModuleCode(_imported_names(tree, own_package), _meaning(tree))


def _imported_names(tree: ast.Module, own_package: list[str]) -> tuple[str, ...]:
    """All names that a module of ``own_package`` imports, made absolute.

    ``from a import b`` gives both ``a`` and ``a.b``, since b may be a module or not.
    The caller drops those that are no modules.
    """
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute_origin(node, own_package)
            names.append(origin)
            names.extend(f"{origin}.{alias.name}" for alias in node.names)
    return tuple(imported for imported in names if imported not in PACKAGES)


def _absolute_origin(node: ast.ImportFrom, own_package: list[str]) -> str:
    """The module after ``from``, made absolute: in speclab.views.x, ``..papers`` is
    speclab.papers."""
    parts = []
    if node.level:
        parts = own_package[: len(own_package) - node.level + 1]
    if node.module:
        parts = [*parts, node.module]
    return ".".join(parts)


def _meaning(tree: ast.Module) -> str:
    """A module's syntax tree as text; its docstrings are removed from the tree."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        if ast.get_docstring(node) is not None:
            del node.body[0]
    return ast.dump(tree)
