"""Measured cost ratios on disk: all runs of one pair on one machine go by the same c.

A file lies in ``paths.CACHE/cost_ratios``. Its name is a hash of all that c depends on:
the two models with their weights, where each device is, the number format, the code
that computes, the machine and the libraries. Where one of them changes, no file is
found, and c is measured anew.

A ratio with a wide interval is not stored, nor is one of a busy machine. Two processes
may measure at once: the first one to finish stores its ratio, and the other one takes
it over.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import asdict

from speclib import machine
from speclib.models import fingerprint
from speclib.models.dtypes import TORCH_NAMES
from speclib.models.open_pair import OpenPair

from . import kept_files
from .cost_ratio import CostRatio

FOLDER = "cost_ratios"
BUSY = 1.5  # runnable processes per core in the last minute; our own are at most 1


def environment() -> tuple[str, ...]:
    """What a ratio depends on beside models and code."""
    return (platform.node(), platform.processor(), platform.python_version())


def busyness() -> float:
    """Runnable processes per core in the last minute."""
    return os.getloadavg()[0] / machine.cores()


def key_of(opened: OpenPair, dtype: str, servers: int) -> str | None:
    """What the ratio of a pair with so many ``servers`` is stored under.

    None where it is not known which weights a model has: then nothing is stored.
    """
    pair, place = opened.pair, opened.place
    weights = [fingerprint.of_weights(spec) for spec in (pair.target, pair.draft)]
    if None in weights:
        return None
    places = [place.of("draft")]
    for index in range(servers):
        places.append(place.of("target", index))

    parts = (
        pair.target.model_dump_json(),
        pair.draft.model_dump_json(),
        opened.runtime("target"),
        opened.runtime("draft"),
        weights,
        places,
        place.threads,
        TORCH_NAMES[dtype],
        fingerprint.of_code(),
        environment(),
    )
    return kept_files.key_of(parts)


def load_or_measure(key: str, measure: Callable[[], CostRatio]) -> CostRatio:
    """The ratio that is stored under ``key``; else one that is measured now."""
    stored = load(key)
    if stored is not None:
        return stored
    measured = measure()

    # Another process may have stored its own in the meantime.
    stored = load(key)
    if stored is not None:
        return stored
    keep(key, measured)
    return measured


def measure_anew(key: str, measure: Callable[[], CostRatio]) -> CostRatio:
    """A ratio that is measured now, whatever was stored before."""
    measured = measure()
    keep(key, measured)
    return measured


def keep(key: str, ratio: CostRatio) -> None:
    """Stores ``ratio``, unless the machine was too disturbed to tell it.

    Where others compete for the cores all the while, an interval may be narrow about a
    wrong value, and a wrong value that is stored stays wrong.
    """
    if ratio.is_worth_keeping and busyness() <= BUSY:
        save(key, ratio)


# -- files -----------------------------------------------------------------------------
def load(key: str) -> CostRatio | None:
    """The ratio that was stored under ``key``; None if there is none that is whole."""
    stored = kept_files.load(FOLDER, key)
    try:
        return None if stored is None else CostRatio(**stored)
    except TypeError:
        return None  # of another version


def save(key: str, ratio: CostRatio) -> None:
    """Stores ``ratio`` instead of what was stored before."""
    kept_files.save(FOLDER, key, asdict(ratio))
