"""Fills cells: takes from the cache what it has, and runs the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from speclab.progress import Progress
from speclib.errors import SpeclibError
from speclib.trace.events import Trace

from .limits import NO_LIMITS, Limits
from .other_load import is_disturbed
from .spec import CellResult, Spec

KINDS = ("virtual", "emulated", "measured")  # in the order in which they are run
MOST_TRIES = 3  # of a request beside which other programs kept the machine busy


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
            f"are stored. Run again to retry:\n{reasons}"
        )


class Runner:
    """Runs cells into the cache, and keeps workers open from call to call.

        with Runner(bar) as runner:
            runner.run(specs, Limits(requests=2))
            runner.run(specs)                       # the rest of their requests
            runner.repeat_disturbed(specs)

    ``errors`` says why by spec of the cells that failed; they are not tried again.
    ``facts``: what measured results say besides of where they come from.
    """

    def __init__(self, bar: Progress, facts: Mapping[str, object] | None = None):
        from .engines.measured import OpenWorkers

        self.bar = bar
        self.errors: dict[Spec, Exception] = {}
        self._workers = OpenWorkers(facts)

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.close()

    def run(self, specs: Iterable[Spec], limits: Limits = NO_LIMITS) -> None:
        """Run what the cache lacks, as far as the limits allow.

        A finished request is on disk at once, so a run that was interrupted goes on
        where it stopped. A cell that fails leaves the others standing.
        """
        from .engines import emulated, measured, virtual

        # One kind after the other: all but the virtual ones are timed.
        by_kind = self._by_kind(specs)
        self.errors |= virtual.run_missing(by_kind["virtual"], self.bar, limits)
        self.errors |= emulated.run_missing(by_kind["emulated"], self.bar, limits)
        self.errors |= measured.run_missing(
            by_kind["measured"], self.bar, limits, self._workers
        )

    def replay(self, specs: Iterable[Spec], limits: Limits = NO_LIMITS) -> None:
        """Replay as many prompts of measured cells as the allowed requests bring.

        Without a limit these are all that there are.
        """
        from .engines import measured

        measured.replay_all(self._by_kind(specs)["measured"], self._workers, limits)

    def repeat_disturbed(
        self, specs: Iterable[Spec], limits: Limits = NO_LIMITS
    ) -> None:
        """Run requests again beside which other programs kept the machine busy.

        Each is run ``MOST_TRIES`` times at most, and its quietest run stays. One that
        fails now keeps what it has.
        """
        from .engines import emulated, measured

        by_kind = self._by_kind(specs)
        for tries in range(2, MOST_TRIES + 1):
            emulated.run_disturbed_again(by_kind["emulated"], self.bar, limits, tries)
            measured.run_disturbed_again(
                by_kind["measured"], self.bar, limits, tries, self._workers
            )

    def _by_kind(self, specs: Iterable[Spec]) -> dict[str, list[Spec]]:
        """Specs that have not failed, each once, by kind."""
        by_kind: dict[str, list[Spec]] = {kind: [] for kind in KINDS}
        for spec in dict.fromkeys(specs):
            if spec not in self.errors:
                by_kind[spec.kind].append(spec)
        return by_kind


def stored(spec: Spec) -> CellResult | None:
    """What the cache has of a cell, of fewer requests perhaps than were asked for.

    None where it has nothing. Runs nothing.
    """
    from .engines import emulated, measured, virtual

    engines = {"virtual": virtual, "emulated": emulated, "measured": measured}
    result: CellResult | None = engines[spec.kind].stored(spec)
    return result


def is_complete(spec: Spec) -> bool:
    """Whether the cache has all requests of a cell; a cell that cannot be asked: no."""
    try:
        result = stored(spec)
    except Exception:  # it fails, and says why, when it is run
        return False
    return result is not None and len(result.stats) == spec.requests


def is_finished(spec: Spec, requests: int | None = None) -> bool:
    """Whether nothing of a cell is left to run, and no disturbed request again.

    ``requests``: how many are wanted (see ``Limits``); None: all.
    """
    try:
        result = stored(spec)
    except Exception:
        return False
    wanted = Limits(requests).requests_of(spec)
    if result is None or len(result.stats) < wanted:
        return False
    others, tries = result.facts.get("others", ()), result.facts.get("tries", ())
    return not any(
        is_disturbed(share) and count < MOST_TRIES
        for share, count in zip(others, tries, strict=True)
    )


def run_all(
    specs: Iterable[Spec], progress: Progress | None = None
) -> dict[Spec, CellResult]:
    """Run what the cache lacks, and return every spec's result.

    A finished request is on disk at once, so a run that was interrupted goes on where
    it stopped. A cell that fails leaves the others standing; CellsFailed is raised at
    the end, when all others are done.
    """
    wanted = list(dict.fromkeys(specs))
    with progress or Progress("cells") as bar:
        was_complete = {spec for spec in wanted if is_complete(spec)}
        with Runner(bar) as runner:
            runner.run(spec for spec in wanted if spec not in was_complete)

    results: dict[Spec, CellResult] = {}
    for spec in wanted:
        result = None if spec in runner.errors else stored(spec)
        if result is not None:
            results[spec] = replace(result, cached=spec in was_complete)
    if runner.errors:
        raise CellsFailed(results, runner.errors)
    return results


def example_trace(result: CellResult, tokens: int = 64) -> Trace:
    """One request of a cell, for figures: the stored one, or a virtual one run anew."""
    if result.trace is not None:
        return Trace.from_json(result.trace)
    from .engines import virtual

    return virtual.example_trace(result.spec, tokens)
