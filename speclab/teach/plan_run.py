"""A plan behind a button: which method is fastest on the reader's own machine."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from speclab.planning.plan import Plan, plan
from speclib.arguments import Count, checked
from speclib.data import prompts as prompt_files
from speclib.data.pairs import load_pair

from .behind_button import BehindButton

NOT_RUN_YET = (
    "Not run yet. The button measures every method that this pair can run, in turns "
    "with plain decoding. On two cores of a CPU it takes a few minutes."
)


class PlanRun(BehindButton):
    """A plan for a pair, made when somebody clicks; ``plan``: what came of it."""

    def __init__(self, pair: str, **settings: Any):
        self.pair = pair
        self.settings = settings
        self.plan: Plan | None = None
        super().__init__(NOT_RUN_YET)

    def work(self) -> str:
        self.plan = plan(self.pair, say=self.say, **self.settings)
        table = widgets.HTML(self.plan._repr_html_())
        self.children = [self.button, self.words, table]
        return self.plan.summary()

    def text(self) -> str:
        return super().text() if self.plan is None else str(self.plan)


@checked
def plan_run(
    pair: str,
    *,
    task: str = "humaneval",
    prompts: Count = 2,
    max_new_tokens: Count = 48,
) -> PlanRun:
    """A button that makes a plan for ``pair`` (see ``speclab.plan``).

    Raises SpeclibError at once for a pair or a task that is not there.
    """
    load_pair(pair)
    prompt_files.load(task, prompts)
    return PlanRun(pair, task=task, prompts=prompts, max_new_tokens=max_new_tokens)
