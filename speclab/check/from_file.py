"""Loads a rule from a user's own file, given as ``path/to/file.py:function``.

This lets another project check its rule in a script or in CI:
``python -m speclab check kernels/accept.py:accept``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from speclib.errors import BadValue, unknown_name

FORM = "path/to/file.py:function"


def load_rule(named: str) -> Callable[..., Any]:
    """Runs the file, and returns the function that ``named`` refers to.

    Raises BadValue if ``named`` does not have this form, if the file is missing or
    raises an error, or if it does not define the function.
    """
    file, _, name = named.rpartition(":")
    if not file or not name:
        raise BadValue(f"the rule is {named!r}: write {FORM}")
    module = _module_of(Path(file))
    rule = getattr(module, name, None)
    if rule is None:
        functions = [key for key, value in vars(module).items() if callable(value)]
        raise unknown_name(f"no {name!r} in {file}", name, sorted(functions))
    if not callable(rule):
        raise BadValue(f"{name} in {file} is not a function")
    found: Callable[..., Any] = rule
    return found


def _module_of(path: Path) -> ModuleType:
    """Loads a file as a module, which can import modules from its own folder."""
    if not path.is_file():
        raise BadValue(f"no file {path}: write {FORM}")
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise BadValue(f"{path} is not a Python file")
    module = module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    arguments = sys.argv
    sys.argv = [str(path)]  # the file should not read our own arguments
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise BadValue(f"{path} raises {type(error).__name__}: {error}") from error
    finally:
        sys.argv = arguments
        sys.path.remove(str(path.parent))
    return module


def array_called(name: str) -> Callable[[Any], Any]:
    """Looks up the function that converts the rows for a rule.

    ``name``: ``numpy``, ``list``, ``torch``, or ``module:function`` of any library.
    """
    if name == "numpy":
        return np.array
    if name == "list":
        return list
    module, _, function = ("torch:tensor" if name == "torch" else name).partition(":")
    try:
        made: Callable[[Any], Any] = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError):
        raise BadValue(
            f"array is {name!r}: give numpy, list, torch, or module:function of an "
            "installed library"
        ) from None
    return made
