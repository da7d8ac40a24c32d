"""The registry of methods: a new one needs a file, an import and a line in METHODS.

A method's ``ABOUT`` contains the facts that timelines, planners, tests and "auto" use.

Methods import ``core``, the types of ``worlds`` and the results of ``operations``, but
never time, randomness, torch or models. Every registered method is tested for
losslessness in all its variants.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import Any

from speclib.arguments import shown
from speclib.errors import BadCall, unknown_name
from speclib.worlds.world import World

from .assisted import assisted
from .autoregressive import autoregressive
from .dsi import dsi
from .duodecoding import duodecoding
from .eagle import eagle
from .easyspec import easyspec
from .lookahead import lookahead
from .method_facts import About
from .ouroboros import ouroboros
from .pearl import pearl
from .prompt_lookup import prompt_lookup
from .rest import rest
from .speculative import speculative
from .ssd import ssd
from .tree_speculative import tree

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "dsi",
    "lookahead",
    "pearl",
    "speculative",
    "ssd",
)


def in_a_world(method: Callable[..., None]) -> Callable[..., None]:
    """Wraps a method so that it raises BadCall if it is called without a World."""
    name = method.__name__

    @wraps(method)
    def run(world: World, *args: Any, **settings: Any) -> None:
        if not isinstance(world, World):
            raise BadCall(
                f"{name}() was called with {shown(world)}: a method runs in a World. "
                f"Give it one, or call speclib.decode(text, method={name!r})"
            )
        method(world, *args, **settings)

    return run


METHODS: dict[str, Callable[..., None]] = {
    method.__name__: in_a_world(method)
    for method in (
        autoregressive,
        speculative,
        pearl,
        ssd,
        assisted,
        prompt_lookup,
        dsi,
        duodecoding,
        lookahead,
        ouroboros,
        rest,
        tree,
        easyspec,
        eagle,
    )
}
globals().update(METHODS)  # so that `from speclib.methods import pearl` checks, too


def find(
    name: str,
    settings: Iterable[str] = (),
    caller: Callable[..., object] | None = None,
) -> Callable[..., None]:
    """The method registered as ``name``.

    ``settings``: names of settings that the method must have; ``gamma`` is always
    allowed. ``caller``: the function that the user called; an unknown setting may be a
    misspelling of one of its arguments. Raises SpeclibError, listing the known names,
    for an unknown method or setting.
    """
    if name not in METHODS:
        raise unknown_name(f"unknown method {name!r}", name, METHODS)
    known = ["gamma", *parameters(name)]
    for setting in settings:
        if setting not in known:
            problem = f"method {name!r} has no parameter {setting!r}"
            if caller is not None:
                known += _arguments(caller)
            raise unknown_name(problem, setting, dict.fromkeys(known))
    return METHODS[name]


def _arguments(function: Callable[..., object]) -> list[str]:
    """The names of a function's arguments, except for ``**settings``."""
    arguments = signature(function).parameters.values()
    return [each.name for each in arguments if each.kind is not each.VAR_KEYWORD]


def about(method: str) -> About:
    """The ``ABOUT`` in a method's source file; if it has none, just the name."""
    only_the_name = About(name=method)
    if method not in METHODS:
        return only_the_name
    module = sys.modules[METHODS[method].__module__]
    facts: About = getattr(module, "ABOUT", only_the_name)
    return facts


def parameters(method: str) -> list[str]:
    """The settings of a registered method: all its parameters but ``world``."""
    return [name for name in signature(METHODS[method]).parameters if name != "world"]


def settings_of_methods() -> set[str]:
    """The settings of all registered methods; plain decoding has none."""
    return {setting for method in METHODS for setting in parameters(method)}


def takes_gamma(method: str) -> bool:
    """Whether a registered method has a draft length to choose."""
    return "gamma" in parameters(method)
