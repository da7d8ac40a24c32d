"""Emulated cells: from the cache, or run several at once.

Each is the twin of a virtual cell: it has its toys, coins and windows, so it decides as
the virtual cell does. Its time over the virtual one is what real processes, messages
and verification cost. Devices sleep, so cells may run side by side; what that costs is
in the same ratio. A request is stored when it is done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import datetime

from speclib import machine
from speclib.errors import SpeclibError
from speclib.experiment import cache, cache_keys
from speclib.experiment.cells import emulated as emulated_cells
from speclib.experiment.spec import CellResult, Spec, present
from speclib.methods import METHODS
from speclib.paths import DATA
from speclib.progress import Progress
from speclib.trace.events import Trace
from speclib.trace.metrics import Stats, stats, total

from . import virtual
from .virtual_cell import toy_cell

CODE = (
    "speclib.experiment.cells.emulated",
)  # enters the key, with all that it imports
AT_ONCE = 16  # devices: on two idle cores they stay within 3 % of the virtual clock


@dataclass
class EmulatedHeader:
    """What is stored of a cell besides its requests.

    ``seconds``: what the requests took, processes included. ``trace``: of the first
    request, as JSON.
    """

    spec: dict
    machine: str
    created: str
    trace: str
    seconds: float = 0.0


class EmulatedCell:
    """A cell with a number as its window, and what is known of its requests so far.

    ``virtual_seconds``: what its requests take on the virtual clock.
    """

    def __init__(self, spec: Spec, virtual_seconds: float):
        self.spec = spec
        self.virtual_seconds = virtual_seconds
        self.key = key_of(spec)
        self.header: EmulatedHeader | None = None
        self.stats: list[Stats] = []  # of each request that is done
        stored = cache.load(self.key, EmulatedHeader, Stats)
        if stored is not None:
            self.header = stored.header
            self.stats = stored.rows
        self.was_cached = self.is_done

    @property
    def is_done(self) -> bool:
        return len(self.stats) >= self.spec.requests

    @property
    def devices(self) -> int:
        """Worker processes of a request: a draft and its targets."""
        return 1 + self.spec.servers

    @property
    def overruns(self) -> float:
        """Share of the operations that outlasted their latency."""
        counts = total(self.stats)
        return counts.overruns / counts.operations

    def run(self, on_commit: Callable) -> None:
        """Do the requests that are missing; ``on_commit`` is called at every commit."""
        toys = toy_cell(self.spec)
        for request in range(len(self.stats), self.spec.requests):
            started = time.perf_counter()
            trace = emulated_cells.trace_request(toys, request, on_commit)
            self._add(trace, seconds=time.perf_counter() - started)

    def _add(self, trace: Trace, seconds: float) -> None:
        """Add a finished request and store the cell."""
        if self.header is None:
            self.header = EmulatedHeader(
                spec=self.spec.model_dump(mode="json"),
                machine=machine.name(),
                created=f"{datetime.now():%Y-%m-%d %H:%M}",
                trace=trace.to_json(),
            )
        self.header.seconds += round(seconds, 3)
        self.stats.append(stats(trace))
        cache.save(self.key, self.header, self.stats)


@dataclass(frozen=True)
class Twins:
    """An emulated spec's virtual result, its cell, and the cell it is compared with."""

    virtual_result: CellResult
    cell: EmulatedCell
    baseline: EmulatedCell


def results(
    specs: list[Spec], bar: Progress
) -> Iterator[tuple[Spec, CellResult | Exception]]:
    """Each spec with its result, or the error it ended with.

    The virtual twins come first; then every emulated cell once, whatever shares it.
    """
    virtual_specs = {spec: spec.but(kind="virtual") for spec in specs}
    virtual_outcomes = dict(virtual.finish_all(list(virtual_specs.values()), bar))

    cells: dict[Spec, EmulatedCell] = {}
    twins_of: dict[Spec, Twins] = {}
    for spec in specs:
        outcome = virtual_outcomes[virtual_specs[spec]]
        if isinstance(outcome, virtual.Finished):
            twins_of[spec] = _twins(outcome, cells)

    unfinished = [cell for cell in cells.values() if not cell.is_done]
    errors = _run_cells(unfinished, bar)

    for spec in specs:
        outcome = virtual_outcomes[virtual_specs[spec]]
        if isinstance(outcome, Exception):
            yield spec, outcome
        else:
            yield spec, _result_or_error(spec, twins_of[spec], errors)


