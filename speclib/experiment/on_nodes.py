"""Measured cells on the nodes of a cluster: each pair's on one node, alone there.

Who asks decides which cells a node does next, a few requests at a time. A node keeps
its workers open from one question to the next, and what it finishes in its own cache.
Each answer brings the cells' files, which are kept here, too. So an interrupted run
goes on where it stopped, on any node.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from speclib import machine
from speclib.errors import SpeclibError
from speclib.progress import Progress

from . import cache, environments
from .environments import Environment
from .limits import Limits
from .run_cells import Runner
from .spec import Spec, WorkerPool


@dataclass(frozen=True)
class Step:
    """What a node is asked to do.

    specs     measured cells of one pair
    requests  to how many requests each is taken
    seconds   until when something may be begun; None: no limit
    again     only what other programs disturbed, once more
    files     what is known of these cells so far, by their keys
    """

    specs: tuple[Spec, ...]
    requests: int | None
    seconds: float | None
    again: bool
    files: dict[str, str]


@dataclass(frozen=True)
class Outcome:
    """What came of a step.

    files          what is known of its cells now
    errors         why cells failed
    environment    what tells the node's hardware and libraries from others
    start_seconds  how long it took to start the workers; None if they ran already
    """

    files: dict[str, str]
    errors: dict[Spec, str]
    environment: Environment
    start_seconds: float | None


class CellsOfNode:
    """Runs on a node, and does the steps that it is asked to do."""

    def __init__(self, node: str):
        self._runner = Runner(Progress("cells", show=False), {"node": node})

    def __call__(self, step: Step) -> Outcome:
        from .engines.measured_cell import key_of

        for key, text in step.files.items():
            cache.take_in(key, text)

        pool = step.specs[0].worker_pool
        was_open = self._runner.has_open(pool)
        self._runner.errors.clear()
        deadline = None if step.seconds is None else time.monotonic() + step.seconds
        limits = Limits(step.requests, deadline)
        if step.again:
            self._runner.repeat_disturbed(step.specs, limits)
        else:
            self._runner.run(step.specs, limits)

        files = {}
        for spec in step.specs:
            if spec not in self._runner.errors:
                key = key_of(spec)
                files[key] = cache.text_of(key)
        return Outcome(
            files={key: text for key, text in files.items() if text},
            errors={spec: str(why) for spec, why in self._runner.errors.items()},
            environment=machine.environment(),
            start_seconds=None if was_open else self._runner.start_seconds(pool),
        )


@dataclass
class Answer:
    """What a node answered: the outcome of its step, or why there is none."""

    node: str
    outcome: Outcome | None
    lost: str = ""


@dataclass
class Nodes:
    """The nodes of the running cluster, which measure cells; a context manager.

    Raises SpeclibError where there is no cluster, or where a node cannot be used.
    """

    _pools: dict[str, WorkerPool] = field(default_factory=dict)
    _helpers: Any = None

    def __enter__(self) -> Nodes:
        try:
            from speclib.worlds.cluster.helpers import Helpers
        except ModuleNotFoundError as error:
            if error.name != "ray":
                raise
            raise SpeclibError(
                "WORLD=cluster needs Ray: `make cluster` installs it"
            ) from error
        self._helpers = Helpers(CellsOfNode)
        return self

    def __exit__(self, *_: object) -> None:
        self._helpers.close()

    @property
    def names(self) -> list[str]:
        """Of the nodes that are not lost."""
        return list(self._helpers.alive)

    @property
    def idle(self) -> list[str]:
        """Of those that do nothing now."""
        return list(self._helpers.idle)

    @property
    def left_out(self) -> dict[str, str]:
        """Why, by its name, a node is not used."""
        return dict(self._helpers.left_out)

    def pool_of(self, node: str) -> WorkerPool | None:
        """The workers that are open on a node."""
        return self._pools.get(node)

    def ask(
        self,
        node: str,
        specs: Iterable[Spec],
        requests: int | None,
        deadline: float | None,
        again: bool = False,
    ) -> None:
        """Asks an idle node for measured cells of one pair.

        ``deadline`` is on the clock of ``time.monotonic``.
        """
        from .engines.measured_cell import key_of

        specs = tuple(specs)
        files = {}
        for spec in specs:
            for environment in environments.known():
                key = key_of(spec, environment)
                files[key] = cache.text_of(key)
        seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
        known_files = {key: text for key, text in files.items() if text}
        self._pools[node] = specs[0].worker_pool
        self._helpers.ask(node, Step(specs, requests, seconds, again, known_files))

    def first(self) -> Answer:
        """Waits until some node has done its step, and keeps the cells' files.

        Raises SpeclibError once all nodes are lost.
        """
        node, answer = self._helpers.first()
        if not isinstance(answer, Outcome):
            self._pools.pop(node, None)
            lost = getattr(answer, "cause", None) or str(answer)
            if not self.names:
                raise SpeclibError(
                    f"{lost}. No node is left; finished cells are kept, run again to "
                    "go on"
                )
            return Answer(node, None, lost)

        environments.remember(answer.environment)
        for key, text in answer.files.items():
            cache.take_in(key, text, at_least_as_many=True)
        return Answer(node, answer)
