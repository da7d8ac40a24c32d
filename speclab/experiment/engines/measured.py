"""Measured cells: from the cache, or run with one set of workers per pair.

The methods take turns. For each prompt plain decoding and every method run, in an order
that rotates with the prompt:

    prompt 0    plain   pearl   speculative
    prompt 1    pearl   speculative   plain
    prompt 2    speculative   plain   pearl

A machine that slows down slows all of them, and none is always the first to see a
prompt. Cells that come to the same method and window share its run. What a prompt gave
is stored when all methods have done it. An interrupted measurement therefore goes on at
its next prompt, and every speed-up compares runs of the same minute.

Windows are searched for on replays (see ``replayed``), so that none is measured which
no table shows. When prompts have been measured, more of them are replayed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, TypeVar

from speclab.experiment import cache, environments, other_load
from speclab.experiment.cells import measured_prompt as measured_cells
from speclab.experiment.cells.measured_prompt import PLAIN, Conditions, Setting
from speclab.experiment.cells.outputs import examine_outputs
from speclab.experiment.cells.replayed_prompt import is_replayable
from speclab.experiment.cells.task_prompts import Prompt, Turn, load_prompts
from speclab.experiment.environments import Environment
from speclab.experiment.limits import NO_LIMITS, Limits
from speclab.experiment.pool import Cores
from speclab.experiment.spec import (
    REPLAYS_OF_A_REQUEST,
    CellResult,
    Replays,
    Spec,
    WorkerPool,
    replays_of,
)
from speclab.progress import Progress
from speclib import machine
from speclib.data.pairs import load_pair
from speclib.decoding.auto_settings import draft_length
from speclib.decoding.decode import Result
from speclib.errors import SpeclibError, how_to_install
from speclib.trace.metrics import total
from speclib.worlds import kept_draft_sizes
from speclib.worlds.processes import Processes, choose_draft_size

from . import pass_times, replayed
from .measured_cell import MeasuredCell, MeasuredHeader, key_of
from .measured_pair import describe_draft_size
from .replayed_cell import replayed_cell

WARM_UP_TOKENS = 8
WARM_UP_GAMMA = 2
WINDOWS = (0.6, 1.0, 1.5, 2.0, 2.6)  # of c: the windows a search tries
SEARCHED = 12  # prompts that a search replays,
SEARCH_SECONDS = 4.0  # after which no more prompts of it are begun
REPLAY_SHARE = 0.5  # of the seconds that measuring took: no longer does one replay
LEAST_SECONDS = 2.0  # unless these are fewer
SEARCHED_BY_MEASURING = 2  # or measures, where a pair is not replayed

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


class OpenWorkers:
    """The workers of the pair that was asked for last, which stay from call to call.

    Starting them takes seconds, since models are built. Those of another pair are
    stopped first: not every machine has memory for two pairs. A context manager.

    ``facts``: what the results say besides of where they come from.
    """

    def __init__(self, facts: Mapping[str, object] | None = None) -> None:
        self.facts = dict(facts or {})
        self._pool: WorkerPool | None = None
        self._measurement: Measurement | None = None
        self._cores: Cores | None = None  # which replay

    def __enter__(self) -> OpenWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything."""
        self.stop_workers()
        if self._cores is not None:
            self._cores.close()
            self._cores = None

    @property
    def cores(self) -> Cores:
        """The processes that replay, which stay whatever pair is measured."""
        if self._cores is None:
            self._cores = Cores()
        return self._cores

    def stop_workers(self) -> None:
        """Stop the workers, if there are any."""
        measurement, self._measurement, self._pool = self._measurement, None, None
        if measurement is not None:
            measurement.world.close()

    def know_draft_size(self, pool: WorkerPool, bar: Progress) -> None:
        """Choose the size of a pair's draft, unless that was done on this machine."""
        pair = load_pair(pool.pair)
        if not kept_draft_sizes.is_known(pair, pool.dtype):
            self.measurement_in(pool, bar)  # which tries some sizes as it starts
        choose_draft_size(pair, pool.dtype)

    def measurement_in(self, pool: WorkerPool, bar: Progress) -> Measurement:
        """The measurement that is under way in these workers."""
        if self._measurement is None or self._pool != pool:
            self.stop_workers()
            bar.step(f"starting {pool.pair}", 0)
            self._measurement = _start(pool, self)
            self._pool = pool
        return self._measurement


