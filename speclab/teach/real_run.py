"""A button that runs methods on real models, and shows their timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets as widgets
import pandas as pd

from speclib.arguments import Count, checked
from speclib.data import prompts as prompt_files
from speclib.data.latency import load_latency
from speclib.data.pairs import load_pair
from speclib.decoding.decode import Result, decode
from speclib.decoding.open_world import WORLDS, open_world
from speclib.drawing.timeline.widget import Timeline
from speclib.errors import unknown_name
from speclib.methods import about, find
from speclib.worlds.world import World

from .behind_button import BehindButton

DEFAULT_METHODS = ("autoregressive", "speculative", "pearl")
TOKENS_TO_WARM_UP = 4
NOT_RUN_YET = (
    "Not run yet. The button starts real models, each in its own process. On two CPU "
    "cores this takes about a minute. The sliders above keep working, but moving them "
    "slows the models down."
)
STORED = (
    "These runs were recorded on another machine. The button decodes your prompt on "
    "this one. When all methods have finished, run the cells below again."
)


class RealRun(BehindButton):
    """A button that runs methods on real models, and the timeline of their runs.

    ``runs``: the runs so far. ``stored``: method -> the run to show before a click.
    """

    not_run_yet = NOT_RUN_YET

    def __init__(
        self,
        prompt: Any,
        pair: str,
        methods: Sequence[str],
        max_new_tokens: int,
        stored: Mapping[str, Result] | None = None,
        **world_settings: Any,
    ):
        self.prompt = prompt
        self.pair = pair
        self.methods = methods
        self.world_settings = world_settings
        self.max_new_tokens = max_new_tokens
        self.runs: list[Result] = []
        self.timeline: Timeline | None = None
        if stored is None:
            super().__init__(self.not_run_yet)
            return
        self.clicks_itself = False  # there are runs to show already
        super().__init__(STORED)
        self.runs = [stored[name] for name in methods]
        self._show()

    def work(self) -> str:
        """Runs one method after another in the same processes."""
        runs: list[Result] = []
        self.say(f"Starting the processes of {self.pair}.")
        with open_world(pair=load_pair(self.pair), **self.world_settings) as world:
            self._decode(world, self.methods[0], TOKENS_TO_WARM_UP)
            for method in self.methods:
                if self.is_stopped:
                    break
                self.say(f"{about(method).name} is writing.")
                runs.append(self._decode(world, method, self.max_new_tokens))
                self.runs = runs
                self._show()
        return self._outcome(runs)

    def _decode(self, world: World, method: str, tokens: int) -> Result:
        return decode(self.prompt, world=world, method=method, max_new_tokens=tokens)

    def _show(self) -> None:
        if self.timeline is None:
            self.timeline = Timeline(*self.runs)
            self.children = [self.button, self.words, self.timeline]
        else:
            self.timeline.update(*self.runs)

    def _outcome(self, runs: list[Result]) -> str:
        """A sentence with the text, or one that says that the texts differ."""
        if not runs:
            return "Stopped before the first method."
        texts = {run.tokens: run.text for run in runs}
        if len(texts) > 1:
            return f"These methods wrote {len(texts)} different texts: that is a bug."
        (text,) = texts.values()
        asked = len(self.methods)
        if len(runs) < asked:
            return f"Stopped: {len(runs)} of {asked} methods wrote “{text.strip()}”"
        return f"All methods wrote the same text: “{text.strip()}”"

    # -- without widgets ---------------------------------------------------------------
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


@checked
def real_run(
    prompt: Any,
    pair: str,
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

    ``pair``: a name under data/pairs. ``world``, ``servers``, ``cancel`` and
    ``latency``: see ``open_world``. ``stored``: method -> the run to show before a
    click; see ``stored_runs``. Raises SpeclibError at once for an unknown pair, method,
    latency file or world.
    """
    if world not in WORLDS:
        raise unknown_name(f"no world {world!r}", world, WORLDS)
    if latency is not None:
        load_latency(latency)
    load_pair(pair)
    for method in methods:
        find(method)
    return RealRun(
        prompt,
        pair,
        methods,
        max_new_tokens,
        stored,
        world=world,
        servers=servers,
        cancel=cancel,
        latency=latency,
    )


class PlanRun(BehindButton):
    """A table of the methods that a pair can run, measured after a click."""

    def __init__(self, pair: str, **settings: Any):
        self.pair = pair
        self.settings = settings
        self.table: pd.DataFrame | None = None
        super().__init__(
            "Not run yet. The button measures every method that this pair can run, "
            "alternating with plain decoding. It takes a few minutes on two CPU cores."
        )

    def work(self) -> str:
        # Imported here, so that other lessons run in a browser, which has no processes.
        from speclab.planning.plan import plan

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

    Raises SpeclibError at once for an unknown pair or task.
    """
    load_pair(pair)
    prompt_files.load(task, prompts)
    return PlanRun(pair, task=task, prompts=prompts, max_new_tokens=max_new_tokens)
