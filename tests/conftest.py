"""Shared by all tests: no network, every registered method in every variant, one decoding loop."""

from __future__ import annotations

import inspect
import os
import signal
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import settings

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests share the cores
signal.signal(
    signal.SIGINT, signal.default_int_handler
)  # shells ignore it in the background
settings.register_profile(
    "same every time", derandomize=True, deadline=None, database=None
)
settings.load_profile("same every time")

from speclib import paths  # noqa: E402
from speclib.core.sampling import Coins, Sampler  # noqa: E402
from speclib.data.latency import Latency  # noqa: E402
from speclib.methods import METHODS, VARIANTS  # noqa: E402
from speclib.trace.events import Trace  # noqa: E402
from speclib.worlds.virtual import Virtual  # noqa: E402


class Case(NamedTuple):
    """One registered method in one of its variants."""

    name: str
    method: Callable
    settings: dict

    def at(self, *gammas: int) -> list[dict]:
        """Its settings at each gamma; once, where it takes none."""
        if "gamma" not in inspect.signature(self.method).parameters:
            return [self.settings]
        return [{**self.settings, "gamma": gamma} for gamma in gammas]

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{k}={v}" for k, v in self.settings.items())])


CASES = [
    Case(name, method, settings)
    for name, method in METHODS.items()
    for settings in VARIANTS.get(name, [{}])
]


FIRST = {"assisted", "lookahead", "rest", "tree"}  # of these the first variant is fast


def _marked(case: Case):
    later = case.name in FIRST and case.settings != VARIANTS[case.name][0]
    return pytest.param(case, marks=pytest.mark.slow if later else ())


@pytest.fixture(params=map(_marked, CASES), ids=str, scope="module")
def case(request) -> Case:
    """Every registered method in every variant: registering a method is enough to test it."""
    return request.param


@pytest.fixture
def own_cache(tmp_path, monkeypatch) -> None:
    """Cells of this test alone."""
    monkeypatch.setattr(paths, "CACHE", tmp_path)


@pytest.fixture(scope="session")
def decode() -> Callable:
    """decode(method, models, limit, ...) -> (output tokens, trace), on the virtual clock."""

    def decode(
        method,
        models: dict,
        limit: int,
        *,
        prompt=(0,),
        sampler=None,
        coins=None,
        eos=frozenset(),
        latency=None,
        **settings,
    ) -> tuple[tuple[int, ...], Trace]:
        world = Virtual(models, latency or Latency.ratio(3))
        world.begin(
            prompt,
            sampler=sampler or Sampler(),
            coins=coins or Coins(),
            limit=limit,
            eos=eos,
        )
        method(world, **settings)
        return world.text[len(prompt) :], world.end(prompt=list(prompt), **settings)

    return decode
