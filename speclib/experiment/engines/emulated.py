"""Emulated cells from the cache, or run: each the twin of a virtual cell, several at a time.

A twin has the virtual cell's toys, coins and windows, so its decisions too: its time over the
virtual one is what real processes, messages and verification cost. Devices sleep, so cells may run
side by side; what that costs is in the same ratio. A request is stored when it is done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from datetime import datetime

from speclib.errors import SpeclibError
from speclib.experiment import cache, cache_keys, machine
from speclib.experiment.cells import emulated as emulated_cells
from speclib.experiment.spec import CellResult, Spec
from speclib.methods import METHODS
from speclib.paths import DATA
from speclib.progress import Progress
from speclib.trace.metrics import Stats, astuple, stats, total

from . import virtual as simulating

AT_ONCE = 16  # devices: on two idle cores they stay within 3 % of the virtual clock


class Cell:
    """A cell with a fixed window: a header, and a row per finished request. ``virtual``: the
    seconds that its requests take on the virtual clock."""

    def __init__(self, spec: Spec, virtual: float):
        self.spec, self.key, self.virtual = spec, key_of(spec), virtual
        self.header, self.rows = cache.load(self.key) or ({}, [])
        self.cached = self.whole

    @property
    def whole(self) -> bool:
        return len(self.rows) >= self.spec.requests

    @property
    def devices(self) -> int:
        """Worker processes of a request."""
        return 1 + self.spec.servers

    @property
    def stats(self) -> list[Stats]:
        return [Stats(*row["stats"]) for row in self.rows]

    @property
    def overruns(self) -> float:
        """Share of the operations that outlasted their latency."""
        counts = total(self.stats)
        return counts.overruns / counts.operations

    def run(self, go_on: Callable) -> Cell:
        """Does the requests that are missing; ``go_on`` is called at every commit."""
        spec = self.spec
        toy_cell = simulating._toy_cell(spec)
        for request in range(len(self.rows), spec.requests):
            started = time.perf_counter()
            trace = emulated_cells.trace_request(toy_cell, request, go_on)
            self.header = self.header or {
                "spec": spec.model_dump(mode="json"),
                "machine": machine.name(),
                "seconds": 0.0,
                "created": f"{datetime.now():%Y-%m-%d %H:%M}",
                "trace": trace.to_json(),
            }
            self.header["seconds"] += round(time.perf_counter() - started, 3)
            self.rows.append({"stats": astuple(stats(trace))})
            cache.save(self.key, self.header, self.rows)
        return self


def results(
    specs: list[Spec], bar: Progress
) -> Iterator[tuple[Spec, CellResult | Exception]]:
    """(spec, its run or the error it ended with); virtual twins first, then every cell once."""
    twins = dict(simulating.results([s.but(kind="virtual") for s in specs], bar))
    cells: dict[Spec, Cell] = {}
    for spec in specs:
        twin = twins[spec.but(kind="virtual")]
        if isinstance(twin, CellResult):
            fixed = _fixed(spec)
            for one, counts in ((fixed, twin.stats), (fixed.baseline, twin.baseline)):
                cells.setdefault(one, Cell(one, total(counts).seconds))
    failed = _emulate([cell for cell in cells.values() if not cell.whole], bar)
    for spec in specs:
        twin = twins[spec.but(kind="virtual")]
        yield (
            spec,
            twin
            if not isinstance(twin, CellResult)
            else _outcome(spec, twin, cells, failed),
        )


def _fixed(spec: Spec) -> Spec:
    """The cell behind a spec, settled on the virtual clock; plain decoding is every method's."""
    one = simulating.fixed(spec.but(kind="virtual")).but(kind=spec.kind)
    return one.baseline if one.method == "autoregressive" else one


def _outcome(
    spec: Spec, twin: CellResult, cells: dict[Spec, Cell], failed: dict[Spec, Exception]
) -> CellResult | Exception:
    """The twin with this clock's numbers."""
    fixed = _fixed(spec)
    error = failed.get(fixed) or failed.get(fixed.baseline)
    if error is not None:
        return error
    cell, plain = cells[fixed], cells[fixed.baseline]
    facts = {
        "overruns": max(cell.overruns, plain.overruns),
        "over_virtual": round(total(cell.stats).seconds / cell.virtual, 4),
    }
    head = cell.header
    return replace(
        twin,
        spec=spec,
        stats=cell.stats,
        baseline=plain.stats,
        trace=head["trace"],
        machine=head["machine"],
        seconds=head["seconds"],
        created=head["created"],
        facts=twin.facts | facts,
        cached=cell.cached and plain.cached,
    )


def _emulate(cells: Iterable[Cell], bar: Progress) -> dict[Spec, Exception]:
    """Completes cells, the longest first; returns why by spec of those that failed."""
    cells, failed = sorted(cells, key=lambda c: -c.virtual), {}
    bar.grow(len(cells))
    for devices in sorted({c.devices for c in cells}):
        failed |= _at_once(
            [c for c in cells if c.devices == devices], AT_ONCE // devices, bar
        )
    return failed


def _at_once(cells: list[Cell], at_once: int, bar: Progress) -> dict[Spec, Exception]:
    """The same, of cells with equally many devices, ``at_once`` of them side by side."""
    stopped, failed = threading.Event(), {}

    def go_on(_tokens) -> None:
        if stopped.is_set():
            raise SpeclibError("interrupted")

    with ThreadPoolExecutor(max(1, at_once)) as pool:
        running = {pool.submit(cell.run, go_on): cell.spec for cell in cells}
        try:
            for future in as_completed(running):
                error, spec = future.exception(), running[future]
                if isinstance(error, Exception):
                    failed[spec] = error
                elif error is not None:
                    raise error
                bar.step(spec.name)
        finally:
            stopped.set()
            pool.shutdown(cancel_futures=True)
    return failed


def key_of(spec: Spec) -> str:
    """The cell's name: a hash of the spec, its code, its latency file and this machine."""
    return cache_keys.digest(
        spec.model_dump_json(exclude={"sweep", "over"}),
        cache_keys.hash_of_method(
            METHODS[spec.method], "speclib.experiment.cells.emulated"
        ),
        cache_keys.hash_of_files(DATA / "latency" / f"{spec.latency}.toml"),
        machine.environment(),
    )
