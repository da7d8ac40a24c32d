"""Virtual cells: from the cache, or run on every core if that pays."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import NamedTuple, TypeAlias, cast

from speclab.experiment import cache_keys
from speclab.experiment.cells import toy_requests as virtual_cells
from speclab.experiment.limits import NO_LIMITS, Limits
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
    wanted = {spec: limits.requests_of(spec) for spec in specs}
    missing = [spec for spec in specs if not _is_stored(spec, wanted[spec])]
    bar.grow(len(missing))
    errors: Errors = {}
    works = [Work(spec, wanted[spec]) for spec in missing]
    with closing(_attempts(works)) as attempts:  # whatever stops this stops them
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


def find_finished(spec: Spec, requests: int = 1) -> Finished | None:
    """The same, with the numbers that the spec stood for.

    None also where there are fewer ``requests``.
    """
    try:
        settled = settle(spec, search=False)
    except NotSettled:
        return None
    own = baseline = settled.cell.load(requests)
    if settled.baseline is not settled.cell:
        baseline = settled.baseline.load(requests)
    if own is None or baseline is None:
        return None
    return _finished(settled, own, baseline)


def run_cell(spec: Spec) -> CellResult:
    """Run one virtual cell, cached; its baseline is a cell of its own."""
    return finish(spec).result


def finish(spec: Spec, requests: int | None = None) -> Finished:
    """The same, with the numbers that the spec stood for.

    ``requests``: how many are run; None: all.
    """
    settled = settle(spec)
    own = baseline = settled.cell.load_or_run(requests)
    if settled.baseline is not settled.cell:
        baseline = settled.baseline.load_or_run(requests)
    return _finished(settled, own, baseline)


def _finished(
    settled: Settled, own: VirtualOutcome, baseline: VirtualOutcome
) -> Finished:
    gamma = settled.cell.spec.gamma
    assert gamma is None or isinstance(gamma, int)  # it is settled
    count = min(len(own.outcomes), len(baseline.outcomes))  # others share the baseline
    result = CellResult(
        spec=settled.asked,
        stats=own.stats[:count],
        baseline=baseline.stats[:count],
        gamma=gamma,
        c=settled.c,
        seconds=own.header.seconds,
        created=own.header.created,
        facts=cast(CellFacts, settled.facts),
        cached=own.cached,
        sequence_choices=[each.sequence_choices for each in own.outcomes[:count]],
    )
    return Finished(settled, result)


def example_trace(spec: Spec, tokens: int = 64, request: int = 0) -> Trace:
    """One request of a virtual cell, for figures: run anew, and always the same."""
    shorter = settle(spec).cell.spec.changed(tokens=tokens)
    return virtual_cells.trace_request(VirtualCell(shorter).toys, request)


class Work(NamedTuple):
    """So many requests of a cell."""

    spec: Spec
    requests: int


def _attempts(works: list[Work]) -> Generator[Attempt]:
    """Each spec with the error it ended with, as they end: on every core, if that pays.

    Searches come last: they find the windows done that others asked for by number.
    """
    ordered = sorted(works, key=_is_search)
    if _pays_to_start_processes([work.spec for work in works]):
        from speclab.experiment.pool import on_every_core  # a browser has no processes

        yield from on_every_core(attempt, ordered)
    else:
        yield from map(attempt, ordered)


def attempt(work: Work) -> Attempt:
    """Runs a cell into the cache; returns the error that it ended with, if any."""
    try:
        finish(*work)
    except Exception as error:
        return work.spec, error
    return work.spec, None


def _is_search(work: Work) -> bool:
    return work.spec.gamma == "best" or work.spec.is_choice


def _pays_to_start_processes(missing: list[Spec]) -> bool:
    """Whether there are cores, and enough cells to compute that other processes can."""
    if machine.cores() == 1:
        return False
    if any(cache_keys.is_foreign(METHODS[spec.method]) for spec in missing):
        return False  # a notebook's method: no other process can import it
    return len(missing) >= PAYS


def _is_stored(spec: Spec, requests: int) -> bool:
    """Whether the cache has so many requests; what cannot be asked fails when run."""
    try:
        return find_finished(spec, requests) is not None
    except SpeclibError:
        return False
