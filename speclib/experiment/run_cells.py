"""Runs what the cache lacks."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from speclib.errors import SpeclibError
from speclib.progress import Progress
from speclib.trace.events import Trace

from .spec import CellResult, Spec


class CellsFailed(SpeclibError):
    """Some cells failed; ``results`` holds all the others, ``errors`` why by spec."""

    def __init__(self, results: dict[Spec, CellResult], errors: dict[Spec, Exception]):
        self.results, self.errors = results, errors
        lines = "\n".join(f"  {spec.name}: {error}" for spec, error in errors.items())
        super().__init__(
            f"{len(errors)} of {len(results) + len(errors)} cells failed; the others are "
            f"kept. Run again to retry:\n{lines}"
        )


def run_all(
    specs: Iterable[Spec], progress: Progress | None = None
) -> dict[Spec, CellResult]:
    """Runs what the cache lacks; every spec -> its CellResult. Raises CellsFailed at the end, if any."""
    from .engines import emulated as emulating
    from .engines import measured as measuring
    from .engines import virtual as simulating

    engines = {"virtual": simulating, "emulated": emulating, "measured": measuring}
    wanted, runs, errors = list(dict.fromkeys(specs)), {}, {}
    with progress or Progress("cells") as bar:
        for kind, engine in engines.items():  # one after the other: they are timed
            with closing(
                engine.results([s for s in wanted if s.kind == kind], bar)
            ) as outcomes:
                for spec, outcome in outcomes:
                    (runs if isinstance(outcome, CellResult) else errors)[spec] = (
                        outcome
                    )
    if errors:
        raise CellsFailed(runs, errors)
    return {spec: runs[spec] for spec in wanted}


def example_trace(run: CellResult, tokens: int = 64) -> Trace:
    """One request of a run as a trace, for figures: the one kept, or a virtual one done again."""
    if run.trace is not None:
        return Trace.from_json(run.trace)
    from .engines import virtual as simulating

    return simulating.example_trace(run.spec, tokens)
