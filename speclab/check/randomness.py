"""Detects whether a rule draws its own random numbers, which advances a generator.

We watch the global generators of ``random``, numpy and PyTorch, and all generators that
the rule's code can reach by a global name, a closure, a default or an attribute. A
generator that the rule creates itself goes unnoticed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from inspect import getclosurevars, isfunction, ismethod, unwrap
from typing import Any, NamedTuple

import numpy as np

from speclab.check.calls import call_of

DEEPEST = 3  # levels of nested calls that we search


class ModulesAndStates(NamedTuple):
    """The number of loaded modules, and the states of generators."""

    modules: int
    states: list[str]


def modules_and_states(rule: Callable[..., Any]) -> ModulesAndStates:
    """The states of the generators that ``rule`` may draw from."""
    states = [repr(random.getstate()), repr(np.random.get_state())]
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_rng_state"):  # it may be half loaded
        states.append(repr(torch.get_rng_state().tolist()))
    for generator in _generators_in(rule, DEEPEST):
        states.append(_state_of(generator))
    return ModulesAndStates(len(sys.modules), states)


def _state_of(generator: Any) -> str:
    if isinstance(generator, np.random.Generator):
        return repr(generator.bit_generator.state)
    if isinstance(generator, np.random.RandomState):
        return repr(generator.get_state())
    if isinstance(generator, random.Random):
        return repr(generator.getstate())
    return repr(generator.get_state().tolist())  # PyTorch's


def _is_generator(value: Any) -> bool:
    if isinstance(value, random.SystemRandom):  # it has no state
        return False
    kinds = (np.random.Generator, np.random.RandomState, random.Random)
    torch = sys.modules.get("torch")
    is_torchs = torch is not None and isinstance(value, getattr(torch, "Generator", ()))
    return is_torchs or isinstance(value, kinds)


def _generators_in(value: Any, depth: int) -> Iterator[Any]:
    """The generators that a callable can reach."""
    if _is_generator(value):
        yield value
    elif depth:
        for inner in _reached_by(value):
            yield from _generators_in(inner, depth - 1)


def _reached_by(value: Any) -> list[Any]:
    """The values that a callable can reach by name."""
    try:
        return _named_in(value)
    except Exception:  # an empty cell, or a user's own class
        return []


def _named_in(value: Any) -> list[Any]:
    value = unwrap(value) if callable(value) else value
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if ismethod(value):
        return [value.__self__, value.__func__]
    if isfunction(value):
        names = getclosurevars(value)
        defaults = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        return [*names.nonlocals.values(), *names.globals.values(), *defaults]
    if callable(value) and not isinstance(value, type):
        return [*getattr(value, "__dict__", {}).values(), call_of(value)]
    return []
