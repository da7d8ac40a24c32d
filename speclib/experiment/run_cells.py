"""Fills cells: takes from the cache what it has, and runs the rest."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from speclib.errors import SpeclibError
from speclib.progress import Progress
from speclib.trace.events import Trace

from .spec import CellResult, Spec


class CellsFailed(SpeclibError):
    """Some cells failed.

    ``results`` holds all the others; ``errors`` says why, by spec.
    """

    def __init__(self, results: dict[Spec, CellResult], errors: dict[Spec, Exception]):
        self.results = results
        self.errors = errors
        reasons = "\n".join(f"  {spec.name}: {error}" for spec, error in errors.items())
        super().__init__(
            f"{len(errors)} of {len(results) + len(errors)} cells failed; the others "
            f"are kept. Run again to retry:\n{reasons}"
        )


def run_all(
    specs: Iterable[Spec], progress: Progress | None = None
) -> dict[Spec, CellResult]:
    """Run what the cache lacks, and return every spec's result.

    A finished cell is on disk at once, so a run that was interrupted goes on where it
    stopped. A cell that fails leaves the others standing; CellsFailed is raised at the
    end, when all others are done.
    """
    from .engines import emulated, measured, virtual

    engines = {"virtual": virtual, "emulated": emulated, "measured": measured}
    wanted = list(dict.fromkeys(specs))
    results: dict[Spec, CellResult] = {}
    errors: dict[Spec, Exception] = {}
    with progress or Progress("cells") as bar:
        # One kind after the other: all but the virtual ones are timed.
        for kind, engine in engines.items():
            of_this_kind = [spec for spec in wanted if spec.kind == kind]
            with closing(engine.results(of_this_kind, bar)) as outcomes:
                for spec, outcome in outcomes:
                    if isinstance(outcome, CellResult):
                        results[spec] = outcome
                    else:
                        errors[spec] = outcome
    if errors:
        raise CellsFailed(results, errors)
    return {spec: results[spec] for spec in wanted}


def example_trace(result: CellResult, tokens: int = 64) -> Trace:
    """One request of a cell, for figures: the one kept, or a virtual one run anew."""
    if result.trace is not None:
        return Trace.from_json(result.trace)
    from .engines import virtual

    return virtual.example_trace(result.spec, tokens)