def _start(pool: WorkerPool, workers: OpenWorkers) -> Measurement:
    """Start workers, and find out what must be known of them."""
    world = Processes(
        load_pair(pool.pair),
        dtype=pool.dtype,
        servers=pool.servers,
        cancel=pool.cancel,
    )
    try:
        world_facts = {
            **workers.facts,
            "contention": measured_cells.measure_contention(world),
            "cost_ratio": asdict(world.cost_ratio),
            "load": round(machine.load(), 2),
            "draft": world.opened.runtime("draft"),
        }
        size = describe_draft_size(pool.pair, pool.dtype)
        if size:
            world_facts["draft_size"] = size
        return Measurement(world, pool, world_facts, workers)
    except BaseException:
        world.close()
        raise


def run_missing(
    specs: list[Spec],
    bar: Progress,
    limits: Limits = NO_LIMITS,
    workers: OpenWorkers | None = None,
) -> dict[Spec, Exception]:
    """Do the prompts that are missing, pair by pair; returns the errors of cells.

    A step of ``bar`` is a prompt of a cell. ``workers`` are used and left open, where
    they are given.
    """

    def missing(cell: MeasuredCell) -> list[int]:
        return cell.missing(limits)

    return _run(specs, missing, bar, limits, workers)


def run_disturbed_again(
    specs: list[Spec],
    bar: Progress,
    limits: Limits,
    most_tries: int,
    workers: OpenWorkers | None = None,
) -> dict[Spec, Exception]:
    """Do disturbed prompts once more, those that had fewer than ``most_tries``."""

    def to_repeat(cell: MeasuredCell) -> list[int]:
        return cell.disturbed(most_tries)

    return _run(specs, to_repeat, bar, limits, workers)


def replay_all(
    specs: Iterable[Spec], workers: OpenWorkers, limits: Limits = NO_LIMITS
) -> None:
    """Replay the prompts of measured cells, as many as the limits allow.

    Those that were not measured, and those whose passes are not timed, are left out.
    """
    replays = []
    for spec in specs:
        cell, times = MeasuredCell(spec), pass_times.stored(spec.worker_pool)
        if cell.header is not None and cell.requests and times is not None:
            for setting in (cell.setting, PLAIN):
                replays.append(replayed_cell(spec, setting, times))
    prompts = replays_of(limits.requests)
    replayed.replay(replays, prompts, workers.cores, limits.seconds_left)


def stored(spec: Spec) -> CellResult | None:
    """What the cache has of a cell; None without a prompt that is done.

    Of several machines that have measured it (see ``environments``), the one counts
    that has done most.
    """
    results = []
    for environment in environments.known_environments():
        cell = MeasuredCell(spec, environment)
        result = cell.result()
        if result is not None:
            result.replays = _replays(cell, environment)
            results.append(result)
    return max(results, key=lambda result: len(result.stats), default=None)


def _replays(cell: MeasuredCell, environment: Environment) -> Replays | None:
    """The replays of a measured cell; None where not even its own prompts have any."""
    times = pass_times.stored(cell.spec.worker_pool, environment)
    if times is None:
        return None
    own = replayed_cell(cell.spec, cell.setting, times)
    plain = replayed_cell(cell.spec, PLAIN, times)
    count = min(len(own.prompts), len(plain.prompts))
    if count < len(cell.requests):
        return None
    return Replays(
        stats=own.stats[:count],
        baseline=plain.stats[:count],
        sequence_choices=[prompt.sequence_choices for prompt in own.prompts[:count]],
        prompts_in_task=own.prompts_in_task,
    )


def files_of(spec: Spec) -> dict[str, str]:
    """The files of the cache that ``stored`` reads of this machine, by their keys.

    None of a cell that is not begun.
    """
    pool = spec.worker_pool
    cell, times = MeasuredCell(spec), pass_times.stored(pool)
    if cell.header is None:
        return {}
    keys = [key_of(spec), pass_times.key_of(pool)]
    if times is not None:
        for setting in (cell.setting, PLAIN):
            keys.append(replayed_cell(spec, setting, times).key)
    texts = {key: cache.text_of(key) for key in keys}
    return {key: text for key, text in texts.items() if text}


