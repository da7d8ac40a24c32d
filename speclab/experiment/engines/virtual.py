"""Virtual cells: from the cache, or run on every core if that pays."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import NamedTuple, TypeAlias, cast

from speclab.experiment import cache_keys
from speclab.experiment.cells import toy_requests as virtual_cells
from speclab.experiment.limits import NO_LIMITS, Limits
from speclab.experiment.pool import on_every_core
from speclab.experiment.spec import CellFacts, CellResult, Spec
from speclab.progress import Progress
from speclib import machine
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.trace.events import Trace

from .settle import NotSettled, Settled, settle
from .virtual_cell import VirtualCell, VirtualOutcome

PAYS = 8  # cells to compute from which starting worker processes pays


class Finished(NamedTuple):
    """A virtual cell that was run, and the numbers that its spec stood for."""

    settled: Settled
    result: CellResult


Attempt: TypeAlias = tuple[Spec, Exception | None]
Errors: TypeAlias = dict[Spec, Exception]


def run_missing(specs: list[Spec], bar: Progress, limits: Limits = NO_LIMITS) -> Errors:
    """Run what the cache lacks; returns the errors that cells ended with."""
    missing = [spec for spec in specs if not _is_stored(spec)]
    bar.grow(len(missing))
    errors: Errors = {}
    with closing(_attempts(missing)) as attempts:  # whatever stops this stops them
        if limits.is_over:
            return errors
        for spec, error in attempts:
            bar.step(spec.name)
            if error is not None:
                errors[spec] = error
            if limits.is_over:
                return errors
    return errors


def stored(spec: Spec) -> CellResult | None:
    """What the cache has of a cell; None where it lacks anything. Runs nothing."""
    finished = find_finished(spec)
    return None if finished is None else finished.result


def find_finished(spec: Spec) -> Finished | None:
    """The same, with the numbers that the spec stood for."""
    try:
        settled = settle(spec, search=False)
    except NotSettled:
        return None
    own = settled.cell.load()
    baseline = own if settled.baseline is settled.cell else settled.baseline.load()
    if own is None or baseline is None:
        return None
    return _finished(settled, own, baseline)


def run_cell(spec: Spec) -> CellResult:
    """Run one virtual cell, cached; its baseline is a cell of its own."""
    return finish(spec).result


def finish(spec: Spec) -> Finished:
    """The same, with the numbers that the spec stood for."""
    settled = settle(spec)
    own = settled.cell.load_or_run()
    baseline = own
    if settled.baseline is not settled.cell:
        baseline = settled.baseline.load_or_run()
    return _finished(settled, own, baseline)


def _finished(
    settled: Settled, own: VirtualOutcome, baseline: VirtualOutcome
) -> Finished:
    gamma = settled.cell.spec.gamma
    assert gamma is None or isinstance(gamma, int)  # it is settled
    result = CellResult(
        spec=settled.asked,
        stats=own.stats,
        baseline=baseline.stats,
        gamma=gamma,
        c=settled.c,
        seconds=own.header.seconds,
        created=own.header.created,
        facts=cast(CellFacts, settled.facts),
        cached=own.cached,
        sequence_choices=[outcome.sequence_choices for outcome in own.outcomes],
    )
    return Finished(settled, result)


def example_trace(spec: Spec, tokens: int = 64, request: int = 0) -> Trace:
    """One request of a virtual cell, for figures: run anew, and always the same."""
    shorter = settle(spec).cell.spec.changed(tokens=tokens)
    return virtual_cells.trace_request(VirtualCell(shorter).toys, request)


def _attempts(specs: list[Spec]) -> Generator[Attempt]:
    """Each spec with the error it ended with, as they end: on every core, if that pays.

    Searches come last: they find the windows done that others asked for by number.
    """
    ordered = sorted(specs, key=_is_search)
    if _pays_to_start_processes(specs):
        yield from on_every_core(attempt, ordered)
    else:
        yield from map(attempt, ordered)


def attempt(spec: Spec) -> Attempt:
    """Runs a cell into the cache; returns the error that it ended with, if any."""
    try:
        finish(spec)
    except Exception as error:
        return spec, error
    return spec, None


def _is_search(spec: Spec) -> bool:
    return spec.gamma == "best" or spec.is_choice


def _pays_to_start_processes(missing: list[Spec]) -> bool:
    """Whether there are cores, and enough cells to compute that other processes can."""
    if machine.cores() == 1:
        return False
    if any(cache_keys.is_foreign(METHODS[spec.method]) for spec in missing):
        return False  # a notebook's method: no other process can import it
    return len(missing) >= PAYS


def _is_stored(spec: Spec) -> bool:
    """Whether the cache has a cell; what cannot be asked fails when it is run."""
    try:
        return find_finished(spec) is not None
    except SpeclibError:
        return False
