"""Emulated cells: toy models in worker processes, timed by a latency file.

The toy models, the keyed random numbers and the windows are the same as in the virtual
cell, so a method makes the same decisions. The ratio of its time to the virtual time
shows what real processes, messages and verification cost. Workers sleep until a pass
is over, so several requests run in parallel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import NamedTuple

from speclab.runs.rows import RowKey, key_of
from speclab.runs.spec import EmulatedSpec
from speclab.traces.counts import counts_of
from speclab.virtual.settle import settle, toy_cell
from speclab.virtual.toy_requests import ToyCell, decode_request
from speclib.core.sampling import Tokens
from speclib.data.pairs import ModelSpec, Pair
from speclib.errors import SpeclibError
from speclib.trace.events import Trace
from speclib.worlds.processes import Processes

from . import other_load
from .measurement import Group, Measurement, Window, grouped

AT_ONCE = 16  # devices at a time; on two idle cores, within 3 % of the virtual clock
SEARCH_REQUESTS = 96  # virtual requests, which cost next to nothing


class EmulatedCell(NamedTuple):
    """A cell whose window and settings have been chosen; ``toys`` contains them."""

    name: str
    key: RowKey
    toys: ToyCell
    window: Window
    c: float


class Requests(NamedTuple):
    """One request, to run with a baseline and then with the cells compared with it."""

    number: int
    baseline: EmulatedCell
    cells: list[EmulatedCell]

    @property
    def where(self) -> str:
        """Distinguishes these runs from others that begin at the same moment."""
        key = self.baseline.key
        rate = self.cells[0].key.rate if self.cells else key.rate
        return " ".join([key.on, rate, "over", key.method, key.window]).strip()

    @property
    def devices(self) -> int:
        """The largest number of worker processes at a time: a draft and its targets."""
        return 1 + max(cell.toys.servers for cell in (self.baseline, *self.cells))


def emulate_cells(
    specs: list[EmulatedSpec], prompts: int, measurement: Measurement
) -> None:
    """Runs emulated cells until each has rows for ``prompts`` requests."""
    requests: dict[tuple[RowKey, float, int], Requests] = {}
    for spec in specs:
        numbers = measurement.missing(spec, prompts)
        if not numbers or measurement.is_over:
            continue
        try:
            cell, baseline = _settled(spec), _settled(spec.baseline)
        except Exception as error:
            measurement.fail([key_of(spec)], error)
            continue
        for number in numbers:
            shared = baseline.key, spec.alpha, number
            of_number = requests.setdefault(shared, Requests(number, baseline, []))
            if cell.key != baseline.key:
                of_number.cells.append(cell)
    by_devices = grouped(requests.values(), lambda each: each.devices)
    for devices, alike in sorted(by_devices.items()):
        in_order = sorted(alike, key=lambda each: each.number)
        _run_side_by_side(in_order, AT_ONCE // devices or 1, measurement)


def _settled(spec: EmulatedSpec) -> EmulatedCell:
    """The cell with the window and settings chosen on the virtual clock."""
    settled = settle(spec.changed(requests=SEARCH_REQUESTS))
    gamma = settled.spec.gamma
    assert not isinstance(gamma, str | tuple)  # it is settled
    window = Window(gamma, settled.how)
    toys = toy_cell(settled.spec)
    return EmulatedCell(spec.name, key_of(spec), toys, window, settled.c)


def _run_side_by_side(
    requests: list[Requests], at_once: int, measurement: Measurement
) -> None:
    """Runs requests, ``at_once`` at a time.

    An interrupt stops each request at its next commit.
    """
    interrupted = threading.Event()
    with ThreadPoolExecutor(at_once) as threads:
        futures = [
            threads.submit(_run_in_turn, each, measurement, interrupted)
            for each in requests
        ]
        try:
            for future in as_completed(futures):
                future.result()  # raises the thread's error, for example a full disk
        finally:
            interrupted.set()
            threads.shutdown(cancel_futures=True)


def _run_in_turn(
    requests: Requests, measurement: Measurement, interrupted: threading.Event
) -> None:
    """Runs a request with the baseline and with each cell, and appends their rows."""

    def stop_if_interrupted(_tokens: Tokens) -> None:
        if interrupted.is_set():
            raise SpeclibError("interrupted")

    baseline, number = requests.baseline, requests.number
    group = Group(measurement, requests.where, number, baseline.c, "toy")
    for turn, cell in enumerate([baseline, *requests.cells]):
        if measurement.is_over or interrupted.is_set():
            return
        measurement.say(f"{cell.name}, request {number}")
        start = other_load.read_clocks()
        try:
            trace = trace_request(cell.toys, number, stop_if_interrupted)
        except Exception as error:
            failed = [cell, *requests.cells] if cell is baseline else [cell]
            measurement.fail([each.key for each in failed], error)
            if cell is baseline:
                return
            continue
        others = other_load.others_since(start)
        group.add(cell.key, cell.window, turn, counts_of(trace), others)


def trace_request(
    cell: ToyCell, request: int, on_commit: Callable[[Tokens], object] | None = None
) -> Trace:
    """Runs one request in worker processes, timed by the cell's latency.

    ``on_commit`` is called with each commit's tokens.
    """
    toy_settings = cell.toy_settings(request)
    pair = Pair(
        target=ModelSpec(model="toy", **toy_settings),
        draft=ModelSpec(model="toy", alpha=cell.alpha, **toy_settings),
        name="toys",
    )
    with Processes(
        pair, servers=cell.servers, cancel=cell.cancel, emulate=cell.latency
    ) as world:
        return decode_request(cell, request, world, on_commit)
