"""Real models behind a button: methods on one prompt, and their timeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

import ipywidgets as widgets
import pandas as pd

from speclab.planning.plan import plan
from speclib.arguments import Count, checked
from speclib.data import prompts as prompt_files
from speclib.data.latency import load_latency
from speclib.data.pairs import load_pair
from speclib.decoding.decode import Result, decode
from speclib.decoding.open_world import WORLDS, open_world
from speclib.drawing.timeline.widget import Timeline
from speclib.errors import naming_extras, unknown_name
from speclib.methods import about, find
from speclib.worlds.world import World

from .behind_button import BehindButton

DEFAULT_METHODS = ("autoregressive", "speculative", "pearl")
TOKENS_TO_WARM_UP = 4
COLUMNS = (  # of the table; before a run it has these and no row
    "pair",
    "method",
    "tokens per second",
    "target passes",
    "ms of a pass",
    "over the first run's",
    "ms of messages",
)
NOT_RUN_YET = (
    "Not run yet. The button starts real models in processes of their own. On two "
    "cores of a CPU it takes about a minute. The sliders above go on moving, but what "
    "they compute slows the models down."
)
STORED = (
    "These runs are stored: another machine made them. The button decodes your own "
    "prompt here. When all methods have written, run the cells below once more."
)


class RealRun(BehindButton):
    """Methods run with real models, and the timeline of what they did.

    ``methods``: by pair. ``runs``: what is there so far, a pair and a result each.
    ``stored``: by method, what is there before a click.
    """

    not_run_yet = NOT_RUN_YET

    def __init__(
        self,
        prompt: Any,
        methods: Mapping[str, Sequence[str]],
        max_new_tokens: int,
        stored: Mapping[str, Result] | None = None,
        **world_settings: Any,
    ):
        self.prompt = prompt
        self.methods = methods
        self.world_settings = world_settings
        self.max_new_tokens = max_new_tokens
        self.runs: list[tuple[str, Result]] = []
        self.timeline: Timeline | None = None
        if stored is None:
            super().__init__(self.not_run_yet)
            return
        self.clicks_itself = False  # what is stored is there already
        super().__init__(STORED)
        for pair, names in methods.items():
            self.runs += [(pair, stored[name]) for name in names]
        self._show()

    def work(self) -> str:
        """One method after the other; those of a pair in the same processes."""
        runs: list[tuple[str, Result]] = []
        for pair, methods in self.methods.items():
            self.say(f"Starting the processes of {pair}.")
            with opened(pair, **self.world_settings) as world:
                self._decode(world, methods[0], TOKENS_TO_WARM_UP)
                for method in methods:
                    if self.is_stopped:
                        return self._outcome(runs)
                    self.say(f"{about(method).name} is writing.")
                    run = self._decode(world, method, self.max_new_tokens)
                    runs.append((pair, run))
                    self.runs = runs
                    self._show()
        return self._outcome(runs)

    def _decode(self, world: World, method: str, tokens: int) -> Result:
        return decode(self.prompt, world=world, method=method, max_new_tokens=tokens)

    def _show(self) -> None:
        runs = [run for _pair, run in self.runs]
        labels = None
        if len(self.methods) > 1:
            labels = [f"{self._name(run)}, {pair}" for pair, run in self.runs]
        if self.timeline is None:
            self.timeline = Timeline(*runs, labels=labels)
            self.children = [self.button, self.words, self.timeline]
        else:
            self.timeline.update(*runs, labels=labels)

    def _outcome(self, runs: list[tuple[str, Result]]) -> str:
        """Whether the methods wrote the same, and what."""
        if not runs:
            return "Stopped before the first method."
        texts = {run.tokens: run.text for _pair, run in runs}
        if len(texts) > 1:
            return f"These methods wrote {len(texts)} different texts: that is a bug."
        (text,) = texts.values()
        asked = sum(map(len, self.methods.values()))
        if len(runs) < asked:
            return f"Stopped: {len(runs)} of {asked} methods wrote “{text.strip()}”"
        return f"All methods wrote the same: “{text.strip()}”"

    def table(self) -> pd.DataFrame:
        """What each run took; a row per run, with its pair if there are several.

        ``ms of a pass`` is the median target pass, without the first one, which reads
        the prompt. ``over the first run's`` says how many times as long that is as in
        the run that was made first. ``ms of messages``: of a question and its answer.
        """
        rows = []
        of_first_run = None
        for pair, run in self.runs:
            operations = run.trace.operations
            passes = [event.dur for event in operations if event.is_scoring]
            typical = median(passes[1:] or passes)
            of_first_run = of_first_run or typical
            messages = median(event.message_seconds for event in operations)
            row = (
                pair,
                self._name(run),
                run.stats.decode_speed,
                len(passes),
                1000 * typical,
                typical / of_first_run,
                1000 * messages,
            )
            rows.append(row)
        table = pd.DataFrame(rows, columns=COLUMNS).round(2)
        if len(self.methods) == 1:
            return table.drop(columns="pair", errors="ignore")
        return table

    @staticmethod
    def _name(run: Result) -> str:
        return about(run.trace.meta["method"]).name

    # -- where there are no widgets ----------------------------------------------------
    @property
    def size(self) -> tuple[int, int]:
        return super().size if self.timeline is None else self.timeline.size

    def picture(self) -> str:
        return super().picture() if self.timeline is None else self.timeline.picture()

    def text(self) -> str:
        parts = [super().text()]
        if self.timeline is not None:
            parts.append(self.timeline.text())
        return "\n".join(parts)


@contextmanager
def opened(
    pair: str,
    *,
    world: str,
    servers: int = 1,
    cancel: str | None = None,
    latency: str | None = None,
) -> Iterator[World]:
    """A world of the pair; the nodes of a cluster are started on this machine."""
    described = load_pair(pair)
    if world != "cluster":
        with open_world(
            world, described, servers=servers, cancel=cancel, latency=latency
        ) as own_world:
            yield own_world
        return

    with naming_extras("world='cluster'"):
        from speclab.laptop_cluster import laptop_nodes
        from speclib.worlds.cluster.cluster_world import Cluster

    names = [f"node-{number}" for number in range(1, servers + 2)]
    with (
        laptop_nodes(names) as nodes,
        Cluster(
            described,
            address=nodes.address,
            emulate=load_latency(latency) if latency else None,
            cancel=cancel or "immediate",
            servers=servers,
        ) as cluster,
    ):
        yield cluster


@checked
def real_run(
    prompt: Any,
    pair: Any,
    *,
    methods: Sequence[str] = DEFAULT_METHODS,
    max_new_tokens: Count = 56,
    world: str = "processes",
    servers: Count = 1,
    cancel: str | None = None,
    latency: str | None = None,
    stored: Mapping[str, Result] | None = None,
) -> RealRun:
    """A button that decodes ``prompt`` with each of ``methods`` on real models.

    ``pair``: a name under data/pairs, or methods by the name of a pair, which run one
    pair after the other. ``world``, ``servers``, ``cancel`` and ``latency``: as
    ``open_world`` takes them; the nodes of "cluster" are started on this machine, one
    for each device. ``stored``: runs by method that are shown before a click, see
    ``stored_runs``. Raises SpeclibError at once for a pair, a method, a latency file or
    a world that does not exist.
    """
    methods_by_pair = {pair: methods} if isinstance(pair, str) else pair
    if world not in WORLDS:
        raise unknown_name(f"no world {world!r}", world, WORLDS)
    if latency is not None:
        load_latency(latency)
    for name, own_methods in methods_by_pair.items():
        load_pair(name)
        for method in own_methods:
            find(method)
    return RealRun(
        prompt,
        methods_by_pair,
        max_new_tokens,
        stored,
        world=world,
        servers=servers,
        cancel=cancel,
        latency=latency,
    )


class PlanRun(BehindButton):
    """A table of the methods that a pair can run, measured when somebody clicks."""

    def __init__(self, pair: str, **settings: Any):
        self.pair = pair
        self.settings = settings
        self.table: pd.DataFrame | None = None
        super().__init__(
            "Not run yet. The button measures every method that this pair can run, in "
            "turns with plain decoding. On two cores of a CPU it takes a few minutes."
        )

    def work(self) -> str:
        self.table = plan(self.pair, say=self.say, **self.settings)
        shown = widgets.HTML(self.table.to_html(na_rep=""))
        self.children = [self.button, self.words, shown]
        return f"The fastest here: {self.table.index[0]}."

    def text(self) -> str:
        return super().text() if self.table is None else self.table.to_string(na_rep="")


@checked
def plan_run(
    pair: str,
    *,
    task: str = "humaneval",
    prompts: Count = 2,
    max_new_tokens: Count = 48,
) -> PlanRun:
    """A button that compares all methods on ``pair`` (see ``speclab.plan``).

    Raises SpeclibError at once for a pair or a task that does not exist.
    """
    load_pair(pair)
    prompt_files.load(task, prompts)
    return PlanRun(pair, task=task, prompts=prompts, max_new_tokens=max_new_tokens)
