"""Sliders, a timeline that follows them while they move, and a table of figures.

From top to bottom: the first two sliders, the timeline, and each run's figures, next to
the expected figures and the range over many draws. Further sliders fold out, and all
sliders stay visible while the picture scrolls. On the virtual clock a simulation takes
milliseconds, so every step of a slider simulates the runs again. Only the contents of
the timeline's widget change, so nothing flickers. Buttons in a lesson's text, such as
``<button disabled value="alpha=1">``, can also set the sliders. This module uses no
clock: the caller decides what to simulate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from html import escape
from inspect import Parameter, signature
from math import isfinite, log, nan
from typing import Any, TypeAlias

import ipywidgets as widgets

from speclab.theory.closed_forms import (
    dsi_speed,
    duodecoding_speed,
    pearl_speed,
    sd_speed,
    ssd_speed,
)
from speclib.arguments import checked
from speclib.drawing.display import NotebookView
from speclib.drawing.timeline.run import timeline_run
from speclib.drawing.timeline.sayings import speedup_as_drawn
from speclib.drawing.timeline.widget import Timeline
from speclib.errors import BadValue, SpeclibError, unknown_name
from speclib.methods import settings_of_methods
from speclib.trace.events import Trace

from .controls import (
    BUTTON_LAYOUT,
    ControlSpec,
    choose_option,
    control,
    settings_in_words,
    toolbar,
)
from .draws import SpeedRange, draw_many, most_typical, takes_seed
from .figures import (
    COLUMNS,
    RunFigures,
    check_columns,
    figures_html,
    figures_in_words,
    figures_of,
)
from .outside_controls import OutsideControls

TARGET_SECONDS = 0.1  # how long a target pass takes, unless a control sets it
IDLE_SECONDS = 0.4  # how long the sliders must rest before many draws begin
# Acceptance rates at which a typical draw should be near the expected speed-up.
ACCEPTANCES = (0.3, 0.5, 0.7, 0.8, 0.9)

# Takes the controls' values by name; returns a result, a trace, or a list of them.
Simulate: TypeAlias = Callable[..., Any]

DEFAULT_CONTROLS: dict[str, ControlSpec] = {
    "method": ("pearl", "speculative"),
    "gamma": (1, 12, 1, 3),
    "c": (1.0, 12.0, 0.5, 3.0),
    "alpha": (0.0, 1.0, 0.01, 0.8),
}


def expected_speedup(
    method: str,
    gamma: int | None = None,
    c: float | None = None,
    alpha: float | None = None,
    without: str | None = None,
    lookahead: int | None = None,
    servers: int | None = None,
    k: int | None = None,
    doubt: float = 0.0,
    fan: int | None = None,
    network: float = 0.0,
    target: float = TARGET_SECONDS,
    **_: object,
) -> float:
    """The speed-up over plain decoding that theory expects for an endless text.

    Each draft token is accepted with probability ``alpha``, independently of the
    others, and a target pass takes ``c`` times as long as a draft pass. A message to or
    from the target takes ``network`` seconds, so a target pass takes ``target``
    seconds plus two messages.

    Returns not-a-number if ``theory`` has no closed form for the method (for example
    DuoDecoding with its dynamic k), or if a required argument is missing.
    """
    if method == "autoregressive":
        return 1.0
    if c is None or alpha is None:
        return nan
    c = c * (target + 2 * network) / target
    if method == "dsi" and lookahead is not None:
        return float(dsi_speed(alpha, lookahead, 1 / c, 1.0, servers))
    if gamma is None:
        return nan
    if method == "speculative":
        speed: float = sd_speed(alpha, gamma, 1 / c, 1.0)
        return speed
    if method == "pearl":
        return pearl_speed(alpha, gamma, 1 / c, 1.0, without)
    if method == "duodecoding" and k is not None:
        return duodecoding_speed(alpha, gamma, 1 / c, 1.0, k, doubt)
    if method == "ssd" and fan is not None:
        return ssd_speed(alpha, gamma, 1 / c, 1.0, fan, doubt)
    return nan


class Explorer(NotebookView, widgets.VBox):  # type: ignore[misc]  # untyped
    """Controls above a timeline and a table of figures that follow them.

    If no widget can run, a static picture of the state after the notebook's cell ran
    replaces it.

    ``simulate(**values)`` returns a list of results or traces, or a single one. For a
    single one, ``simulate`` is also called for plain decoding, the baseline, with
    method="autoregressive" and without the optional drafting settings, such as gamma.

    ``controls`` maps the names of its arguments to specifications for ``control``.
    ``theory(**values)`` returns the expected speed-up of ``values["method"]``; the
    values include the arguments fixed by a ``functools.partial``. ``columns``: the
    figures to show, as named in ``RunFigures``. ``typical``: start with the draw, out
    of twenty, whose speed-ups are nearest to the expected ones. Further options are
    passed to the timeline.
    """

    @checked
    def __init__(
        self,
        simulate: Simulate,
        controls: dict[str, Any] | None = None,
        theory: Callable[..., float] = expected_speedup,
        columns: Sequence[str] = COLUMNS,
        typical: bool = False,
        **options: Any,
    ):
        check_columns(columns)
        self.simulate = simulate
        self.theory = theory
        self.columns = columns

        self.controls: dict[str, widgets.Widget] = {}
        for name, spec in (controls or DEFAULT_CONTROLS).items():
            self.controls[name] = control(name, spec)
        self.can_redraw = takes_seed(simulate) and "seed" not in self.controls
        self.seed = 0
        if typical and self.can_redraw:
            self.seed = most_typical(self._distance_from_expected)
        self.draw_button = widgets.Button(
            description="Redraw",
            tooltip="Draw again which tokens the draft model gets right (key: R)",
            icon="random",
            layout=BUTTON_LAYOUT,
        )
        self.draw_button.on_click(self._redraw)
        self.ranges: list[SpeedRange] = []
        self._drawing: asyncio.Task[None] | None = None

        self.timeline = Timeline(*self.simulated(), **options)
        self.outside = OutsideControls(settable=list(self.controls))
        self.outside.observe(self._set_as_asked, "asked_values")
        self.figures = widgets.HTML(layout={"width": "100%", "overflow": "auto"})
        self.figures.add_class("speclib-figures")
        self._show_figures()
        if self.can_redraw:
            self.outside.observe(self._redraw_by_key, "asked_redraws")
        for slider in self.controls.values():
            slider.observe(self._simulate_again, "value")
        buttons = [self.draw_button] if self.can_redraw else []
        bar = toolbar(self.controls, buttons)
        super().__init__([bar, self.timeline, self.figures, self.outside])
        self._start_drawing()

    @property
    def values(self) -> dict[str, Any]:
        """The controls' current values, by name."""
        return {name: slider.value for name, slider in self.controls.items()}

    def simulated(self) -> list[object]:
        """The results for the current values, plain decoding first if we added it."""
        return self._simulated_with(self.seed)

    def _simulated_with(self, seed: int, **others: Any) -> list[object]:
        """The results for the current values, drawn with ``seed`` if draws can vary.

        ``others`` replaces current values.
        """
        values = {**self.values, **others}
        if self.can_redraw:
            values["seed"] = seed
        results = self.simulate(**values)
        if is_single_run(results):
            return [self._simulated_plainly(values), results]
        if not isinstance(results, Iterable):
            raise BadValue(
                f"simulate returned {results!r}: let it return a result, a trace, or "
                "a list of them"
            )
        return list(results)

    def _simulated_plainly(self, all_values: dict[str, Any]) -> Any:
        """The result of plain decoding with the same values."""
        parameters = signature(self.simulate).parameters
        values = {}
        drafting_settings = settings_of_methods()
        for name, value in all_values.items():
            is_demanded = (
                name in parameters and parameters[name].default is Parameter.empty
            )
            if name not in drafting_settings or is_demanded:
                values[name] = value
        return self.simulate(**{**values, "method": "autoregressive"})

    def rows(self) -> list[RunFigures]:
        """The figures of each run in the timeline."""
        return figures_of(
            self.timeline.runs, self.theory, self._values_for_theory(), self.ranges
        )

    def _values_for_theory(self) -> dict[str, Any]:
        """The controls' values, and the fixed arguments of ``simulate``."""
        fixed = self.simulate.keywords if isinstance(self.simulate, partial) else {}
        return {**fixed, **self.values}

    def _show_figures(self) -> None:
        self.figures.value = figures_html(self.rows(), self.columns)

    def set_values(self, **values: Any) -> None:
        """Sets controls; a value may be text, as in a button in a lesson's text.

        Raises SpeclibError for an unknown control or option.
        """
        for name, value in values.items():
            if name not in self.controls:
                raise unknown_name(f"no control {name!r}", name, self.controls)
            chosen = self.controls[name]
            if hasattr(chosen, "options"):
                choose_option(name, chosen, value)
            else:
                chosen.value = type(chosen.value)(float(value))

    def _set_as_asked(self, _change: object) -> None:
        """Sets the values of the button that a reader clicked in the lesson's text."""
        with suppress(SpeclibError, ValueError):
            self.set_values(**self.outside.asked_values["values"])

    def _simulate_again(self, _change: object) -> None:
        """Simulates again, and discards the draws, which belong to other values."""
        self.ranges = []
        self._show_simulated()
        self._start_drawing()

    def _show_simulated(self) -> None:
        """Shows the runs for the current values and the current draw."""
        try:
            self.timeline.update(*self.simulated())
            self._show_figures()
        except SpeclibError as error:
            # The traceback of a widget's callback would be lost.
            self.figures.value = f"<b>{escape(str(error))}</b>"

    # -- many draws --------------------------------------------------------------------
    def _redraw(self, _button: object) -> None:
        """Shows the next draw; the range over many draws stays the same."""
        self.seed += 1
        self._show_simulated()

    def _redraw_by_key(self, change: dict[str, int]) -> None:
        """Moves on by one draw for each press of the key since the last call."""
        self.seed += change["new"] - change["old"]
        self._show_simulated()

    def _distance_from_expected(self, seed: int) -> float:
        """The distance between one draw's speed-ups and the expected ones.

        It is a sum of absolute logarithms over all runs and, if there is a control for
        the acceptance rate, over ``ACCEPTANCES``.
        """
        moved = [{"alpha": share} for share in ACCEPTANCES]
        distance = 0.0
        for others in moved if "alpha" in self.controls else [{}]:
            values = {**self._values_for_theory(), **others}
            results = self._simulated_with(seed, **others)
            runs = [timeline_run(result) for result in results]
            for run in runs:
                method = run.trace.meta.get("method", "")
                expected = self.theory(**{**values, "method": method})
                ratio = speedup_as_drawn(run, runs) / expected
                if isfinite(ratio) and ratio > 0:
                    distance += abs(log(ratio))
        return distance

    def _start_drawing(self) -> None:
        """Starts many draws once no slider moves and the event loop is idle.

        Does nothing without an event loop, which a notebook has.
        """
        if self._drawing is not None:
            self._drawing.cancel()
        if not self.can_redraw:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._drawing = loop.create_task(self._draw_when_idle())

    async def _draw_when_idle(self) -> None:
        await asyncio.sleep(IDLE_SECONDS)
        with suppress(SpeclibError):  # for invalid values; it is already shown
            for ranges in draw_many(self._speedups_of_draw):
                self.ranges = ranges
                await asyncio.sleep(0)
            self._show_figures()

    def draw_many(self) -> None:
        """Fills the column of many draws now, without an event loop."""
        for ranges in draw_many(self._speedups_of_draw):
            self.ranges = ranges
        self._show_figures()

    def _speedups_of_draw(self, seed: int) -> list[float]:
        """Each run's speed-up in one draw."""
        runs = [timeline_run(result) for result in self._simulated_with(seed)]
        return [speedup_as_drawn(run, runs) for run in runs]

    def text(self) -> str:
        """The state in words: settings, figures, and the timeline's summary."""
        lines = [f"explorer at {settings_in_words(self.values)}"]
        for row in self.rows():
            lines.append(figures_in_words(row))
        lines.append(self.timeline.text())
        return "\n".join(lines)

    @property
    def size(self) -> tuple[int, int]:
        """The timeline's width and height, in pixels."""
        return self.timeline.size

    def picture(self) -> str:
        """The timeline's SVG, for pages on which no widget can run."""
        return self.timeline.picture()


explorer = Explorer  # its name in lessons


def is_single_run(results: object) -> bool:
    """Whether this is a single result or trace rather than several."""
    return hasattr(results, "trace") or isinstance(results, Trace)
