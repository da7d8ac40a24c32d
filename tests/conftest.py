"""Fixtures and settings for all tests: no network, every method, a decoding loop."""

from __future__ import annotations

import inspect
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import settings as hypothesis_settings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests share the cores
os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # Ray works only in a joined cluster

# Shells ignore interrupts in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis_settings.register_profile(
    "same every time", derandomize=True, deadline=None, database=None
)
hypothesis_settings.load_profile("same every time")

from helpers.limits import LIMITS  # noqa: E402
from helpers.ray_nodes import (  # noqa: E402, F401
    note_next_test,
    ray_nodes,
    tests_with_nodes_first,
)

from speclib import paths  # noqa: E402
from speclib.core.sampling import Coins, Sampler  # noqa: E402
from speclib.core.settings import EndTokens  # noqa: E402
from speclib.data.latency import Latency  # noqa: E402
from speclib.methods import METHODS, about  # noqa: E402
from speclib.trace.events import Trace  # noqa: E402
from speclib.worlds.virtual import Virtual  # noqa: E402


# -- every method, in every variant ----------------------------------------------------
class Case(NamedTuple):
    """One registered method in one of its variants."""

    name: str
    method: Callable[..., None]
    settings: dict[str, Any]

    def at(self, *gammas: int) -> list[dict[str, Any]]:
        """Returns its settings at each gamma, or once if it takes no gamma."""
        if "gamma" not in inspect.signature(self.method).parameters:
            return [self.settings]
        return [{**self.settings, "gamma": gamma} for gamma in gammas]

    def __str__(self) -> str:
        shown = [f"{name}={value}" for name, value in self.settings.items()]
        return " ".join([self.name, *shown])


# Only the first variant of these methods is fast enough for the usual tests.
BRIEF_BUT_FOR_THE_FIRST = {"assisted", "lookahead", "rest", "tree"}


def every_case(*, first_variants: bool = False) -> Iterator[Any]:
    """Yields all methods in all variants; those that take minutes are marked.

    With ``first_variants``, every variant except a method's first is marked.
    """
    for name, method in METHODS.items():
        for number, settings in enumerate(about(name).variants):
            is_brief = not first_variants and name not in BRIEF_BUT_FOR_THE_FIRST
            marks = [] if number == 0 or is_brief else [pytest.mark.thorough]
            yield pytest.param(Case(name, method, settings), marks=marks)


@pytest.fixture(params=every_case(), ids=str, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    """Every variant of every registered method."""
    return request.param


@pytest.fixture(params=every_case(first_variants=True), ids=str, scope="module")
def main_case(request: pytest.FixtureRequest) -> Case:
    """Every method in its first variant; the thorough tests try the others.

    It is for slow tests of a claim that a quick test covers for every variant.
    """
    return request.param


# -- one cluster for all tests that need one, and time limits --------------------------
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests_with_nodes_first(items)
    for item in items:
        _limit(item)


def _limit(item: pytest.Item) -> None:
    """Gives a marked test its limit, unless it sets one itself.

    A test that uses the process's only alarm sets its own limit, because limits use
    that alarm by default.
    """
    if item.get_closest_marker("timeout"):
        return
    for marker, seconds in LIMITS.items():
        if item.get_closest_marker(marker):
            item.add_marker(pytest.mark.timeout(seconds))
            return


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    note_next_test(nextitem)


# -- fixtures --------------------------------------------------------------------------
@pytest.fixture
def own_cache(tmp_path, monkeypatch) -> None:
    """A separate, empty cache of cells for this test."""
    monkeypatch.setattr(paths, "CACHE", tmp_path)


def decode_on_the_virtual_clock(
    method: Callable[..., None],
    models: Mapping[str, Any],
    limit: int,
    *,
    prompt: tuple[int, ...] = (0,),
    sampler: Sampler | None = None,
    coins: Coins | None = None,
    eos: EndTokens = (),
    latency: Latency | None = None,
    **settings: Any,
) -> tuple[tuple[int, ...], Trace]:
    """Runs ``method`` for ``limit`` tokens; returns its output and the trace.

    By default, decoding is greedy and c is 3.
    """
    world = Virtual(models, latency or Latency.ratio(3))
    world.begin(
        prompt,
        sampler=sampler or Sampler(),
        coins=coins or Coins(),
        limit=limit,
        eos=eos,
    )
    method(world, **settings)
    output = world.text[len(prompt) :]
    return output, world.end(prompt=list(prompt), **settings)


@pytest.fixture(scope="session")
def decode() -> Callable[..., tuple[tuple[int, ...], Trace]]:
    return decode_on_the_virtual_clock
