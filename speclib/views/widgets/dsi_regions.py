"""Where speculative inference (SI) and DSI gain and where they lose: two maps that follow sliders.

Drafter latency across, acceptance upwards, as in the DSI paper's Figure 1; in each cell the speed
over plain decoding that ``theory`` expects of an endless text. The picture is SVG, drawn anew while
a slider moves. Knows no method and no run: these are formulas.
"""

from __future__ import annotations

import numpy as np

from speclib.errors import SpeclibError
from speclib.theory.closed_forms import dsi_speed, sd_speed
from speclib.views.svg import FONTS, INK, PAD, QUIET, n, tag, words
from speclib.views.text import FONT

from .controls import control
from .explorer import times
from .shown import Following

EDGES = (0.5, 0.75, 1, 1.25, 1.5, 2, 3, 5)  # of the bands, times plain decoding
BANDS = (
    "#b5427f",
    "#d987b0",
    "#f2cfe1",  # slower: pink, as printed
    "#eaf0f7",
    "#cfdff0",
    "#a7c6e3",
    "#74a5d3",
    "#3f7fbd",
    "#1f4f8f",
)
CELLS, SIDE, TALL, BETWEEN, LEFT, TOP = 100, 360, 300, 84, 62, 64
NEEDS = ("c", "alpha", "gamma", "lookahead", "servers")
CONTROLS = {
    "c": (1.0, 12.0, 0.5, 5.0),
    "alpha": (0.0, 1.0, 0.01, 0.8),
    "gamma": (1, 12, 1, 5),
    "lookahead": (1, 10, 1, 2),
    "servers": (1, 8, 1, 3),
}
SIZE = (1100, TOP + TALL + 60)


