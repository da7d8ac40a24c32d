"""The reward for a correct method: its timeline, and a button for real models.

The timeline shows the student's method on the virtual clock, below another method for
comparison. The button runs both with real models. During a run the student's method is
registered under a name. This module uses no exercise, and does not judge the method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from html import escape
from typing import Any, TypeAlias

import ipywidgets as widgets

from speclab.check.calls import Failed, call_guarded, time_limit
from speclib.data import prompts
from speclib.decoding.decode import Result
from speclib.decoding.simulate import simulate
from speclib.drawing.display import NotebookView
from speclib.drawing.timeline.widget import Timeline
from speclib.methods import METHODS, about
from speclib.worlds.world import World

from .card import Card, wrong_card
from .real_run import RealRun

Method: TypeAlias = Callable[[World, int], None]

PAIR = "embedded/llama-7b-70b"  # the two trained models of the lessons' real runs
MOST_TOKENS = 40  # in a real run
# Settings for both runs on the virtual clock, as in lesson 20. The seed is neither
# lucky nor unlucky: PEARL is 1.20 times as fast as speculative decoding here, and 1.24
# times for a text of 3000 tokens.
WHAT_IF: dict[str, Any] = {"c": 5.0, "alpha": 0.8, "tokens": 24, "seed": 0}
STYLE = "font-size: 15px; line-height: 1.4; max-width: 60em"


@dataclass(frozen=True)
class Stage:
    """How a student's method is shown.

    name      its name in the timeline, for example "your PEARL"
    above     the registered method to show above it
    settings  the student's method's settings on the virtual clock
    devices   settings of the real run; see ``open_world``
    """

    name: str
    above: str = "speculative"
    settings: Mapping[str, Any] = field(default_factory=lambda: {"gamma": 5})
    devices: Mapping[str, Any] = field(default_factory=lambda: {"world": "processes"})


STAGES = {
    "speculative": Stage("your speculative decoding", above="autoregressive"),
    "pearl": Stage("your PEARL"),
    "duodecoding": Stage("your DuoDecoding"),
    "dsi": Stage(
        "your DSI",
        settings={"lookahead": 2, "servers": 3},
        devices={"world": "emulated", "servers": 3, "cancel": "immediate"},
    ),
}


def question() -> Any:
    """The prompt for the real models, as in the lessons."""
    return prompts.load("gsm8k")[1].input


@contextmanager
def registered(method: Method, stage: Stage) -> Iterator[None]:
    """Registers the method under the stage's name inside the with block."""
    before = METHODS.get(stage.name)
    METHODS[stage.name] = _with_settings_of(method, stage)
    try:
        yield
    finally:
        METHODS.pop(stage.name, None)  # a real run that ended meanwhile removed it
        if before is not None:
            METHODS[stage.name] = before


def _with_settings_of(method: Method, stage: Stage) -> Callable[..., None]:
    """The method, with arguments that are named after the stage's settings."""

    def of_gamma(world: World, gamma: int) -> None:
        method(world, gamma)

    def of_lookahead(world: World, lookahead: int, servers: int | None = None) -> None:
        method(world, lookahead)  # uses all targets

    return of_lookahead if "lookahead" in stage.settings else of_gamma


def virtual_runs(method: Method, stage: Stage) -> tuple[Result, Result]:
    """Both runs on the virtual clock; the student's is the second.

    Raises Failed if the method fails.
    """
    above = simulate(stage.above, **_settings_above(stage), **WHAT_IF)

    @wraps(method)  # so that an error names the student's line
    def run() -> Result:
        return simulate(stage.name, **stage.settings, **WHAT_IF)

    with registered(method, stage), time_limit():
        own = call_guarded(run)
    if own.tokens != above.tokens:
        raise Failed(f"Your method wrote “{own.text}” instead of “{above.text}”.")
    return above, own


def _settings_above(stage: Stage) -> dict[str, Any]:
    return {} if stage.above == "autoregressive" else {"gamma": 5}


class OwnRealRun(RealRun):
    """A student's method with real models, which run only after a click."""

    not_run_yet = (
        "Not run yet. The button starts two trained models in separate processes, "
        "which write the answer to a question. On two CPU cores this takes half a "
        "minute."
    )
    clicks_itself = False

    def __init__(self, method: Method, stage: Stage):
        self.method, self.stage = method, stage
        names = (stage.above, stage.name)
        super().__init__(question(), PAIR, names, MOST_TOKENS, **stage.devices)

    def work(self) -> str:
        with registered(self.method, self.stage):
            return super().work()


class OwnRun(NotebookView, widgets.VBox):  # type: ignore[misc]  # untyped
    """A student's method below another on a timeline, and a button for real models.

    ``runs``: both runs on the virtual clock.
    """

    def __init__(self, method: Method, stage: Stage, runs: tuple[Result, Result]):
        self.stage = stage
        self.runs = runs
        self.timeline = Timeline(*runs)
        self.real = OwnRealRun(method, stage)
        words = f'<div style="{STYLE}">{escape(self._words())}</div>'
        super().__init__([widgets.HTML(words), self.timeline, self.real])

    def _words(self) -> str:
        """A description of the timeline in a few sentences."""
        above, own = (f"{run.trace.makespan:.1f} s" for run in self.runs)
        words = len(self.runs[0].tokens)
        return (
            f"On the virtual clock {about(self.stage.above).name} takes {above} for "
            f"these {words} words, and {self.stage.name} takes {own}. Play both. Below "
            "you can run them with two real models."
        )

    # -- without widgets ----------------------------------------------------
    @property
    def size(self) -> tuple[int, int]:
        return self.timeline.size

    def picture(self) -> str:
        return self.timeline.picture()

    def text(self) -> str:
        return f"{self._words()}\n{self.timeline.text()}"


def reward_of(method: Method, stage: Stage) -> OwnRun | Card:
    """The student's run, or a card if it fails with the stage's settings."""
    try:
        runs = virtual_runs(method, stage)
    except Failed as failed:
        where = f"{stage.name} on the timeline, with {_shown(stage)}"
        return wrong_card(f"We could not show {where}. {failed}")
    return OwnRun(method, stage, runs)


def _shown(stage: Stage) -> str:
    return ", ".join(f"{name} = {value}" for name, value in stage.settings.items())
