"""Measured cells on the nodes of a cluster: each pair's on one node, alone there.

Who asks decides which cells a node does next, a few requests at a time. A node keeps
its workers open from one question to the next, and what it finishes in its own cache.
Each report brings the cells' files, which are stored here, too. So an interrupted run
goes on where it stopped.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from speclab.progress import Progress
from speclib import machine
from speclib.errors import SpeclibError
from speclib.worlds import kept_draft_sizes

from . import cache, environments
from .environments import Environment
from .limits import Limits
from .run_cells import Runner
from .spec import Spec


@dataclass(frozen=True)
class Order:
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
class Report:
    """What came of an order.

    files        what is known of its cells now
    errors       why cells failed
    seconds      how long it took
    environment  what tells the node's hardware and libraries from others
    draft_sizes  those chosen there, on which the keys of cells depend: the texts of
                 their files (see ``speclib.worlds.kept_draft_sizes``)
    """

    files: dict[str, str]
    errors: dict[Spec, str]
    seconds: float
    environment: Environment
    draft_sizes: dict[str, str] = field(default_factory=dict)


class CellsOfNode:
    """Runs on a node, and does what it is ordered to do."""

    def __init__(self, node: str):
        self._runner = Runner(Progress("cells", show=False), {"node": node})

    def __call__(self, order: Order) -> Report:
        from .engines.measured import files_of

        for key, text in order.files.items():
            cache.take_in(key, text, at_least_as_many=True)

        self._runner.errors.clear()
        started = time.monotonic()
        deadline = None if order.seconds is None else started + order.seconds
        limits = Limits(order.requests, deadline)
        if order.again:
            self._runner.repeat_disturbed(order.specs, limits)
        else:
            self._runner.run(order.specs, limits)

        seconds = time.monotonic() - started
        files: dict[str, str] = {}
        for spec in order.specs:
            files |= files_of(spec)
        return Report(
            files=files,
            errors={spec: str(why) for spec, why in self._runner.errors.items()},
            seconds=seconds,
            environment=machine.environment(),
            draft_sizes=kept_draft_sizes.texts(),
        )


@dataclass(frozen=True)
class Answer:
    """What a node answered.

    ``report``: None where there is none; then ``why`` says so, and ``is_lost`` whether
    the node is gone.
    """

    node: str
    report: Report | None
    why: str = ""
    is_lost: bool = False


class Nodes:
    """The nodes of the running cluster, which measure cells; a context manager.

    Raises SpeclibError where there is no cluster, or where a node cannot be used.
    """

    def __init__(self) -> None:
        self._ordered: dict[str, tuple[Spec, ...]] = {}  # what each is doing

    def __enter__(self) -> Nodes:
        try:
            from speclib.worlds.cluster.helpers import Helpers
        except ModuleNotFoundError as error:
            if error.name != "ray":
                raise
            raise SpeclibError(
                "WORLD=cluster needs Ray: `make cluster` installs it"
            ) from error
        self._helpers: Any = Helpers(CellsOfNode)
        return self

    def __exit__(self, *_: object) -> None:
        self._helpers.close()

    @property
    def names(self) -> list[str]:
        """Names of the nodes that are not lost."""
        return list(self._helpers.alive)

    @property
    def idle(self) -> list[str]:
        """Names of the nodes that do nothing now."""
        return list(self._helpers.idle)

    @property
    def left_out(self) -> dict[str, str]:
        """Why, by its name, a node is not used."""
        return dict(self._helpers.left_out)

    def order_cells(
        self,
        node: str,
        specs: Iterable[Spec],
        requests: int | None,
        deadline: float | None,
        again: bool = False,
    ) -> None:
        """Orders measured cells of one pair from an idle node.

        ``deadline`` is on the clock of ``time.monotonic``.
        """
        from .engines.measured_cell import key_of

        specs = tuple(specs)
        files = {}
        for spec in specs:
            for environment in environments.known_environments():
                key = key_of(spec, environment)
                text = cache.text_of(key)
                if text:
                    files[key] = text
        seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
        self._ordered[node] = specs
        self._helpers.ask(node, Order(specs, requests, seconds, again, files))

    def wait_for_answer(self) -> Answer:
        """Waits until some node answers, and stores the cells' files."""
        from speclib.worlds.devices import DeviceLost

        node, answer = self._helpers.first()
        specs = self._ordered.pop(node)
        if isinstance(answer, DeviceLost):
            return Answer(node, None, str(answer), is_lost=True)
        if not isinstance(answer, Report):
            return Answer(node, None, answer.cause)
        kept_draft_sizes.take_in(answer.draft_sizes)
        if not is_of(answer, specs):
            return Answer(
                node,
                None,
                f"node {node!r} measured other cells than it was asked for: it has "
                "other pairs, prompts or code, or `ray start` was typed with another "
                "SPECLIB_PROMPTS. Have the same checkout on every node",
            )
        environments.remember(answer.environment)
        for key, text in answer.files.items():
            cache.take_in(key, text, at_least_as_many=True)
        return Answer(node, answer)


def is_of(report: Report, specs: Iterable[Spec]) -> bool:
    """Whether the files of a report are those of these cells, and of their replays."""
    from .engines.measured_cell import key_of

    expected = {key_of(spec, report.environment) for spec in specs}
    return not report.files or bool(expected & report.files.keys())
