"""What a worker process does for several requests at a time.

It gets the operations of all seats in one message. Emulated, a cheap model computes the
tokens, and the worker waits until the latency of all is over.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from speclib.core.sampling import Tokens
from speclib.core.settings import Role
from speclib.data.latency import Latency
from speclib.data.pairs import Pair
from speclib.models.open_pair import open_pair
from speclib.operations.operation import Done

from .devices import cause_of
from .seated_models import SeatedModels, Task
from .worker import Certain, pin


class TaskDone(NamedTuple):
    """What came of a task, as of ``worker.Reply``. ``cause``: why it failed, or ""."""

    kept: int = 0
    fed: int = 0
    small: Any = None
    rows: Any = None
    cause: str = ""


class TasksDone(NamedTuple):
    """What came of all tasks, in their order, and when, by the system's clock."""

    start: float
    end: float
    outcomes: list[TaskDone]


def device(
    pair: Pair, role: Role, seats: int, dtype: str, latency: Latency | None = None
) -> Any:
    """Builds the models of ``seats`` requests; returns what answers (tasks, pipe).

    ``latency``: emulate these durations.
    """
    opened = open_pair(pair)
    pin(opened.place.of(role, 0), pair.place.threads)
    models = SeatedModels(opened, role, seats, dtype, dilated=latency is None)
    return partial(answer, models, role, latency)


def answer(
    models: SeatedModels,
    role: Role,
    latency: Latency | None,
    tasks: Sequence[Task],
    pipe: Connection,
) -> TasksDone:
    """Performs the tasks of one step; emulated, they last as they should."""
    start = time.monotonic()
    outcomes = models.perform(tasks)
    if latency is not None:
        ends = start + latency.seconds_together(role, passes_of(tasks, outcomes))
        time.sleep(max(0.0, ends - time.monotonic()))
    end = time.monotonic()
    replies = []
    for task, outcome in zip(tasks, outcomes, strict=True):
        replies.append(_to_send(task, outcome))
    return TasksDone(start, end, replies)


def passes_of(tasks: Sequence[Task], outcomes: Sequence[Done | Exception]) -> list[Any]:
    """Of each task that did not fail the passes that it took."""
    passes = []
    for task, outcome in zip(tasks, outcomes, strict=True):
        if isinstance(outcome, Done):
            passes.append(task.operation.passes(outcome.kept, outcome.fed))
    return passes


def _to_send(task: Task, outcome: Done | Exception) -> TaskDone:
    if isinstance(outcome, Exception):
        return TaskDone(cause=cause_of(outcome))
    if outcome.raw is None:
        return TaskDone(outcome.kept, outcome.fed, cause="it gave nothing")
    rows: Any = outcome.raw.rows
    if task.operation.gives_distributions and task.request.sampler.greedy:
        likeliest: Tokens = tuple(rows.argmax(-1).tolist())
        rows = Certain(likeliest)
    return TaskDone(outcome.kept, outcome.fed, outcome.raw.small, rows)
