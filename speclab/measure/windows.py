"""Chooses a method's best window for a pair, on the virtual clock.

The pair's c and its acceptance rate have been measured. Toy models with the same c and
acceptance rate run the method with each window, which takes no time on a device.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from speclab.virtual.toy_requests import ToyCell, run_requests
from speclib.data.latency import Latency
from speclib.methods import METHODS
from speclib.trace.metrics import total

from .measurement import Window

REQUESTS, TOKENS = 4, 64  # for the toy models, with each window
LONGEST = 16


@lru_cache
def best_window(
    method: str,
    settings: tuple[tuple[str, Any], ...],
    c: float,
    acceptance_rate: float,
    cancel: str,
) -> Window:
    """The window from 1 to min(2c + 2, ``LONGEST``) with the most tokens per second.

    ``cancel``: how the pair's workers handle a cancelled operation.
    """
    longest = min(LONGEST, round(2 * c + 2))
    speeds = {}
    for gamma in range(1, longest + 1):
        cell = ToyCell(
            method=METHODS[method],
            latency=Latency.ratio(c),
            alpha=acceptance_rate,
            tokens=TOKENS,
            settings=dict(settings) | {"gamma": gamma},
            cancel=cancel,
        )
        speeds[gamma] = total(run_requests(cell, REQUESTS)).decode_speed
    fastest = max(speeds, key=speeds.__getitem__)
    return Window(
        fastest,
        f"fastest of 1..{longest} on the virtual clock at c {c:.3g}, acceptance rate "
        f"{acceptance_rate:.2f}",
    )
