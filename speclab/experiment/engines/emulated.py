"""Emulated cells: from the cache, or run several at once.

Each is the twin of a virtual cell: it has its toys, coins and windows, so it decides as
the virtual cell does. Its time over the virtual one is what real processes, messages
and verification cost. Devices sleep, so cells may run side by side; what that costs is
in the same ratio. A request is stored when it is done.

The virtual cell has more requests than its twin, which are the twin's replays.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from speclab.experiment import cache_keys, other_load
from speclab.experiment.cells import emulated_request as emulated_cells
from speclab.experiment.limits import NO_LIMITS, Limits
from speclab.experiment.spec import (
    CellFacts,
    CellResult,
    Replays,
    Spec,
    present,
)
from speclab.progress import Progress
from speclib import machine
from speclib.core.sampling import Tokens
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.paths import DATA
from speclib.trace.events import Trace
from speclib.trace.metrics import Stats, stats, total

from . import virtual
from .timed_cell import TimedCell, TimedHeader, TimedRequest
from .virtual_cell import toy_cell

CODE = (
    "speclab.experiment.cells.emulated_request",
)  # enters the key, with all that it imports
REPLAYS = 96  # requests of the virtual twin: they cost next to nothing
AT_ONCE = 16  # devices: on two idle cores they stay within 3 % of the virtual clock


class EmulatedCell(TimedCell[TimedHeader, TimedRequest]):
    """A cell with a number as its window, and what is known of its requests so far.

    ``virtual_seconds``: what its requests take on the virtual clock, one after the
    other.
    """

    def __init__(self, spec: Spec, virtual_seconds: list[float]):
        super().__init__(spec, key_of(spec), TimedHeader, TimedRequest)
        self.virtual_seconds = virtual_seconds

    @property
    def devices(self) -> int:
        """Worker processes of a request: a draft and its targets."""
        return 1 + self.spec.servers

    def run(
        self,
        numbers: list[int],
        limits: Limits,
        on_commit: Callable[[Tokens], object],
    ) -> None:
        """Do these requests, those done before once more.

        ``on_commit`` is called at every commit.
        """
        toys = toy_cell(self.spec)
        for number in numbers:
            if limits.is_over:
                return
            start = other_load.read_clocks()
            trace = emulated_cells.trace_request(toys, number, on_commit)
            seconds = time.monotonic() - start.wall
            others = other_load.others_since(start)
            self._add(number, trace, others, seconds)

    def _add(self, number: int, trace: Trace, others: float, seconds: float) -> None:
        """Adds a finished request, and stores the cell."""
        if self.header is None:
            self.header = TimedHeader(
                spec=self.spec.model_dump(mode="json"),
                machine=machine.name(),
                created=f"{datetime.now():%Y-%m-%d %H:%M}",
            )
        is_quietest = self.keep(number, TimedRequest(stats=stats(trace), others=others))
        if number == 0 and is_quietest:
            self.header.trace = trace.to_json()
        self.header.seconds += round(seconds, 3)
        self.save()


@dataclass(frozen=True)
class Twins:
    """An emulated spec's virtual result, its cell, and the cell it is compared with."""

    virtual_result: CellResult
    cell: EmulatedCell
    baseline: EmulatedCell

    @property
    def both(self) -> tuple[EmulatedCell, EmulatedCell]:
        return self.cell, self.baseline


# -- running ---------------------------------------------------------------------------
def run_missing(
    specs: list[Spec], bar: Progress, limits: Limits = NO_LIMITS
) -> dict[Spec, Exception]:
    """Do the requests that are missing; returns the errors that cells ended with.

    The virtual twins come first; then every emulated cell once, whatever shares it.
    """
    virtual_specs = {spec: virtual_twin(spec) for spec in specs}
    whole = replace(limits, requests=None)
    virtual_errors = virtual.run_missing(list(virtual_specs.values()), bar, whole)

    cells: dict[Spec, EmulatedCell] = {}
    twins_of, errors = _all_twins(specs, cells)
    for spec in specs:
        if virtual_specs[spec] in virtual_errors:
            errors[spec] = virtual_errors[virtual_specs[spec]]

    work = {cell: cell.missing(limits) for cell in cells.values()}
    return errors | _errors_of_work(work, twins_of, bar, limits)


def run_disturbed_again(
    specs: list[Spec], bar: Progress, limits: Limits, most_tries: int
) -> dict[Spec, Exception]:
    """Do disturbed requests once more, those that had fewer than ``most_tries``."""
    cells: dict[Spec, EmulatedCell] = {}
    twins_of, _ = _all_twins(specs, cells)
    work = {cell: cell.disturbed(most_tries) for cell in cells.values()}
    return _errors_of_work(work, twins_of, bar, limits)


def _all_twins(
    specs: list[Spec], cells: dict[Spec, EmulatedCell]
) -> tuple[dict[Spec, Twins], dict[Spec, Exception]]:
    """The twins of each spec whose virtual cell is done; new cells enter ``cells``."""
    twins_of: dict[Spec, Twins] = {}
    errors: dict[Spec, Exception] = {}
    for spec in specs:
        try:
            finished = virtual.find_finished(virtual_twin(spec))
            if finished is not None:
                twins_of[spec] = _twins(spec, finished, cells)
        except Exception as error:
            errors[spec] = error
    return twins_of, errors


def virtual_twin(spec: Spec) -> Spec:
    """The virtual cell of an emulated one, which has more requests."""
    return spec.changed(kind="virtual", requests=max(REPLAYS, spec.requests))