def _run(
    specs: list[Spec],
    prompts_of: Callable[[MeasuredCell], list[int]],
    bar: Progress,
    limits: Limits,
    workers: OpenWorkers | None,
) -> dict[Spec, Exception]:
    """Do the prompts that ``prompts_of`` names of each cell."""
    errors: dict[Spec, Exception] = {}
    with contextlib.ExitStack() as stack:
        open_workers = workers or stack.enter_context(OpenWorkers())
        cells = _cells_of(specs, open_workers, bar, errors)
        work = {cell: prompts_of(cell) for cell in cells}
        unfinished = [cell for cell in cells if work[cell]]
        bar.grow(sum(len(work[cell]) for cell in unfinished))

        for pool, sharing in _group(unfinished, lambda c: c.spec.worker_pool).items():
            if limits.is_over:
                break
            try:
                measurement = open_workers.measurement_in(pool, bar)
                by_conditions = _group(sharing, lambda cell: cell.conditions)
                for conditions, alike in by_conditions.items():
                    errors |= measurement.decode_prompts(
                        conditions, {cell: work[cell] for cell in alike}, bar, limits
                    )
                    measurement.replay(alike, bar)
            except Exception as error:  # the workers failed, and all that needs them
                open_workers.close()
                for cell in sharing:
                    if prompts_of(cell):
                        errors.setdefault(cell.spec, _with_advice(error))
    return errors


def _cells_of(
    specs: list[Spec],
    workers: OpenWorkers,
    bar: Progress,
    errors: dict[Spec, Exception],
) -> list[MeasuredCell]:
    """The cells of specs; of those that there are none of, ``errors`` says why."""
    cells = []
    for pool, sharing in _group(specs, lambda spec: spec.worker_pool).items():
        try:
            # Before a cell is looked for, since its key depends on it.
            workers.know_draft_size(pool, bar)
        except Exception as error:
            workers.stop_workers()
            errors |= dict.fromkeys(sharing, _with_advice(error))
            continue
        for spec in sharing:
            try:
                cells.append(MeasuredCell(spec))
            except Exception as error:
                errors[spec] = error
    return cells


def _with_advice(error: Exception) -> Exception:
    """Where a library is missing, the error that says how to install it."""
    if not isinstance(error, ImportError):
        return error
    return SpeclibError(
        f"{error}: measured cells need the libraries of real models: "
        f"{how_to_install('models')}"
    )


class _Prompts:
    """Prompts by number; those of later turns are made when they are asked for."""

    def __init__(
        self, world: Processes, conditions: Conditions, asked: list[Prompt | Turn]
    ):
        self._world = world
        self._conditions = conditions
        self._asked = asked
        self.count = len(asked)
        self._known: dict[int, Prompt] = {}

    def __getitem__(self, number: int) -> Prompt:
        if number not in self._known:
            self._known[number] = measured_cells.with_replies(
                self._world, self._asked[number], self._conditions, number
            )
        return self._known[number]


