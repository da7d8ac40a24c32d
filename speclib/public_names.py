"""A package's public names, each imported when it is first used."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module

from speclib.errors import naming_extras, unknown_name


def load(
    package: str, name: str, module_of_name: Mapping[str, str], known: Collection[str]
) -> object:
    """What ``name`` stands for in ``package``.

    ``module_of_name``: where each name is, from ``package`` on; a module that is called
    as the name is what it stands for. ``known``: the names that a mistake is told.

    Raises AttributeError for a name that is none, and MissingExtra where it needs a
    library that is not installed.
    """
    if name not in module_of_name:
        message = f"module {package!r} has no attribute {name!r}"
        raise AttributeError(str(unknown_name(message, name, known)))
    with naming_extras(f"{package}.{name}"):
        module = import_module(f".{module_of_name[name]}", package)
    return module if module_of_name[name] == name else getattr(module, name)
