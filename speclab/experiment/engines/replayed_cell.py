"""A measured cell's prompts replayed on the virtual clock, as the cache has them.

There are more of them than were measured. Plain decoding of the same prompts is a
replayed cell of its own, which other cells share.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from speclab.experiment import cache, cache_keys
from speclab.experiment.cells.measured_prompt import Conditions, Setting
from speclab.experiment.cells.task_prompts import count_prompts
from speclab.experiment.cells.timed_passes import MachineTimes
from speclab.experiment.spec import Spec, WorkerPool, present
from speclib.data.pairs import load_pair
from speclib.data.prompts import folder_to_measure
from speclib.methods import METHODS
from speclib.models.open_pair import open_pair
from speclib.trace.metrics import Stats

from .inputs import input_files

# Modules that enter the key, with all that they import: see ``measured_cell``.
CODE = (
    "speclab.experiment.cells.replayed_prompt",
    "speclab.experiment.cells.task_prompts",
    "speclib.models.hf",
    "speclib.models.toy",
)


@dataclass(frozen=True)
class ReplayedHeader:
    """What is stored of a cell besides its prompts."""

    spec: dict[str, Any]
    created: str


@dataclass(frozen=True)
class ReplayedPrompt:
    """What one prompt gave on the virtual clock; ``RequestOutcome`` says what."""

    stats: Stats
    sequence_choices: list[tuple[int, int | None]]


class ReplayedCell:
    """A method with its window on some prompts of a pair, by the times of a machine.

    pool         the workers that it is measured in
    prompts      those that are done, in order
    """

    def __init__(
        self,
        pool: WorkerPool,
        setting: Setting,
        conditions: Conditions,
        times: MachineTimes,
    ):
        self.pool = pool
        self.setting = setting
        self.conditions = conditions
        self.times = times
        self.key = key_of(pool, setting, conditions, times)
        self.prompts: list[ReplayedPrompt] = []
        stored = cache.load(self.key, ReplayedHeader, ReplayedPrompt)
        if stored is not None:
            self.prompts = stored.lines

    def add(self, prompts: list[ReplayedPrompt]) -> None:
        """Adds the prompts that follow those that are done, and stores the cell."""
        self.prompts += prompts
        header = ReplayedHeader(
            spec={
                "pair": self.pool.pair,
                **self.setting._asdict(),
                **self.conditions._asdict(),
            },
            created=f"{datetime.now():%Y-%m-%d %H:%M}",
        )
        cache.save(self.key, header, self.prompts)

    @property
    def stats(self) -> list[Stats]:
        return [prompt.stats for prompt in self.prompts]

    @property
    def prompts_in_task(self) -> int | None:
        """How many prompts there are to replay; None: as many as anybody wants.

        So it is of toys, and where chance draws the text: it would draw another one.
        Prompts of one length are cut from the same texts, so to know some is to know
        less of the others than it seems: they count as without end, too.
        """
        task = self.conditions.task
        is_drawn = task == "toy" or self.conditions.temperature > 0
        if is_drawn or self.conditions.length is not None:
            return None
        return _count(task, folder_to_measure(task))


@lru_cache
def _count(task: str, folder: Path | None) -> int:
    """How many prompts a task has; ``folder``: where it is taken from."""
    return count_prompts(task, length=None)


def replayed_cell(spec: Spec, setting: Setting, times: MachineTimes) -> ReplayedCell:
    """The replays of a measured spec by ``setting``."""
    return ReplayedCell(spec.worker_pool, setting, conditions_of(spec), times)


def conditions_of(spec: Spec) -> Conditions:
    """What other cells must share to be compared with a measured one, per prompt."""
    return Conditions(
        task=present(spec.task),
        length=spec.length,
        tokens=spec.tokens,
        temperature=spec.temperature,
        seed=spec.seed,
        ignore_eos=spec.ignore_eos,
        with_tail=spec.with_tail,
    )


def key_of(
    pool: WorkerPool, setting: Setting, conditions: Conditions, times: MachineTimes
) -> str:
    """The cell's name: a hash of what is run, its code, its data and the times."""
    return cache_keys.digest(
        "replayed",
        pool,
        setting,
        conditions,
        cache_keys.hash_of_method(METHODS[setting.method], *CODE),
        cache_keys.hash_of_files(
            *input_files(pool.pair, conditions.task, setting.method)
        ),
        open_pair(load_pair(pool.pair)).runtime("draft"),
        times,
    )
