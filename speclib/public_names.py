"""A package's public names, each imported when it is first used; and its commands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from importlib import import_module

from speclib.errors import UnknownName, naming_extras, nearest_name, unknown_name

COMMANDS = ("fetch",)  # of `python -m speclib`
# Those of `python -m speclab`, so that each package can say what the other one has.
COMMANDS_OF_SPECLAB = (
    "audit",
    "check",
    "doctor",
    "fit",
    "lessons",
    "merge",
    "pictures",
    "plan",
    "reproduce",
    "run-notebook",
    "site",
    "store",
    "virtual",
)


def load(
    package: str, name: str, module_of_name: Mapping[str, str], known: Collection[str]
) -> object:
    """What ``name`` stands for in ``package``.

    ``module_of_name``: the module of each name, or what is itself the module that the
    name stands for. ``known``: the names that a mistake is told.

    Raises AttributeError for a name that is none, MissingExtra where it needs a library
    that is not installed, and NoProcesses where it needs worker processes.
    """
    if name not in module_of_name:
        message = f"module {package!r} has no attribute {name!r}"
        raise AttributeError(str(unknown_name(message, name, known)))
    with naming_extras(f"{package}.{name}"):
        module = import_module(module_of_name[name])
    is_module = module_of_name[name] == f"{package}.{name}"
    return module if is_module else getattr(module, name)


def unknown_command(package: str, word: str, functions: Iterable[str]) -> UnknownName:
    """The error for a ``word`` that is no command of ``package``.

    It names the command most like it, of either package, or a function of Python.
    """
    meant = {name: f"speclib.{name} in Python" for name in functions}
    meant |= {name: f"`python -m speclab {name}`" for name in COMMANDS_OF_SPECLAB}
    meant |= {name: f"`python -m speclib {name}`" for name in COMMANDS}

    problem = f"{package} has no command {word!r}"
    nearest = nearest_name(word, meant)
    if nearest is not None:
        return UnknownName(f"{problem}. Did you mean {meant[nearest]}?")
    return UnknownName(
        f"{problem}. `python -m speclib` has {', '.join(COMMANDS)}; "
        f"`python -m speclab` has {', '.join(COMMANDS_OF_SPECLAB)}"
    )
