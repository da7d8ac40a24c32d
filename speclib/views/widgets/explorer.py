"""Sliders, a timeline that follows them while they move, and the figures beside theory.

``simulate`` runs on the virtual clock, so a redraw takes milliseconds; the timeline's traits are
updated in place, and nothing flickers. Knows no clock: what is simulated is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from math import isfinite, nan

import ipywidgets as widgets

from speclib.errors import SpeclibError
from speclib.theory.closed_forms import (
    dsi_speed,
    duodecoding_speed,
    pearl_speed,
    sd_speed,
)
from speclib.trace.events import Trace
from speclib.views.numbers import percent
from speclib.views.timeline.facts import Run, speedup, untested, waits
from speclib.views.timeline.widget import Timeline

from .controls import box, control, stored
from .shown import Shown

CONTROLS = {
    "method": ("pearl", "speculative"),
    "gamma": (1, 12, 1, 3),
    "c": (1.0, 12.0, 0.5, 3.0),
    "alpha": (0.0, 1.0, 0.01, 0.8),
}
COLUMNS = (
    "",
    "speed-up here",
    "expected of a long text",
    "over SD",
    "accepted",
    "never tested",
    "device time per token",
    "waiting",
)


def expected_speedup(
    method: str,
    gamma=None,
    c=None,
    alpha=None,
    without=None,
    lookahead=None,
    servers=None,
    k=None,
    doubt=0.0,
    **_,
) -> float:
    """Speed over plain decoding of an endless text, alpha independent at every position.

    Not-a-number for a method without a closed form in ``theory`` (DuoDecoding with its dynamic k),
    or without its arguments.
    """
    if method == "autoregressive":
        return 1.0
    if method == "dsi" and None not in (lookahead, c, alpha):
        return float(dsi_speed(alpha, lookahead, 1 / c, 1.0, servers))
    if method == "duodecoding" and None not in (gamma, c, alpha, k):
        return duodecoding_speed(alpha, gamma, 1 / c, 1.0, k, doubt)
    if None in (gamma, c, alpha) or method not in ("speculative", "pearl"):
        return float("nan")
    return (
        sd_speed(alpha, gamma, 1 / c, 1.0)
        if method == "speculative"
        else pearl_speed(alpha, gamma, 1 / c, 1.0, without)
    )


def times(ratio: float) -> str:
    return f"{ratio:.2f}×" if isfinite(ratio) else "–"


def headline(runs: list[Run], theory: Callable, values: dict) -> list[tuple[str, ...]]:
    """A row of figures per run, as ``COLUMNS`` names them; device time is a multiple of plain's."""
    rows, plain = [], next((r.stats for r in runs if r.stats.drafted == 0), None)
    for run in runs:
        method = run.trace.meta.get("method", "")
        ratio, s = speedup(run, runs), run.stats
        known = theory(**{**values, "method": method})
        price = (
            s.device_seconds_per_token / plain.device_seconds_per_token
            if plain
            else nan
        )
        rows.append(
            (
                f"{run.label} {run.note}".strip(),
                times(ratio),
                times(known),
                times(speedup(run, runs, "speculative")),
                percent(s.acceptance_rate),
                percent(untested(run)),
                times(price),
                waits(run),
            )
        )
    return rows


def table(rows: list[tuple[str, ...]]) -> str:
    """HTML of the figures; nothing in it jumps while a slider moves."""

    def line(name: str, cells: tuple[str, ...]) -> str:
        style = "padding: 1px 18px 1px 0; text-align: left; min-width: 60px"
        style += (
            "; white-space: nowrap"
            if name == "td"
            # a heading has up to 3 lines
            else "; line-height: 1.25; height: 3.75em; vertical-align: bottom"
        )
        return (
            "<tr>"
            + "".join(
                f'<{name} style="{style}">{escape(cell)}</{name}>' for cell in cells
            )
            + "</tr>"
        )

    body = line("th", COLUMNS) + "".join(line("td", row) for row in rows)
    return f'<table style="font-size: 15px; font-variant-numeric: tabular-nums">{body}</table>'


class Explorer(Shown, widgets.VBox):
    """``simulate(**values)`` returns a list of results or traces, or a single one; then it is also
    asked for plain decoding (method="autoregressive"), the baseline. ``controls`` maps the names of
    its arguments to what ``control`` takes; ``theory(**values)`` gives the expected speed-up of
    ``values["method"]``. Further options go to the timeline.

    ``simulate`` may also be results that are there already, lists of them by the value of what
    they differ in; then ``controls`` is {its name: the value shown first}."""

    def __init__(
        self, simulate, controls: dict | None = None, theory=expected_speedup, **options
    ):
        if isinstance(simulate, Mapping):
            simulate, controls = stored(simulate, controls)
        self.simulate, self.theory = simulate, theory
        self.controls = {
            k: control(k, spec) for k, spec in (controls or CONTROLS).items()
        }
        self.timeline = Timeline(*self.simulated(), **options)
        self.figures = widgets.HTML(table(self.rows()))
        for slider in self.controls.values():
            slider.observe(self._moved, "value")
        super().__init__([box(self.controls), self.figures, self.timeline])

    @property
    def values(self) -> dict:
        return {name: slider.value for name, slider in self.controls.items()}

    def simulated(self) -> list:
        made = self.simulate(**self.values)
        if hasattr(made, "trace") or isinstance(made, Trace):
            plain = self.simulate(**{**self.values, "method": "autoregressive"})
            return [plain, made]
        return list(made)

    def rows(self) -> list[tuple[str, ...]]:
        return headline(self.timeline.runs, self.theory, self.values)

    def _moved(self, _) -> None:
        try:
            self.timeline.update(*self.simulated())
            self.figures.value = table(self.rows())
        except SpeclibError as error:  # a callback's traceback is not shown
            self.figures.value = f"<b>{escape(str(error))}</b>"

    def text(self) -> str:
        """The state in words: settings, figures, the timeline's summary."""
        settings = ", ".join(f"{name} = {value}" for name, value in self.values.items())
        lines = [
            f"{name}: speed-up {ratio} (expected {known}), {over} SD, accepted {share}, "
            f"never tested {untested}, device time {price}, waiting {idle}"
            for name, ratio, known, over, share, untested, price, idle in self.rows()
        ]
        return "\n".join([f"explorer at {settings}", *lines, self.timeline.text()])

    @property
    def still(self) -> Timeline:
        return self.timeline


def explorer(
    simulate, controls: dict | None = None, theory=expected_speedup, **options
) -> Explorer:
    """Sliders that re-simulate while they move, above a timeline; see ``Explorer``.

    The still in its place, where no widget can run, shows the state when the cell ran.
    """
    return Explorer(simulate, controls, theory, **options)
