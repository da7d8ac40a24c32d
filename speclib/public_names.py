"""A package's public names, each imported when it is first used."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module

from speclib.errors import naming_extras, unknown_name


def load(
    package: str, name: str, module_of_name: Mapping[str, str], known: Collection[str]
) -> object:
    """What ``name`` stands for in ``package``.

    ``module_of_name``: the module of each name, or what is itself the module that the
    name stands for. ``known``: the names that a mistake is told.

    Raises AttributeError for an unknown name, MissingExtra where it needs a library
    that is not installed, and NoProcesses where it needs worker processes.
    """
    if name not in module_of_name:
        message = f"module {package!r} has no attribute {name!r}"
        raise AttributeError(str(unknown_name(message, name, known)))
    with naming_extras(f"{package}.{name}"):
        module = import_module(module_of_name[name])
    is_module = module_of_name[name] == f"{package}.{name}"
    return module if is_module else getattr(module, name)
