"""Virtual cells from the cache, or computed: windows resolved, code and data hashed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import datetime

from speclib.data.latency import load_latency
from speclib.decoding.auto_settings import offset
from speclib.errors import SpeclibError
from speclib.experiment import cache, cache_keys, machine
from speclib.experiment.cells import virtual as virtual_cells
from speclib.experiment.pool import on_every_core
from speclib.experiment.spec import CellResult, Spec
from speclib.methods import METHODS
from speclib.paths import DATA
from speclib.progress import Progress
from speclib.trace.events import Trace
from speclib.trace.metrics import Stats, astuple, total

PATIENCE = 2  # a search stops after so many windows in a row that are slower
LONGEST = 32  # and at this window
PAYS = 8  # cells to compute from which starting worker processes pays


def results(
    specs: list[Spec], bar: Progress
) -> Iterator[tuple[Spec, CellResult | Exception]]:
    """(spec, its run or the error it ended with), as they finish; on every core if that pays."""
    bar.grow(len(specs))
    # a search finds windows done
    ordered = sorted(specs, key=lambda s: s.gamma == "best" or s.choices != [s])
    here = machine.cores() == 1 or any(
        cache_keys.is_foreign(METHODS[s.method]) for s in specs
    )
    pays = not here and sum(not cached(s) for s in specs) >= PAYS
    outcomes = (
        on_every_core(attempt, ordered) if pays else (attempt(s) for s in ordered)
    )
    with closing(outcomes):  # at once, whatever stops this
        for spec, outcome in outcomes:
            bar.step(spec.name)
            yield spec, outcome


def attempt(spec: Spec) -> tuple[Spec, CellResult | Exception]:
    try:
        return spec, run_cell(spec)
    except Exception as error:
        return spec, error


def cached(spec: Spec) -> bool:
    """Whether a cell is on disk; of a search, whether its first setting is."""
    try:
        c = load_latency(spec.latency).c
    except SpeclibError:  # the cell's own failure, when it is run
        return False
    first = spec.choices[0]
    return cache.exists(
        key_of(_window(first.but(gamma="auto") if first.gamma == "best" else first, c))
    )


def run_cell(spec: Spec) -> CellResult:
    """One virtual cell, cached; its baseline is a cell of its own."""
    c = load_latency(spec.latency).c
    fixed, facts = _search(spec, c)
    header, rows, cached = _cell(fixed)
    baseline = rows if fixed.method == "autoregressive" else _cell(fixed.baseline)[1]
    return CellResult(
        spec,
        _stats(rows),
        _stats(baseline),
        fixed.gamma,
        c,
        seconds=header["seconds"],
        created=header["created"],
        facts=facts,
        cached=cached,
        sequence_choices=[row["branches"] for row in rows],
    )


def fixed(spec: Spec) -> Spec:
    """The cell behind a spec, and behind what it is compared with: window and settings are those
    that a search or rule settles."""
    return _search(spec, load_latency(spec.latency).c)[0]


def example_trace(spec: Spec, tokens: int = 64, request: int = 0) -> Trace:
    """The trace of one request of a virtual cell, for figures: computed anew, always the same."""
    one = fixed(spec).but(tokens=tokens)
    return virtual_cells.trace_request(_toy_cell(one), request)


def _search(spec: Spec, c: float) -> tuple[Spec, dict]:
    """The cell behind a spec, and what was tried: tokens per second by window (after the first
    commit), or, of a choice, by settings (of all tokens, as a paper's grid search has it)."""
    over, facts = {}, {}
    if spec.over:
        over = {"over": (spec.over[0], _search(spec.baseline, c)[0].gamma)}
    best = spec
    if len(spec.choices) > 1:
        speeds = {
            one: total(_stats(_cell(one)[1])).decode_speed_e2e for one in spec.choices
        }
        best = max(speeds, key=speeds.get)
        facts = {"chosen": dict(best.settings), "of": len(speeds)}
    elif spec.gamma == "best":
        found = _windows(spec, c)
        best = spec.but(gamma=max(found, key=found.get))
        facts = {"searched": {str(g): v for g, v in found.items()}}
    return _window(best, c).but(**over), facts | (
        {"over": over["over"]} if over else {}
    )


def _windows(spec: Spec, c: float) -> dict[int, float]:
    """Windows tried -> tokens per second: uphill from round(c), both ways, with some patience."""
    start = max(1, round(c))
    speeds: dict[int, float] = {}

    def speed(gamma: int) -> float:
        if gamma not in speeds:
            speeds[gamma] = total(_stats(_cell(spec.but(gamma=gamma))[1])).decode_speed
        return speeds[gamma]

    for ahead in (range(start, LONGEST + 1), range(start, 0, -1)):
        _climb(ahead, speed)
    return dict(sorted(speeds.items()))


def _climb(windows: Iterable[int], speed: Callable[[int], float]) -> None:
    best, slower = 0.0, 0
    for gamma in windows:
        found = speed(gamma)
        slower = 0 if found > best else slower + 1
        best = max(best, found)
        if slower == PATIENCE:
            return


def _window(spec: Spec, c: float) -> Spec:
    from_c = isinstance(spec.gamma, str)
    return spec.but(gamma=max(1, round(c) + offset(spec.gamma))) if from_c else spec


def _toy_cell(spec: Spec) -> virtual_cells.ToyCell:
    gamma = {} if spec.gamma is None else {"gamma": spec.gamma}
    return virtual_cells.ToyCell(
        method=METHODS[spec.method],
        latency=load_latency(spec.latency).lengthened(spec.per_token),
        alpha=spec.alpha,
        tokens=spec.tokens,
        settings=dict(spec.settings) | gamma,
        temperature=spec.temperature,
        seed=spec.seed,
        cancel=spec.cancel or virtual_cells.IMMEDIATE,
        doubt=spec.doubt,
    )


def _stats(rows: list[dict]) -> list[Stats]:
    return [Stats(*row["stats"]) for row in rows]


def _cell(spec: Spec) -> tuple[dict, list[dict], bool]:
    """(header, row by request, whether the cache had them) of a spec with a fixed window."""
    key = key_of(spec)
    held = cache.load(key)
    if held is not None and len(held[1]) == spec.requests:
        return *held, True
    started = time.perf_counter()
    found = virtual_cells.run_requests(_toy_cell(spec), spec.requests)
    header = {
        "spec": spec.model_dump(mode="json"),
        "created": f"{datetime.now():%Y-%m-%d %H:%M}",
        "seconds": round(time.perf_counter() - started, 3),
    }
    rows = [{"stats": astuple(one), "branches": branches} for one, branches in found]
    cache.save(key, header, rows)
    return header, rows, False


def key_of(spec: Spec) -> str:
    """The cell's name: a hash of the spec, of the code it runs, of the latency file it reads."""
    return cache_keys.digest(
        spec.model_dump_json(exclude={"sweep", "over"}),
        cache_keys.hash_of_method(
            METHODS[spec.method], "speclib.experiment.cells.virtual"
        ),
        cache_keys.hash_of_files(DATA / "latency" / f"{spec.latency}.toml"),
    )