def path(mask: np.ndarray) -> str:
    """SVG path of the True cells, row by row, runs joined; units are cells."""
    edges = np.diff(np.pad(mask.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    starts, ends = np.argwhere(edges == 1), np.argwhere(edges == -1)
    return "".join(
        f"M{a} {row}h{b - a}v1h{a - b}z"
        for (row, a), (_, b) in zip(starts.tolist(), ends.tolist(), strict=True)
    )


def speeds(gamma: int, lookahead: int, servers: int, c=None, alpha=None, **_) -> dict:
    """Name of a map -> speed over plain decoding, one number at ``c`` and ``alpha`` or, without
    them, all cells [acceptance falling, drafter latency rising], at their middles."""
    middles = (np.arange(CELLS) + 0.5) / CELLS
    share = middles if c is None else 1 / c
    alpha = middles[::-1, None] if alpha is None else alpha
    return {
        f"SI, γ = {gamma}": sd_speed(alpha, gamma, share, 1.0),
        f"DSI, lookahead {lookahead}, up to {servers} targets": dsi_speed(
            alpha, lookahead, share, 1.0, servers
        ),
    }


def panel(name: str, grid: np.ndarray, here: float, values: dict, x: float) -> str:
    """One map, its axes, and the sliders' point with the speed there."""
    band = np.searchsorted(EDGES, grid, side="right")
    body = "".join(
        tag("path", d=path(band == i), fill=colour)
        for i, colour in enumerate(BANDS)
        if (band == i).any()
    )
    drawn = [
        tag(
            "g",
            body,
            transform=f"translate({n(x)} {TOP}) scale({n(SIDE / CELLS)} "
            f"{n(TALL / CELLS)})",
            shape_rendering="crispEdges",
        ),
        tag("rect", x=n(x), y=TOP, width=SIDE, height=TALL, fill="none", stroke=QUIET),
        words(name, x, TOP - 12, fill=INK, font_size=17, font_weight="600"),
        words(
            "drafter's latency / target's (1/c)",
            x + SIDE / 2,
            TOP + TALL + 42,
            text_anchor="middle",
            fill=INK,
        ),
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        drawn += [
            words(
                f"{share:g}", x + share * SIDE, TOP + TALL + 20, text_anchor="middle"
            ),
            words(f"{share:g}", x - 8, TOP + (1 - share) * TALL + 5, text_anchor="end"),
        ]
    middle = TOP + TALL / 2
    drawn.append(
        words(
            "acceptance α",
            x - 42,
            middle,
            text_anchor="middle",
            fill=INK,
            transform=f"rotate(-90 {n(x - 42)} {n(middle)})",
        )
    )
    at, up = x + SIDE / values["c"], TOP + (1 - values["alpha"]) * TALL
    left = values["c"] < 1.5  # the label stays in the map
    drawn += [
        tag(
            "circle",
            cx=n(at),
            cy=n(up),
            r=6,
            fill="#fff",
            stroke="#000",
            stroke_width=2.5,
        ),
        words(
            times(here),
            at - 12 if left else at + 12,
            min(max(up + 6, TOP + 18), TOP + TALL - 8),
            fill="#000",
            font_size=18,
            font_weight="600",
            text_anchor="end" if left else "start",
            stroke="#fff",
            stroke_width=3,
            paint_order="stroke",
        ),
    ]
    return "".join(drawn)


def key(x: float) -> str:
    """The bands and what they mean, fastest on top."""
    names = [
        f"below {EDGES[0]:g}×",
        *(f"{a:g} – {b:g}×" for a, b in zip(EDGES, EDGES[1:], strict=False)),
        f"{EDGES[-1]:g}× and more",
    ]
    drawn = [words("speed over plain", x, TOP - 12, fill=INK)]
    for i, (name, colour) in enumerate(
        zip(reversed(names), reversed(BANDS), strict=True)
    ):
        y = TOP + 26 * i + (26 if i > len(BANDS) - 4 else 0)
        drawn += [
            tag("rect", x=n(x), y=n(y), width=22, height=22, fill=colour),
            words(name, x + 30, y + 16, fill=INK),
        ]
    slower = TOP + 26 * (len(BANDS) - 3) + 18
    return "".join(drawn) + words("slower:", x, slower, fill=INK)


def draw(values: dict) -> str:
    """SVG of both maps at the sliders' ``values``."""
    points = speeds(**values)
    grids = speeds(**{**values, "c": None, "alpha": None})
    body = "".join(
        panel(name, grid, points[name], values, PAD + LEFT + i * (SIDE + BETWEEN))
        for i, (name, grid) in enumerate(grids.items())
    )
    wide, high = SIZE
    card = tag("rect", width=wide, height=high, rx="8", fill="#fff")
    note = words(
        "formulas for an endless text; the circle is where the sliders stand",
        PAD,
        PAD + 14,
        fill=QUIET,
    )
    right = PAD + LEFT + 2 * SIDE + BETWEEN + 28
    return tag(
        "svg",
        card + note + body + key(right),
        xmlns="http://www.w3.org/2000/svg",
        width=wide,
        height=high,
        viewBox=f"0 0 {wide} {high}",
        font_family=FONTS,
        font_size=FONT,
        fill=QUIET,
        style="max-width:100%;height:auto",
    )


class Regions(Following):
    """Sliders above the two maps. ``controls`` as an Explorer's, or those of one: then both move
    together. Raises SpeclibError where one of ``NEEDS`` is missing."""

    size = SIZE

    def __init__(self, controls: dict | None = None):
        controls = controls or CONTROLS
        missing = [name for name in NEEDS if name not in controls]
        if missing:
            raise SpeclibError(
                f"the maps need controls for {', '.join(NEEDS)}; there is none for "
                f"{', '.join(missing)}"
            )
        super().__init__({name: control(name, controls[name]) for name in NEEDS})

    def picture(self) -> str:
        return draw(self.values)

    def text(self) -> str:
        """The settings, the speeds there, and how much of each map is slower than plain."""
        points, grids = (
            speeds(**self.values),
            speeds(**{**self.values, "c": None, "alpha": None}),
        )
        settings = ", ".join(f"{name} = {value}" for name, value in self.values.items())
        return "\n".join(
            [
                f"regions at {settings}",
                *(
                    f"{name}: {times(points[name])} plain decoding here, slower than it in "
                    f"{np.mean(grid < 1):.0%} of the map"
                    for name, grid in grids.items()
                ),
            ]
        )


def regions(controls: dict | None = None) -> Regions:
    """Maps of where SI and DSI are faster than plain decoding, following sliders; see Regions."""
    return Regions(controls)
