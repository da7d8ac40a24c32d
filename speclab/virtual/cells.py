"""Runs virtual cells, in parallel if there are many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from speclab.runs.rows import CellRuns
from speclab.runs.spec import VirtualSpec
from speclib import machine
from speclib.methods import METHODS
from speclib.trace.events import Trace

from .settle import outcomes_of, settle, settle_baseline, toy_cell
from .toy_requests import trace_request

MANY_CELLS = 8  # with at least this many cells, starting worker processes pays


def run(spec: VirtualSpec) -> CellRuns:
    """Runs a virtual cell and its baseline on the same requests."""
    settled = settle(spec)
    baseline = settle_baseline(spec)
    own = outcomes_of(settled.spec)
    base = own if baseline.spec == settled.spec else outcomes_of(baseline.spec)
    assert not isinstance(settled.spec.gamma, str | tuple)  # settle chose a number
    return CellRuns(
        spec=spec,
        stats=own,
        baseline=base,
        labels=[f"toys/{number}" for number in range(len(own))],
        gamma=settled.spec.gamma,
        c=settled.c,
        how=settled.how,
        settings=dict(settled.spec.settings),
    )


def run_all(
    specs: Iterable[VirtualSpec], step: Callable[[str], object] = lambda name: None
) -> Iterator[tuple[VirtualSpec, CellRuns | str]]:
    """Runs cells. Yields each when it ends, with its runs or the reason why it failed.

    ``step`` is called with the name of each cell that has ended.
    """
    wanted = list(dict.fromkeys(specs))
    is_importable = not any(_is_foreign(METHODS[spec.method]) for spec in wanted)
    if len(wanted) >= MANY_CELLS and machine.cores() > 1 and is_importable:
        from speclab.pool import on_every_core  # a browser has no processes

        attempts: Iterable[tuple[VirtualSpec, CellRuns | str]] = on_every_core(
            attempt, wanted
        )
    else:
        attempts = map(attempt, wanted)
    for spec, result in attempts:
        step(spec.name)
        yield spec, result


def _is_foreign(method: Callable[..., object]) -> bool:
    """Whether a method is outside our packages, so workers cannot import it."""
    return method.__module__.split(".")[0] not in ("speclib", "speclab")


def attempt(spec: VirtualSpec) -> tuple[VirtualSpec, CellRuns | str]:
    """Runs a cell, and returns the reason if it fails."""
    try:
        return spec, run(spec)
    except Exception as error:  # the other cells still run
        return spec, f"{error}"


def example_trace(spec: VirtualSpec, tokens: int = 64, request: int = 0) -> Trace:
    """The trace of one request of a virtual cell, for figures; deterministic."""
    shorter = settle(spec).spec.changed(tokens=tokens)
    return trace_request(toy_cell(shorter), request)
