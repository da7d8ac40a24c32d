"""Chooses numbers for the windows and settings of a virtual or emulated spec.

A spec may request the window round(c), the best window, or the best of several
settings. ``settle`` replaces these with numbers. If necessary, it tries candidates on
the virtual clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from speclab.runs.spec import ToySpec
from speclab.traces.counts import Counts
from speclib.data.latency import load_latency
from speclib.decoding.auto_settings import gamma_at
from speclib.methods import METHODS
from speclib.trace.metrics import total

from .toy_requests import IMMEDIATE, ToyCell, run_requests

PATIENCE = 2  # a search stops after this many slower windows in a row,
LONGEST = 32  # or at a window of this length


class Settled(NamedTuple):
    """A spec with a number as its window and one value per setting.

    c    the time of a target pass divided by the time of a draft pass
    how  the choice in words; empty if there was nothing to choose
    """

    spec: ToySpec
    c: float
    how: str = ""


@lru_cache(maxsize=4096)
def settle(spec: ToySpec) -> Settled:
    """Chooses the window and the settings of a virtual or emulated spec.

    Settings are compared by their speed over all tokens, as in a paper's grid search.
    """
    c = load_latency(spec.latency).c_of_batch(spec.batch)
    if spec.is_choice:
        chosen, count = _fastest_choice(spec, c)
        settings = ", ".join(f"{name}={value}" for name, value in chosen.settings)
        return Settled(chosen, c, f"{settings}: the fastest of {count} choices")
    if spec.gamma == "best":
        speeds = try_windows(spec, c)
        fastest = max(speeds, key=speeds.__getitem__)
        how = f"fastest of the windows {min(speeds)} to {max(speeds)}"
        return Settled(spec.changed(gamma=fastest), c, how)
    return Settled(settle_window(spec, c), c)


def settle_baseline(spec: ToySpec) -> Settled:
    """Chooses the window of a spec's baseline."""
    return settle(spec if spec.method == "autoregressive" else spec.baseline)


def settle_window(spec: ToySpec, c: float) -> ToySpec:
    """The spec with a number for "auto", "c-2" and so on, which needs no trial."""
    if not isinstance(spec.gamma, str):
        return spec
    return spec.changed(gamma=gamma_at(spec.gamma, c))


def toy_cell(spec: ToySpec) -> ToyCell:
    """The cell of a settled virtual or emulated spec."""
    settings = dict(spec.settings)
    if spec.gamma is not None:
        settings["gamma"] = spec.gamma
    return ToyCell(
        method=METHODS[spec.method],
        latency=load_latency(spec.latency).lengthened(spec.per_token),
        alpha=spec.alpha,
        tokens=spec.tokens,
        settings=settings,
        temperature=spec.temperature,
        seed=spec.seed,
        cancel=spec.cancel or IMMEDIATE,
        doubt=spec.doubt,
        batch=spec.batch,
        with_tail=spec.with_tail,
    )


@lru_cache(maxsize=512)  # many cells share a baseline or a search's windows
def outcomes_of(spec: ToySpec) -> list[Counts]:
    """The counts of every request of a settled virtual spec."""
    return run_requests(toy_cell(spec), spec.requests)


def _fastest_choice(spec: ToySpec, c: float) -> tuple[ToySpec, int]:
    speeds: dict[ToySpec, float] = {}
    for choice in spec.choices:
        cell = settle_window(choice, c)
        speeds[cell] = total(_stats_of_first_part(cell)).decode_speed_e2e
    return max(speeds, key=speeds.__getitem__), len(speeds)


def _stats_of_first_part(spec: ToySpec) -> list[Counts]:
    """The counts of the requests on which a search compares candidates."""
    return run_requests(toy_cell(spec), spec.first_part)


def try_windows(spec: ToySpec, c: float) -> dict[int, float]:
    """Tokens per second with each window that was tried, in order of length.

    The search starts at round(c), and tries longer windows and then shorter ones:

        shorter <---- round(c) ----> longer

    In each direction it stops after ``PATIENCE`` windows in a row that are no faster
    than the best so far.
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
    """Tries windows in order until PATIENCE in a row are no faster than the best."""
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