def _twins(finished: virtual.Finished, cells: dict[Spec, EmulatedCell]) -> Twins:
    """The twins of a virtual cell and its baseline; new ones enter ``cells``."""
    resolved, result = finished

    def shared_cell(virtual_spec: Spec, request_stats: list[Stats]) -> EmulatedCell:
        spec = _emulated(virtual_spec)
        if spec not in cells:
            cells[spec] = EmulatedCell(spec, total(request_stats).seconds)
        return cells[spec]

    return Twins(
        virtual_result=result,
        cell=shared_cell(resolved.cell, result.stats),
        baseline=shared_cell(resolved.baseline, result.baseline),
    )


def _emulated(virtual_spec: Spec) -> Spec:
    """A virtual cell's emulated twin; plain decoding is one cell for every method."""
    spec = virtual_spec.but(kind="emulated")
    return spec.plain_decoding if spec.method == "autoregressive" else spec


def _result_or_error(
    spec: Spec, twins: Twins, errors: dict[Spec, Exception]
) -> CellResult | Exception:
    """The virtual result with this clock's numbers; or why a cell of it failed."""
    cell, baseline = twins.cell, twins.baseline
    error = errors.get(cell.spec) or errors.get(baseline.spec)
    if error is not None:
        return error

    facts = {
        "overruns": max(cell.overruns, baseline.overruns),
        "over_virtual": round(total(cell.stats).seconds / cell.virtual_seconds, 4),
    }
    header = present(cell.header)
    return replace(
        twins.virtual_result,
        spec=spec,
        stats=cell.stats,
        baseline=baseline.stats,
        trace=header.trace,
        machine=header.machine,
        seconds=header.seconds,
        created=header.created,
        facts=twins.virtual_result.facts | facts,
        cached=cell.was_cached and baseline.was_cached,
    )


def _run_cells(cells: Iterable[EmulatedCell], bar: Progress) -> dict[Spec, Exception]:
    """Complete cells, the longest first; returns why by spec of those that failed."""
    longest_first = sorted(cells, key=lambda cell: -cell.virtual_seconds)
    bar.grow(len(longest_first))
    errors: dict[Spec, Exception] = {}
    for devices in sorted({cell.devices for cell in longest_first}):
        alike = [cell for cell in longest_first if cell.devices == devices]
        errors |= _run_side_by_side(alike, max(1, AT_ONCE // devices), bar)
    return errors


def _run_side_by_side(
    cells: list[EmulatedCell], at_once: int, bar: Progress
) -> dict[Spec, Exception]:
    """The same for cells with equally many devices, ``at_once`` of them at a time.

    An interrupt stops all of them at their next commit.
    """
    interrupted = threading.Event()

    def stop_if_interrupted(_tokens: object) -> None:
        if interrupted.is_set():
            raise SpeclibError("interrupted")

    errors: dict[Spec, Exception] = {}
    with ThreadPoolExecutor(at_once) as threads:
        cell_of: dict[Future, EmulatedCell] = {}
        for cell in cells:
            cell_of[threads.submit(cell.run, stop_if_interrupted)] = cell
        try:
            for future in as_completed(cell_of):
                spec = cell_of[future].spec
                error = future.exception()
                if isinstance(error, Exception):
                    errors[spec] = error
                elif error is not None:
                    raise error  # a KeyboardInterrupt, for instance
                bar.step(spec.name)
        finally:
            interrupted.set()
            threads.shutdown(cancel_futures=True)
    return errors


def key_of(spec: Spec) -> str:
    """The cell's name: a hash of spec, code, latency file and this machine."""
    return cache_keys.digest(
        spec.model_dump_json(exclude={"sweep", "over"}),
        cache_keys.hash_of_method(METHODS[spec.method], *CODE),
        cache_keys.hash_of_files(DATA / "latency" / f"{spec.latency}.toml"),
        machine.environment(),
    )
