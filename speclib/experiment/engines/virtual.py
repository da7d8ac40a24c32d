"""Virtual cells: from the cache, or run on every core if that pays."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import NamedTuple, TypeAlias

from speclib import machine
from speclib.data.latency import load_latency
from speclib.errors import SpeclibError
from speclib.experiment import cache, cache_keys
from speclib.experiment.cells import virtual as virtual_cells
from speclib.experiment.pool import on_every_core
from speclib.experiment.spec import CellResult, ResolvedSpec, Spec, present
from speclib.methods import METHODS
from speclib.progress import Progress
from speclib.trace.events import Trace

from .resolve import resolve, settle_window
from .virtual_cell import key_of, load_or_run, toy_cell

PAYS = 8  # cells to compute from which starting worker processes pays


class Finished(NamedTuple):
    """A virtual cell that was run, and the numbers that its spec stood for."""

    resolved: ResolvedSpec
    result: CellResult


Attempt: TypeAlias = tuple[Spec, Finished | Exception]


def results(
    specs: list[Spec], bar: Progress
) -> Iterator[tuple[Spec, CellResult | Exception]]:
    """Each spec with its result, or the error it ended with, as they finish."""
    with closing(finish_all(specs, bar)) as outcomes:
        for spec, outcome in outcomes:
            if isinstance(outcome, Finished):
                yield spec, outcome.result
            else:
                yield spec, outcome


def finish_all(specs: list[Spec], bar: Progress) -> Generator[Attempt]:
    """The same, with the numbers that each spec stood for."""
    bar.grow(len(specs))

    # Searches come last: they find the windows done that others asked for by number.
    ordered = sorted(specs, key=_is_search)
    if _pays_to_start_processes(specs):
        outcomes = on_every_core(attempt, ordered)
    else:
        outcomes = (attempt(spec) for spec in ordered)

    with closing(outcomes):  # whatever stops this stops them at once
        for spec, outcome in outcomes:
            bar.step(spec.name)
            yield spec, outcome


def attempt(spec: Spec) -> Attempt:
    """Run a cell; an error is what it ended with."""
    try:
        return spec, finish(spec)
    except Exception as error:
        return spec, error


def run_cell(spec: Spec) -> CellResult:
    """Run one virtual cell, cached; its baseline is a cell of its own."""
    return finish(spec).result


def finish(spec: Spec) -> Finished:
    """The same, with the numbers that the spec stood for."""
    resolved = resolve(spec)
    cell = load_or_run(resolved.cell)
    baseline = cell
    if resolved.baseline != resolved.cell:
        baseline = load_or_run(resolved.baseline)
    gamma = resolved.cell.gamma
    assert gamma is None or isinstance(gamma, int)  # it is settled
    result = CellResult(
        spec=spec,
        stats=cell.stats,
        baseline=baseline.stats,
        gamma=gamma,
        c=resolved.c,
        seconds=cell.header.seconds,
        created=cell.header.created,
        facts=resolved.facts,
        cached=cell.cached,
        sequence_choices=[outcome.sequence_choices for outcome in cell.outcomes],
    )
    return Finished(resolved, result)


def example_trace(spec: Spec, tokens: int = 64, request: int = 0) -> Trace:
    """One request of a virtual cell, for figures: run anew, and always the same."""
    cell = resolve(spec).cell.but(tokens=tokens)
    return virtual_cells.trace_request(toy_cell(cell), request)


def _is_search(spec: Spec) -> bool:
    return spec.gamma == "best" or spec.is_choice


def _pays_to_start_processes(specs: list[Spec]) -> bool:
    """Whether there are cores, and enough cells to compute that other processes can."""
    if machine.cores() == 1:
        return False
    if any(cache_keys.is_foreign(METHODS[spec.method]) for spec in specs):
        return False  # a notebook's method: no other process can import it
    missing = [spec for spec in specs if not is_cached(spec)]
    return len(missing) >= PAYS


def is_cached(spec: Spec) -> bool:
    """Whether a cell is on disk; of a search, whether the first that it tries is."""
    try:
        c = load_latency(present(spec.latency)).c
    except SpeclibError:  # the cell's own failure, when it is run
        return False
    first = settle_window(spec.choices[0], c)
    return cache.exists(key_of(first))
