"""A package's public names, each imported when it is first used."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module

from speclib.errors import naming_extras, unknown_name


def load(
    package: str, name: str, module_of_name: Mapping[str, str], known: Collection[str]
) -> object:
    """Imports the public ``name`` of ``package``.

    ``module_of_name``: maps a name to the module that defines it, or a module's name to
    that module. ``known``: the names that the error for an unknown name suggests.

    Raises AttributeError for an unknown name, MissingExtra if it needs a library that
    is not installed, and NoProcesses if it needs worker processes that this Python
    cannot start.
    """
    if name not in module_of_name:
        message = f"module {package!r} has no attribute {name!r}"
        raise AttributeError(str(unknown_name(message, name, known)))
    with naming_extras(f"{package}.{name}"):
        module = import_module(module_of_name[name])
    is_module = module_of_name[name] == f"{package}.{name}"
    return module if is_module else getattr(module, name)
