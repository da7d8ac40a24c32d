"""Real models behind a button: methods on one prompt, and their timeline."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import pandas as pd

from speclib.arguments import Count, checked
from speclib.data.pairs import load_pair
from speclib.decoding.decode import WORLDS, Result, decode, open_world
from speclib.drawing.timeline.widget import Timeline
from speclib.errors import unknown_name
from speclib.methods import METHODS, about

from .behind_button import BehindButton

DEFAULT_METHODS = ("autoregressive", "speculative", "pearl")
NOT_RUN_YET = (
    "Not run yet. The button starts real models in processes of their own. On two "
    "cores of a CPU it takes about a minute. The sliders above go on moving, but what "
    "they compute slows the models down."
)


class RealRun(BehindButton):
    """Methods run with real models, and the timeline of what they did.

    ``runs``: what is there so far, a result per method. ``labels``: what the timeline
    calls them; None: as their methods.
    """

    not_run_yet = NOT_RUN_YET
    everybody = "All methods"  # whose texts are compared

    def __init__(
        self,
        prompt: Any,
        pair: str,
        methods: Sequence[str],
        max_new_tokens: int,
        **world_settings: Any,
    ):
        self.prompt = prompt
        self.pair = pair
        self.methods = methods
        self.world_settings = world_settings
        self.max_new_tokens = max_new_tokens
        self.runs: list[Result] = []
        self.labels: list[str | None] | None = None
        self.timeline: Timeline | None = None
        super().__init__(self.not_run_yet)

    def work(self) -> str:
        """One method after the other, in the same processes."""
        self.runs = []
        self.say("Starting the processes of both models.")
        with open_world(pair=load_pair(self.pair), **self.world_settings) as world:
            for method in self.methods:
                if self.is_stopped:
                    break
                self.say(f"{about(method).name} is writing.")
                run = decode(
                    self.prompt,
                    world=world,
                    method=method,
                    max_new_tokens=self.max_new_tokens,
                )
                self.runs.append(run)
                self._show()
        return self._outcome()

    def _show(self) -> None:
        if self.timeline is None:
            self.timeline = Timeline(*self.runs, labels=self.labels)
            self.children = [self.button, self.words, self.timeline]
        else:
            self.timeline.update(*self.runs, labels=self.labels)

    def _outcome(self) -> str:
        """Whether the methods wrote the same, and what."""
        if not self.runs:
            return "Stopped before the first method."
        texts = {run.tokens for run in self.runs}
        if len(texts) > 1:
            return f"These methods wrote {len(texts)} different texts: that is a bug."
        text = f"“{self.runs[0].text.strip()}”"
        if len(self.runs) < len(self.methods):
            count = f"{len(self.runs)} of {len(self.methods)} methods"
            return f"Stopped: {count} wrote {text}"
        return f"{self.everybody} wrote the same: {text}"

    def pass_times(self) -> pd.DataFrame:
        """How long a target pass took in each run; a row per run.

        ``ms of a pass`` is the median, without the first pass, which reads the prompt.
        ``over the first run's`` says how many times as long that is as in the run that
        was made first.
        """
        columns = ["target passes", "ms of a pass", "over the first run's"]
        rows = {}
        of_first_run = None
        for run in self.runs:
            passes = [e.dur for e in run.trace.operations if e.is_scoring]
            typical = median(passes[1:] or passes)
            of_first_run = of_first_run or typical
            name = about(run.trace.meta["method"]).name
            ratio = typical / of_first_run
            rows[name] = (len(passes), round(1000 * typical, 1), round(ratio, 2))
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns)

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
) -> RealRun:
    """A button that decodes ``prompt`` with each of ``methods`` on real models.

    ``pair``: a name under data/pairs. ``world``, ``servers`` and ``cancel``: as of
    ``open_world``. Raises SpeclibError at once for a pair, a method or a world that is
    not there.
    """
    if world not in WORLDS:
        raise unknown_name(f"no world {world!r}", world, WORLDS)
    for method in methods:
        if method not in METHODS:
            raise unknown_name(f"no method {method!r}", method, METHODS)
    load_pair(pair)
    world_settings = {"world": world, "servers": servers, "cancel": cancel}
    return RealRun(prompt, pair, methods, max_new_tokens, **world_settings)
