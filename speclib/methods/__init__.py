"""The registry: a new method is one file here and one line below.

Methods import ``tokens`` and know ``World`` only: never time, randomness, torch or models.
"""

from collections.abc import Callable, Iterable
from inspect import signature

from speclib.errors import SpeclibError

from .assisted import assisted
from .autoregressive import autoregressive
from .dsi import dsi
from .duodecoding import duodecoding
from .easyspec import easyspec
from .lookahead import lookahead
from .pearl import pearl
from .prompt_lookup import prompt_lookup
from .rest import rest
from .speculative import speculative
from .tree_speculative import tree

METHODS = {
    "autoregressive": autoregressive,
    "speculative": speculative,
    "pearl": pearl,
    "assisted": assisted,
    "prompt_lookup": prompt_lookup,
    "dsi": dsi,
    "duodecoding": duodecoding,
    "lookahead": lookahead,
    "rest": rest,
    "tree": tree,
    "easyspec": easyspec,
}

# What these ask for depends on what ends first: their runs are not each other's on another clock.
BY_TIME = {"dsi"}

# The settings in which every method is tested; `gamma` is added where a method takes one.
VARIANTS = {
    "pearl": [{}, {"without": "pre-verify"}, {"without": "post-verify"}],
    "dsi": [{"lookahead": 1}, {"lookahead": 3}, {"lookahead": 2, "test": "ratio"}],
    "duodecoding": [{}, {"k": 1}, {"k": 3}],
    "lookahead": [{"window": 3, "ngram": 3, "guesses": 2}, {"window": 1, "ngram": 4}],
    "rest": [{}, {"longest": 1, "length": 3, "nodes": 5}],
    "tree": [{"width": 2}, {"width": 3, "budget": 4}],
    "easyspec": [{"width": 2}, {"width": 1, "lp": 3, "calibrate": False}],
    "assisted": [{}, {"num_assistant_tokens": 2, "schedule": "heuristic"}],
}


def find(name: str, settings: Iterable[str] = ()) -> Callable:
    """The method registered as ``name``. Raises SpeclibError listing what is known, if there is
    none, or if it lacks one of ``settings`` (names; ``gamma`` aside, which every method ignores
    that has no draft length)."""
    if name not in METHODS:
        raise SpeclibError(f"unknown method {name!r}; known: {', '.join(METHODS)}")
    known = [p for p in parameters(name) if p != "gamma"]
    for key in settings:
        if key not in known:
            raise SpeclibError(
                f"method {name!r} has no parameter {key!r}; known: "
                f"{', '.join(['gamma', *known]) if known else 'none besides gamma'}"
            )
    return METHODS[name]


def parameters(method: str) -> list[str]:
    """What a registered method can be told, besides its world."""
    return [name for name in signature(METHODS[method]).parameters if name != "world"]


def takes_gamma(method: str) -> bool:
    """Whether a registered method has a draft length to choose."""
    return "gamma" in parameters(method)