def _twins(
    asked: Spec, finished: virtual.Finished, cells: dict[Spec, EmulatedCell]
) -> Twins:
    """The twins of a virtual cell and its baseline; new ones enter ``cells``."""
    settled, result = finished

    def shared_cell(virtual_spec: Spec, request_stats: list[Stats]) -> EmulatedCell:
        spec = _emulated(virtual_spec).changed(requests=asked.requests)
        if spec not in cells:
            seconds = [request.seconds for request in request_stats]
            cells[spec] = EmulatedCell(spec, seconds)
        return cells[spec]

    return Twins(
        virtual_result=result,
        cell=shared_cell(settled.cell.spec, result.stats),
        baseline=shared_cell(settled.baseline.spec, result.baseline),
    )


def _emulated(virtual_spec: Spec) -> Spec:
    """A virtual cell's emulated twin; plain decoding is one cell for every method."""
    spec = virtual_spec.changed(kind="emulated")
    return spec.plain_decoding if spec.method == "autoregressive" else spec


Work: TypeAlias = dict[EmulatedCell, list[int]]  # the requests to do, by number


def _errors_of_work(
    work: Work, twins_of: dict[Spec, Twins], bar: Progress, limits: Limits
) -> dict[Spec, Exception]:
    """Do the work; an error of a cell is that of every spec that needs the cell."""
    failed = _do(
        {cell: numbers for cell, numbers in work.items() if numbers}, bar, limits
    )
    errors: dict[Spec, Exception] = {}
    for spec, twins in twins_of.items():
        for cell in twins.both:
            if cell in failed:
                errors.setdefault(spec, failed[cell])
    return errors


def _do(work: Work, bar: Progress, limits: Limits) -> dict[EmulatedCell, Exception]:
    """Do requests of cells, the longest first; returns why by cell of what failed."""
    longest_first = sorted(work, key=lambda cell: -sum(cell.virtual_seconds))
    bar.grow(len(longest_first))
    errors: dict[EmulatedCell, Exception] = {}
    for devices in sorted({cell.devices for cell in longest_first}):
        alike = {cell: work[cell] for cell in longest_first if cell.devices == devices}
        errors |= _do_side_by_side(alike, max(1, AT_ONCE // devices), bar, limits)
    return errors


def _do_side_by_side(
    work: Work, at_once: int, bar: Progress, limits: Limits
) -> dict[EmulatedCell, Exception]:
    """The same for cells with equally many devices, ``at_once`` of them at a time.

    An interrupt stops all of them at their next commit.
    """
    interrupted = threading.Event()

    def stop_if_interrupted(_tokens: object) -> None:
        if interrupted.is_set():
            raise SpeclibError("interrupted")

    errors: dict[EmulatedCell, Exception] = {}
    with ThreadPoolExecutor(at_once) as threads:
        cell_of: dict[Future[None], EmulatedCell] = {}
        for cell, numbers in work.items():
            future = threads.submit(cell.run, numbers, limits, stop_if_interrupted)
            cell_of[future] = cell
        try:
            for future in as_completed(cell_of):
                cell = cell_of[future]
                error = future.exception()
                if isinstance(error, Exception):
                    errors[cell] = error
                elif error is not None:
                    raise error  # a KeyboardInterrupt, for instance
                bar.step(cell.spec.name)
        finally:
            interrupted.set()
            threads.shutdown(cancel_futures=True)
    return errors


# -- results ---------------------------------------------------------------------------
def stored(spec: Spec) -> CellResult | None:
    """What the cache has of a cell: the virtual result with this clock's numbers.

    None without a request that both the cell and its baseline have done. Runs nothing.
    """
    finished = virtual.find_finished(virtual_twin(spec))
    if finished is None:
        return None
    twins = _twins(spec, finished, {})
    done = min(len(cell.requests) for cell in twins.both)
    if done == 0:
        return None

    cell, baseline = twins.cell.requests[:done], twins.baseline.requests[:done]
    counts = total([request.stats for request in cell])
    plain_counts = total([request.stats for request in baseline])
    header = present(twins.cell.header)
    virtual_seconds = sum(twins.cell.virtual_seconds[:done])
    facts: CellFacts = {
        **twins.virtual_result.facts,
        "overruns": max(_overruns(counts), _overruns(plain_counts)),
        "over_virtual": round(counts.seconds / virtual_seconds, 4),
        "others": [
            max(one.others, other.others)
            for one, other in zip(cell, baseline, strict=True)
        ],
        "tries": [
            min(one.tries, other.tries)
            for one, other in zip(cell, baseline, strict=True)
        ],
    }
    return replace(
        twins.virtual_result,
        spec=spec,
        stats=[request.stats for request in cell],
        baseline=[request.stats for request in baseline],
        trace=header.trace,
        machine=header.machine,
        seconds=header.seconds,
        created=header.created,
        facts=facts,
        sequence_choices=twins.virtual_result.sequence_choices[:done],
        replays=Replays(
            twins.virtual_result.stats,
            twins.virtual_result.baseline,
            twins.virtual_result.sequence_choices,
        ),
    )


def _overruns(counts: Stats) -> float:
    """Share of the operations that outlasted their latency."""
    return counts.overruns / counts.operations


def key_of(spec: Spec) -> str:
    """The cell's name: a hash of spec, code, latency file and this machine."""
    return cache_keys.digest(
        spec.model_dump_json(exclude={"requests", "over"}),
        cache_keys.hash_of_method(METHODS[spec.method], *CODE),
        cache_keys.hash_of_files(DATA / "latency" / f"{spec.latency}.toml"),
        machine.environment(),
    )
