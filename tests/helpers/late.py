"""Modules that are imported when they are first used: ``late.nbformat.read(...)``.

Every process that runs tests imports all of their files. A module that takes seconds to
import, and that only a few tests use, would be paid for in each of these processes.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

SLOW = ("nbformat",)


def __getattr__(name: str) -> ModuleType:
    if name not in SLOW:
        raise AttributeError(f"helpers.late has no module {name!r}")
    return import_module(name)
