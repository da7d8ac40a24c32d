"""One virtual cell whose window and settings are numbers: from the cache, or run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from speclab.experiment import cache, cache_keys
from speclab.experiment.cells import toy_requests as virtual_cells
from speclab.experiment.cells.toy_requests import RequestOutcome, ToyCell
from speclab.experiment.spec import Spec, present
from speclib.data.latency import load_latency
from speclib.methods import METHODS
from speclib.paths import DATA
from speclib.trace.metrics import Stats

CODE = (
    "speclab.experiment.cells.toy_requests",
)  # enters the key, with all that it imports


@dataclass(frozen=True)
class VirtualHeader:
    """What is stored of a cell besides its requests.

    ``seconds``: what it took to run.
    """

    spec: dict[str, Any]
    created: str
    seconds: float


@dataclass(frozen=True)
class VirtualOutcome:
    """What came of a cell. ``cached``: whether the cache had it."""

    header: VirtualHeader
    outcomes: list[RequestOutcome]
    cached: bool

    @property
    def stats(self) -> list[Stats]:
        return [outcome.stats for outcome in self.outcomes]


class VirtualCell:
    """A virtual spec whose window and settings are numbers (see ``settle``).

    key    the name that it is stored under
    toys   what it asks of its world and of its method
    """

    def __init__(self, spec: Spec):
        self.spec = spec

    @cached_property
    def key(self) -> str:
        return key_of(self.spec)

    @cached_property
    def toys(self) -> ToyCell:
        return toy_cell(self.spec)

    def load(self, requests: int = 1) -> VirtualOutcome | None:
        """What came of it, from the cache, if it has so many requests or more."""
        stored = cache.load(self.key, VirtualHeader, RequestOutcome)
        if stored is None or len(stored.lines) < requests:
            return None
        return VirtualOutcome(stored.header, stored.lines, cached=True)

    def load_or_run(self, requests: int | None = None) -> VirtualOutcome:
        """The same, and run as far as it is not there; None: all requests."""
        requests = self.spec.requests if requests is None else requests
        earlier = self.load()
        if earlier is not None and len(earlier.outcomes) >= requests:
            return earlier

        started = time.perf_counter()
        outcomes = [] if earlier is None else earlier.outcomes
        outcomes = outcomes + virtual_cells.run_requests(
            self.toys, requests - len(outcomes), first=len(outcomes)
        )
        seconds = time.perf_counter() - started
        if earlier is not None:
            seconds += earlier.header.seconds
        header = VirtualHeader(
            spec=self.spec.model_dump(mode="json"),
            created=f"{datetime.now():%Y-%m-%d %H:%M}",
            seconds=round(seconds, 3),
        )
        cache.save(self.key, header, outcomes)
        return VirtualOutcome(header, outcomes, cached=False)


def toy_cell(spec: Spec) -> ToyCell:
    """What a virtual or emulated spec asks of its world and its method."""
    settings = dict(spec.settings)
    if spec.gamma is not None:
        settings["gamma"] = spec.gamma
    return ToyCell(
        method=METHODS[spec.method],
        latency=load_latency(present(spec.latency)).lengthened(spec.per_token),
        alpha=present(spec.alpha),
        tokens=spec.tokens,
        settings=settings,
        temperature=spec.temperature,
        seed=spec.seed,
        cancel=spec.cancel or virtual_cells.IMMEDIATE,
        doubt=spec.doubt,
        batch=spec.batch,
        with_tail=spec.with_tail,
    )


def key_of(spec: Spec) -> str:
    """The cell's name: a hash of the spec, of the code it runs, of its latency file."""
    return cache_keys.digest(
        spec.model_dump_json(exclude={"over"}),
        cache_keys.hash_of_method(METHODS[spec.method], *CODE),
        cache_keys.hash_of_files(DATA / "latency" / f"{spec.latency}.toml"),
    )
