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
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import asdict
from datetime import datetime
from typing import TypeVar

from speclib import machine
from speclib.data.pairs import load_pair
from speclib.decoding.auto_settings import draft_length
from speclib.decoding.decode import Result
from speclib.errors import SpeclibError
from speclib.experiment.cells import measured as measured_cells
from speclib.experiment.cells.measured import Conditions, Setting
from speclib.experiment.cells.outputs import examine_outputs
from speclib.experiment.cells.task_prompts import Prompt, load_prompts
from speclib.experiment.spec import CellResult, Spec, WorkerPool
from speclib.models import factory
from speclib.progress import Progress
from speclib.trace.metrics import total
from speclib.worlds.processes import Processes

from .measured_cell import MeasuredCell, MeasuredHeader

PLAIN = Setting("autoregressive", None)
WARM_UP_TOKENS = 8
WARM_UP_GAMMA = 2
WINDOWS = (0.6, 1.0, 1.5, 2.0, 2.6)  # of c: the windows a search tries

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


def results(
    specs: list[Spec], bar: Progress
) -> Iterator[tuple[Spec, CellResult | Exception]]:
    """Each spec with its result, or the error it ended with, pair by pair.

    A step of ``bar`` is a prompt.
    """
    bar.grow(sum(spec.requests for spec in specs))
    for workers, sharing in _group(specs, lambda spec: spec.worker_pool).items():
        yield from _results_of_one_pair(workers, sharing, bar)


def _results_of_one_pair(
    workers: WorkerPool, specs: list[Spec], bar: Progress
) -> Iterator[tuple[Spec, CellResult | Exception]]:
    """The same for specs that need the same workers: first the failures."""
    cells: list[MeasuredCell] = []
    errors: dict[Spec, Exception] = {}
    for spec in specs:
        try:
            cells.append(MeasuredCell(spec, on_prompt=bar.step))
        except Exception as error:
            errors[spec] = error

    unfinished = [cell for cell in cells if not cell.is_done]
    try:
        errors |= _measure(workers, unfinished, bar)
    except Exception as error:  # the workers failed, and with them all that is not done
        for cell in unfinished:
            if not cell.is_done:
                errors[cell.spec] = _with_advice(error)

    yield from errors.items()
    for cell in cells:
        if cell.spec not in errors:
            yield cell.spec, cell.result()


def _with_advice(error: Exception) -> Exception:
    """Where a library is missing, the error that says how to install it."""
    if not isinstance(error, ImportError):
        return error
    return SpeclibError(
        f"{error}: measured cells need the libraries of real models; install them "
        "with `pip install 'speclib[models]'`"
    )


def _measure(
    workers: WorkerPool, cells: list[MeasuredCell], bar: Progress
) -> dict[Spec, Exception]:
    """Complete cells in one set of workers; returns the errors of those that failed."""
    if not cells:
        return {}
    bar.step(f"starting {workers.pair}", 0)
    with Processes(
        load_pair(workers.pair),
        dtype=workers.dtype,
        servers=workers.servers,
        cancel=workers.cancel,
    ) as world:
        world_facts = {
            "contention": measured_cells.measure_contention(world),
            "cost_ratio": asdict(world.cost_ratio),
            "load": round(machine.load(), 2),
            "draft": factory.runtime(world.pair, "draft"),
        }
        measurement = Measurement(world, world_facts, bar)
        for conditions, alike in _group(cells, lambda cell: cell.conditions).items():
            measurement.complete(conditions, alike)
    return measurement.errors


