"""Which windows and settings a virtual or emulated spec stands for, settled once.

    Spec (asks)  ->  settle, once  ->  VirtualCell, its baseline's too  ->  an engine

A spec may ask for "the window that is round(c)", for the best window, or for the best
of several settings. ``settle`` answers with numbers, trying virtual cells where it
must. What it answers is handed on: nobody searches again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from speclab.experiment import cache, cache_keys
from speclab.experiment.spec import Spec, first_part, present
from speclib.data.latency import load_latency
from speclib.decoding.auto_settings import gamma_at
from speclib.trace.metrics import Stats, total

from .virtual_cell import VirtualCell, key_of

PATIENCE = 2  # a search stops after so many windows in a row that are slower
LONGEST = 32  # and at this window


@dataclass(frozen=True)
class Settled:
    """A virtual or emulated spec whose windows and settings are settled.

    asked     the spec as it was asked for
    cell      the same with a number as its window and one value per setting
    baseline  what it is compared with, its window settled as well
    c         seconds of a target pass over those of a draft pass
    facts     how they were settled: see ``CellResult``
    """

    asked: Spec
    cell: VirtualCell
    baseline: VirtualCell
    c: float
    facts: dict[str, Any]


@dataclass(frozen=True)
class Found:
    """What a search or a choice came to: a window that is a number, single settings.

    ``facts`` say what was tried. Of a search, it is tokens per second by window, after
    the first commit; of a choice, the settings taken.
    """

    gamma: int | None
    settings: list[tuple[str, Any]]
    facts: dict[str, Any] = field(default_factory=dict)


class NotSettled(Exception):
    """A search or a choice that was not made yet, where none may be made."""


def settle(spec: Spec, *, search: bool = True) -> Settled:
    """Settles the windows and settings of a virtual spec and of its baseline.

    With ``search=False`` nothing is run. Then NotSettled is raised where a search is
    not in the cache.
    """
    c = load_latency(present(spec.latency)).c_of_batch(spec.batch)
    own_spec, facts = settle_alone(spec.changed(over=None), c, search=search)
    cell = VirtualCell(own_spec)
    if own_spec.method == "autoregressive":
        return Settled(spec, cell, cell, c, facts)  # it is its own baseline

    baseline_spec, _ = settle_alone(spec.baseline, c, search=search)
    if spec.over:
        facts = facts | {"over": (baseline_spec.method, baseline_spec.gamma)}
    return Settled(spec, cell, VirtualCell(baseline_spec), c, facts)


def settle_alone(
    spec: Spec, c: float, *, search: bool = True
) -> tuple[Spec, dict[str, Any]]:
    """A spec with its own window and settings settled, and the facts of how.

    A choice is made by the speed of all tokens, as a paper's grid search has it. What a
    search found is stored in the cache.
    """
    if not (spec.is_choice or spec.gamma == "best"):
        return settle_window(spec, c), {}

    key = cache_keys.digest("settled", key_of(spec))
    stored = cache.load(key, Found, Found)
    if stored is not None:
        found = stored.header
    elif search:
        found = _fastest_choice(spec, c) if spec.is_choice else _best_window(spec, c)
        cache.save(key, found, [])
    else:
        raise NotSettled(spec.name)

    settings = tuple((name, value) for name, value in found.settings)
    return spec.changed(gamma=found.gamma, settings=settings), found.facts


def settle_window(spec: Spec, c: float) -> Spec:
    """The spec with a number in place of "auto", "c-2", ...; nothing is tried."""
    if not isinstance(spec.gamma, str):
        return spec
    return spec.changed(gamma=gamma_at(spec.gamma, c))


def _best_window(spec: Spec, c: float) -> Found:
    speeds = try_windows(spec, c)
    fastest = max(speeds, key=speeds.__getitem__)
    searched = {str(gamma): speed for gamma, speed in speeds.items()}
    return Found(fastest, list(spec.settings), {"searched": searched})


def _fastest_choice(spec: Spec, c: float) -> Found:
    speeds: dict[Spec, float] = {}
    for choice in spec.choices:
        cell = settle_window(choice, c)
        speeds[cell] = total(_stats_of_first_part(cell)).decode_speed_e2e
    fastest = max(speeds, key=speeds.__getitem__)
    gamma = fastest.gamma
    assert gamma is None or isinstance(gamma, int)  # it is settled
    facts = {"chosen": dict(fastest.settings), "of": len(speeds)}
    return Found(gamma, list(fastest.settings), facts)


def _stats_of_first_part(spec: Spec) -> list[Stats]:
    """What a search goes by, however many requests there are."""
    requests = first_part(spec)
    return VirtualCell(spec).load_or_run(requests).stats[:requests]


def try_windows(spec: Spec, c: float) -> dict[int, float]:
    """Windows that were tried, in order of length -> tokens per second.

    The search goes uphill from round(c), to longer windows and then to shorter ones:

        shorter <---- round(c) ----> longer

    Each way it goes on until some windows in a row are slower than the best before
    them.
    """
    speeds: dict[int, float] = {}

    def speed_at(gamma: int) -> float:
        if gamma not in speeds:
            stats = _stats_of_first_part(spec.changed(gamma=gamma))
            speeds[gamma] = total(stats).decode_speed
        return speeds[gamma]

    start = max(1, round(c))
    _climb(range(start, LONGEST + 1), speed_at)
    _climb(range(start, 0, -1), speed_at)
    return dict(sorted(speeds.items()))


def _climb(windows: Iterable[int], speed_at: Callable[[int], float]) -> None:
    """Try windows in order until PATIENCE in a row are no faster than the best."""
    best = 0.0
    slower_in_a_row = 0
    for gamma in windows:
        speed = speed_at(gamma)
        if speed > best:
            best = speed
            slower_in_a_row = 0
        else:
            slower_in_a_row += 1
        if slower_in_a_row == PATIENCE:
            return
