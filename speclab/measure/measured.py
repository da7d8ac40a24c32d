"""Measured cells: real models in worker processes, with methods taking turns.

For each prompt, plain decoding runs first, then every method, in rotating order:

    prompt 0    plain   pearl   speculative   dsi
    prompt 1    plain   speculative   dsi   pearl
    prompt 2    plain   dsi   pearl   speculative

If the machine slows down, it slows all of them. Plain decoding comes first, since a row
is useless without its baseline. So if a measurement is interrupted, only the current
run is lost. All settings are warmed up beforehand. Cells that end up with the same
method and window share a run. A row records where its output first differs from plain
decoding's.
"""

from __future__ import annotations

from speclab.runs.rows import key_of
from speclab.runs.spec import MeasuredSpec
from speclab.virtual.outputs import first_difference
from speclib.core.sampling import Tokens
from speclib.models.loading import TORCH_NAMES

from . import other_load
from .measured_prompt import with_replies
from .measurement import Group, Measurement, Window, grouped
from .open_workers import OpenPool, OpenWorkers
from .task_prompts import Prompt, Turn, load_prompts

EXACT = ("float32", "float64")  # narrower dtypes may break ties differently


def measure_cells(
    specs: list[MeasuredSpec],
    prompts: int,
    workers: OpenWorkers,
    measurement: Measurement,
) -> None:
    """Runs measured cells until each has rows for ``prompts`` prompts."""
    unfinished = [spec for spec in specs if measurement.missing(spec, prompts)]
    pools = grouped(unfinished, lambda spec: spec.worker_pool)
    for pool in sorted(pools, key=workers.has_open, reverse=True):  # the open one first
        if measurement.is_over:
            return
        try:
            opened = workers.of(pool, measurement)
        except Exception as error:
            measurement.fail(map(key_of, pools[pool]), error)
            continue
        taking_turns = grouped(pools[pool], lambda spec: key_of(spec.plain_decoding))
        for cells in taking_turns.values():
            Turns(opened, cells, measurement).run(prompts)


class Turns:
    """Cells that take turns on the same prompts, in open workers."""

    def __init__(
        self, opened: OpenPool, cells: list[MeasuredSpec], measurement: Measurement
    ):
        self._opened = opened
        self._cells = cells
        self._measurement = measurement
        self._plain = cells[0].plain_decoding.changed(requests=1)
        self._windows = {self._plain: Window(None)}

    def run(self, prompts: int) -> None:
        """Runs the cells until each has rows for ``prompts`` prompts."""
        try:
            loaded = self._load_prompts(prompts)
        except Exception as error:
            self._measurement.fail(map(key_of, self._cells), error)
            return
        for cell in self._cells:
            if not self._measurement.is_over:
                self._prepare(cell, loaded[0])
        for number in range(prompts):
            cells = [cell for cell in self._cells if self._lacks(cell, number)]
            if cells and not self._measurement.is_over:
                self._take_turns(number, loaded[number], cells)

    def _lacks(self, cell: MeasuredSpec, number: int) -> bool:
        return number in self._measurement.missing(cell, number + 1)

    def _load_prompts(self, count: int) -> list[Prompt | Turn]:
        tokenizer = self._opened.world.opened.tokenizer
        task = self._plain.task
        return load_prompts(task, self._plain.length, count, tokenizer)

    def _prepare(self, cell: MeasuredSpec, prompt: Prompt | Turn) -> None:
        """Warms up for a cell and chooses its window, or records why that fails."""
        assert not isinstance(prompt, Turn)  # a task's first prompt never is
        try:
            self._opened.warm_up(cell, prompt)
            earlier = self._measurement.window_of(cell)
            self._windows[cell] = earlier or self._opened.choose_window(cell, prompt)
        except Exception as error:
            self._measurement.fail([key_of(cell)], error)

    def _run_of(self, cell: MeasuredSpec) -> MeasuredSpec:
        """The run for a cell; cells that end up with the same window share it."""
        gamma = self._windows[cell].gamma
        has_tail = cell.with_tail and gamma is not None
        return cell.changed(gamma=gamma, requests=1, with_tail=has_tail)

    def _take_turns(
        self, number: int, loaded: Prompt | Turn, cells: list[MeasuredSpec]
    ) -> None:
        """Runs plain decoding and all cells on a prompt, and appends a row for each.

        If a run fails, so do its cells; if plain decoding fails, so do all cells.
        """
        opened = self._opened
        try:
            prompt = with_replies(opened.world, loaded, self._plain, number)
        except Exception as error:
            self._measurement.fail(map(key_of, cells), error)
            return
        where = " ".join(map(str, opened.pool))
        group = Group(self._measurement, where, number, opened.c, opened.draft)
        cells_of = grouped([self._plain, *cells], self._run_of)
        plain, *methods = cells_of
        first = number % len(methods) if methods else 0
        plain_tokens: Tokens = ()
        for turn, run in enumerate([plain, *methods[first:], *methods[:first]]):
            if self._measurement.is_over:
                return
            self._measurement.say(f"{run.name}, prompt {number}")
            start = other_load.read_clocks()
            try:
                tokens, counts = opened.decode(prompt, run, number)
            except Exception as error:
                for failed in cells_of if run == plain else [run]:
                    self._measurement.fail(map(key_of, cells_of[failed]), error)
                if run == plain:
                    return
                continue
            others = other_load.others_since(start)
            if run == plain:
                plain_tokens = tokens
            differs = self._where_it_differs(tokens, plain_tokens)
            windows = {key_of(cell): self._windows[cell] for cell in cells_of[run]}
            for key, window in windows.items():
                group.add(key, window, turn, counts, others, differs)

    def _where_it_differs(self, tokens: Tokens, plain_tokens: Tokens) -> int | None:
        """The first position where tokens differ from plain decoding's, or None.

        None, too, if a difference would prove nothing: with sampling, or in a narrow
        dtype.
        """
        is_exact = TORCH_NAMES[self._plain.dtype] in EXACT
        if self._plain.temperature or not is_exact:
            return None
        return first_difference(tokens, plain_tokens)