class Measurement:
    """Cells of one pair, under way in its workers.

    world        the workers
    world_facts  what ``CellResult.facts`` says of them
    errors       why by spec of the cells that failed
    """

    def __init__(self, world: Processes, world_facts: dict, bar: Progress):
        self.world = world
        self.world_facts = world_facts
        self.bar = bar
        self.errors: dict[Spec, Exception] = {}
        self._warm: set[Setting] = set()

    def complete(self, conditions: Conditions, cells: list[MeasuredCell]) -> None:
        """Complete cells of equal conditions, prompt by prompt."""
        prompts = load_prompts(
            conditions.task,
            conditions.length,
            max(cell.spec.requests for cell in cells),
            factory.tokenizer(self.world.pair),
        )
        for cell in cells:
            try:
                self._warm_up(cell, prompts[0])
                self._prepare(cell, prompts)
            except Exception as error:
                self.errors[cell.spec] = error
        for number, prompt in enumerate(prompts):
            sound = [cell for cell in cells if cell.spec not in self.errors]
            self._measure_prompt(number, prompt, sound)

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

    def _prepare(self, cell: MeasuredCell, prompts: list[Prompt]) -> None:
        """Settle the cell's window and start its header, unless an earlier run did."""
        if cell.header is not None:
            return
        spec, world = cell.spec, self.world
        facts = dict(self.world_facts)
        if spec.gamma == "best":
            speeds = self._try_windows(cell, prompts)
            gamma = max(speeds, key=speeds.__getitem__)
            facts["searched"] = {str(g): speed for g, speed in speeds.items()}
        elif spec.gamma is None:
            gamma = None
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

    def _try_windows(
        self, cell: MeasuredCell, prompts: list[Prompt]
    ) -> dict[int, float]:
        """Window -> tokens per second on the first prompts, of windows about c."""
        speeds = {}
        for gamma in measured_cells.windows_near_c(self.world.ratio, WINDOWS):
            self.bar.step(f"trying gamma {gamma} of {cell.spec.name}", 0)
            setting = Setting(cell.spec.method, gamma, cell.spec.settings)
            request_stats = []
            for request, prompt in enumerate(prompts[: cell.spec.sweep]):
                result = measured_cells.decode_prompt(
                    self.world, prompt, setting, cell.conditions, request
                )
                request_stats.append(result.stats)
            speeds[gamma] = total(request_stats).decode_speed
        return speeds

    def _measure_prompt(
        self, number: int, prompt: Prompt, cells: list[MeasuredCell]
    ) -> None:
        """Decode a prompt by plain decoding and by every cell that lacks it."""
        lacking = [cell for cell in cells if cell.lacks(number)]
        if not lacking:
            return
        runs = self._decode_in_turn(number, prompt, lacking)
        if PLAIN not in runs:
            return  # nothing to compare the others with

        # Asked when all runs are over, so that none of them finds a warmer cache.
        plain = runs[PLAIN]
        output_facts = examine_outputs(
            self.world,
            prompt=tuple(plain.trace.meta["prompt"]),
            outputs={result.tokens for result in runs.values()},
            plain_output=plain.tokens,
            with_agreements=number == 0,
        )
        for cell in lacking:
            if cell.setting in runs:
                result = runs[cell.setting]
                cell.add(result, plain, output_facts[result.tokens])

    def _decode_in_turn(
        self, number: int, prompt: Prompt, cells: list[MeasuredCell]
    ) -> dict[Setting, Result]:
        """Decode a prompt by plain decoding and by the cells' methods, each once.

        Who begins rotates with the number of the prompt. A method that fails fails its
        cells; where plain decoding fails, the rest of the prompt is given up.
        """
        settings = list(dict.fromkeys([PLAIN, *(cell.setting for cell in cells)]))
        first = number % len(settings)
        runs: dict[Setting, Result] = {}
        for setting in settings[first:] + settings[:first]:
            try:
                runs[setting] = measured_cells.decode_prompt(
                    self.world, prompt, setting, cells[0].conditions, number
                )
            except Exception as error:
                for cell in cells:
                    if setting in (PLAIN, cell.setting):
                        self.errors[cell.spec] = error
                if setting == PLAIN:
                    return runs
        return runs


def _group(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Items by what ``key`` says of them, in the order in which they came."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
