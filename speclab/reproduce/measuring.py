"""Measures papers' tables, in the order that ``order`` defines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from speclib.errors import how_to_install

if TYPE_CHECKING:
    from speclab.papers.paper_schema import Paper
    from speclab.runs.spec import Spec

Say = Callable[[str], object]  # shows a line of progress


def print_at_once(text: str) -> None:
    """Prints a line and flushes it, so that it appears in a log without delay."""
    print(text, flush=True)


def measure_papers(
    papers: Iterable[Paper], deadline: float, quick: bool, say: Say
) -> dict[Spec, str]:
    """Measures papers' tables in order; returns the reason for each failed cell."""
    from speclab.measure.fit import fit, needs_fit
    from speclab.measure.measure import Step, measure
    from speclab.runs.spec import MeasuredSpec, Spec

    from .order import steps

    if find_spec("torch") is None:
        say(f"torch is not installed: nothing is measured. {how_to_install('models')}")
        return {}
    papers = list(papers)
    todo = list(steps(papers, quick))
    specs = [s for step in todo if isinstance(step, Step) for s in step.specs]
    pools = [spec.worker_pool for spec in specs if isinstance(spec, MeasuredSpec)]
    for pair, dtype, *_ in dict.fromkeys(pools):
        try:
            if time.monotonic() < deadline and needs_fit(pair, dtype):
                say(f"{pair}: {fit(pair, dtype)}")
        except Exception as error:  # its cells will fail, too; others are measured
            say(f"{pair} is not fitted: {error}")
    say(f"measuring for at most {(deadline - time.monotonic()) / 60:.1f} min")
    errors = measure(todo, deadline, say)
    return {spec: why for spec, why in errors.items() if isinstance(spec, Spec)}
