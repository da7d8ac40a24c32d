"""Measures a list of steps until a deadline.

    measure([Step(main_tables, prompts=1), Step(main_tables, prompts=8), ...], deadline)

When a run ends, it is recorded as a row (see ``speclab.runs.rows``). Runs that have a
row are not repeated, so a second call continues where the first one stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from speclab.runs.rows import key_of
from speclab.runs.spec import EmulatedSpec, MeasuredSpec, Spec
from speclab.runs.values import ValuesStep

from .emulated import emulate_cells
from .measured import measure_cells
from .measurement import Measurement
from .open_workers import OpenWorkers
from .values import measure_values


class Step(NamedTuple):
    """Emulated and measured cells to run on their first ``prompts`` prompts."""

    specs: tuple[Spec, ...]
    prompts: int


def measure(
    steps: Iterable[Step | ValuesStep],
    deadline: float | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> dict[Spec | ValuesStep, str]:
    """Works through the steps in order, and runs everything that has no rows yet.

    deadline  on the clock of ``time.monotonic``; None: no deadline. A run that has
              begun is finished.
    say       called with a line of text when something begins

    Returns the reason for each failed cell; the others are measured anyway. Raises
    SpeclibError if rows are damaged or cannot be written.
    """
    measurement = Measurement(deadline, say)
    errors: dict[Spec | ValuesStep, str] = {}
    with OpenWorkers() as workers:
        for step in steps:
            if measurement.is_over:
                break
            if isinstance(step, ValuesStep):
                error = measure_values(step, measurement)
                if error is not None:
                    errors[step] = error
                continue
            specs = _each_once(step.specs)
            emulated = [spec for spec in specs if isinstance(spec, EmulatedSpec)]
            measured = [spec for spec in specs if isinstance(spec, MeasuredSpec)]
            emulate_cells(emulated, step.prompts, measurement)
            measure_cells(measured, step.prompts, workers, measurement)
            for spec in step.specs:
                if key_of(spec) in measurement.failures:
                    errors[spec] = measurement.failures[key_of(spec)]
    return errors


def _each_once(specs: Iterable[Spec]) -> list[Spec]:
    """The specs, without duplicates that would have the same rows."""
    by_rows = {(key_of(spec), key_of(spec.baseline)): spec for spec in specs}
    return list(by_rows.values())