class Measurement:
    """Cells of one pair, under way in its workers.

    world        the workers, ``pool``
    world_facts  what ``CellResult.facts`` says of them
    times        seconds of their passes, by which prompts are replayed; None as long as
                 they are not known, and of a pair that is not replayed
    """

    def __init__(
        self,
        world: Processes,
        pool: WorkerPool,
        world_facts: dict[str, Any],
        workers: OpenWorkers,
    ):
        self.world = world
        self.world_facts = world_facts
        self._workers = workers
        self._pool = pool
        self._is_replayed = is_replayable(world.opened.pair)
        self.times = pass_times.stored(pool) if self._is_replayed else None
        self._warm: set[Setting] = set()
        self._seconds_measured = 0.0  # since something was replayed

    def decode_prompts(
        self,
        conditions: Conditions,
        work: dict[MeasuredCell, list[int]],
        bar: Progress,
        limits: Limits,
    ) -> dict[Spec, Exception]:
        """Decode prompts for cells of equal conditions; returns the errors of cells.

        ``work``: the numbers of the prompts that each cell needs.
        """
        numbers = sorted({number for needed in work.values() for number in needed})
        prompts = _Prompts(
            self.world,
            conditions,
            load_prompts(
                conditions.task,
                conditions.length,
                numbers[-1] + 1,
                self.world.opened.tokenizer,
            ),
        )
        errors: dict[Spec, Exception] = {}
        searched = self._search(
            [cell for cell in work if _needs_search(cell)], prompts, bar
        )
        for cell in work:
            if limits.is_over:
                return errors
            try:
                self._warm_up(cell, prompts[0])
                self._prepare(cell, searched.get(cell, {}))
            except Exception as error:
                errors[cell.spec] = error

        for number in numbers:
            if limits.is_over:
                return errors
            cells = [
                cell
                for cell, needed in work.items()
                if number in needed and cell.spec not in errors
            ]
            errors |= self._measure_prompt(number, prompts[number], cells, bar, limits)
        return errors

    def _warm_up(self, cell: MeasuredCell, prompt: Prompt) -> None:
        """Decode a few tokens plainly and by the cell's method, once in a world."""
        spec = cell.spec
        gamma = None if spec.gamma is None else WARM_UP_GAMMA
        conditions = cell.conditions._replace(tokens=WARM_UP_TOKENS)
        for setting in (PLAIN, Setting(spec.method, gamma, spec.settings)):
            if setting not in self._warm:
                measured_cells.decode_prompt(
                    self.world, prompt, setting, conditions, request=0
                )
                self._warm.add(setting)

    def _prepare(self, cell: MeasuredCell, speeds: dict[int, float]) -> None:
        """Settle the cell's window and start its header, unless an earlier run did.

        ``speeds``: tokens per second by window, where windows were searched.
        """
        if cell.header is not None:
            return
        spec, world = cell.spec, self.world
        facts = dict(self.world_facts)
        gamma: int | None
        if spec.gamma is None:
            gamma = None
        elif speeds:
            gamma = max(speeds, key=speeds.__getitem__)
            facts["searched"] = {str(g): speed for g, speed in speeds.items()}
        else:
            assert not isinstance(spec.gamma, tuple)  # a measured cell has no choice
            gamma = draft_length(spec.gamma, world)
        cell.header = MeasuredHeader(
            spec=spec.model_dump(mode="json"),
            gamma=gamma,
            c=round(world.ratio, 4),
            machine=machine.name(),
            created=f"{datetime.now():%Y-%m-%d %H:%M}",
            facts=facts,
        )
        cell.save()

    # -- replays -----------------------------------------------------------------------
    def _search(
        self, cells: list[MeasuredCell], prompts: _Prompts, bar: Progress
    ) -> dict[MeasuredCell, dict[int, float]]:
        """Of each cell window -> tokens per second, of windows about c.

        They are tried on replays; on measured prompts where there are none.
        """
        if not cells:
            return {}
        bar.step(f"searching windows of {cells[0].spec.pair}", 0)
        windows = measured_cells.windows_near_c(self.world.ratio, WINDOWS)
        speeds: dict[MeasuredCell, dict[int, float]] = {cell: {} for cell in cells}
        if self._is_replayed:
            speeds = self._speeds_of_replays(cells, windows)
        for cell, by_window in speeds.items():
            if not by_window:
                for gamma in windows:
                    by_window[gamma] = self._speed_of(cell, gamma, prompts)
        return speeds

    def _speeds_of_replays(
        self, cells: list[MeasuredCell], windows: list[int]
    ) -> dict[MeasuredCell, dict[int, float]]:
        """The same on replays; of a cell that cannot be replayed nothing."""
        self.times = self.times or pass_times.timed(self._pool, self.world)
        replays = {}
        for cell in cells:
            for gamma in windows:
                setting = Setting(cell.spec.method, gamma, cell.spec.settings)
                replays[cell, gamma] = replayed_cell(cell.spec, setting, self.times)
        replayed.replay(replays.values(), SEARCHED, self._workers.cores, SEARCH_SECONDS)

        counts = [len(replay.prompts) for replay in replays.values() if replay.prompts]
        shared = min(counts, default=0)  # prompts that every window has
        speeds: dict[MeasuredCell, dict[int, float]] = {cell: {} for cell in cells}
        for (cell, gamma), replay in replays.items():
            if replay.prompts:
                speeds[cell][gamma] = total(replay.stats[:shared]).decode_speed
        return speeds

    def _speed_of(self, cell: MeasuredCell, gamma: int, prompts: _Prompts) -> float:
        """Tokens per second with a window, measured on the first prompts."""
        setting = Setting(cell.spec.method, gamma, cell.spec.settings)
        runs = []
        for request in range(min(SEARCHED_BY_MEASURING, prompts.count)):
            runs.append(
                measured_cells.decode_prompt(
                    self.world, prompts[request], setting, cell.conditions, request
                )
            )
        return total(run.stats for run in runs).decode_speed

    def replay(self, cells: list[MeasuredCell], bar: Progress) -> None:
        """Replay more prompts of each cell that has any, and of plain decoding.

        It may take a share of the time that measuring them took.
        """
        seconds = max(LEAST_SECONDS, REPLAY_SHARE * self._seconds_measured)
        self._seconds_measured = 0.0
        if self.times is None:
            return
        by_count: dict[int, list[MeasuredCell]] = {}
        for cell in cells:
            if cell.header is not None and cell.requests:
                by_count.setdefault(len(cell.requests), []).append(cell)
        for measured, alike in sorted(by_count.items(), key=lambda each: each[0]):
            bar.step(f"replaying {cells[0].spec.pair}, {cells[0].spec.task}", 0)
            # Read now: plain decoding is shared with those before.
            replays = [
                replayed_cell(cell.spec, setting, self.times)
                for cell in alike
                for setting in (cell.setting, PLAIN)
            ]
            replayed.replay(
                replays,
                REPLAYS_OF_A_REQUEST * measured,
                self._workers.cores,
                seconds=seconds,
                at_least=measured,
            )

    # -- one prompt --------------------------------------------------------------------
    def _measure_prompt(
        self,
        number: int,
        prompt: Prompt,
        cells: list[MeasuredCell],
        bar: Progress,
        limits: Limits,
    ) -> dict[Spec, Exception]:
        """Decode a prompt by plain decoding and by every cell, and store what came.

        Nothing is stored of a prompt whose time ran out. Returns the errors of cells.
        """
        if not cells:
            return {}
        start, started = other_load.read_clocks(), time.monotonic()
        runs, errors = self._decode_in_turn(number, prompt, cells, limits)
        others = other_load.others_since(start)
        self._seconds_measured += time.monotonic() - started
        if PLAIN not in runs or limits.must_end:
            return errors  # nothing to compare the others with, or not all of them

        # Asked when all runs are over, so that none of them finds a warmer cache.
        plain = runs[PLAIN]
        if self.times is None and self._is_replayed:
            traces = [result.trace for result in runs.values()]
            self.times = pass_times.read_from(
                self._pool, traces, others, self.world.ratio
            )
        output_facts = examine_outputs(
            self.world,
            prompt=tuple(plain.trace.meta["prompt"]),
            outputs={result.tokens for result in runs.values()},
            plain_output=plain.tokens,
            with_agreements=number == 0,
        )
        for cell in cells:
            if cell.setting in runs:
                result = runs[cell.setting]
                cell.add(number, result, plain, output_facts[result.tokens], others)
                bar.step(cell.spec.name)
        return errors

    def _decode_in_turn(
        self, number: int, prompt: Prompt, cells: list[MeasuredCell], limits: Limits
    ) -> tuple[dict[Setting, Result], dict[Spec, Exception]]:
        """Decode a prompt by plain decoding and by the cells' methods, each once.

        Who begins rotates with the number of the prompt. A method that fails fails its
        cells; where plain decoding fails, the rest of the prompt is given up.
        """
        settings = list(dict.fromkeys([PLAIN, *(cell.setting for cell in cells)]))
        first = number % len(settings)
        runs: dict[Setting, Result] = {}
        errors: dict[Spec, Exception] = {}
        for setting in settings[first:] + settings[:first]:
            if limits.must_end:
                break
            try:
                runs[setting] = measured_cells.decode_prompt(
                    self.world, prompt, setting, cells[0].conditions, number
                )
            except Exception as error:
                for cell in cells:
                    if setting in (PLAIN, cell.setting):
                        errors[cell.spec] = error
                if setting == PLAIN:
                    break
        return runs, errors


def _needs_search(cell: MeasuredCell) -> bool:
    """Whether its window is the best one, and none was found yet."""
    return cell.header is None and cell.spec.gamma == "best"


def _group(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Items by what ``key`` says of them, in the order in which they came."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
