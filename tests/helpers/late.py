"""Modules that are imported on first use: ``late.nbformat.read(...)``.

Every test process imports all test files. Without this, each of them would spend
seconds on importing a module that only a few tests use.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

SLOW = ("nbformat",)


def __getattr__(name: str) -> ModuleType:
    if name not in SLOW:
        raise AttributeError(f"helpers.late has no module {name!r}")
    return import_module(name)
