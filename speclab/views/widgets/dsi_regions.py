"""Two maps of where speculative inference (SI) and DSI gain, and where they lose.

A map's x axis is the draft model's latency, its y axis the acceptance rate, as in
Figure 1 of the DSI paper. A cell's colour is the speed-up over plain decoding that
``theory`` expects for an endless text. The maps follow the sliders, and a circle marks
the sliders' values. This module uses only formulas, and no method or run.

::

    formulas for an endless text; ...
                 SI, γ = 5                DSI, lookahead 2, ...    speed over plain
              1 +-----------+          1 +-----------+             # 5× and more
                |           |            |           |             # 3 – 5×
   acceptance α | o 1.29×   |            |           |             ...
                |           |            |           |             slower:
              0 +-----------+          0 +-----------+             # 0.75 – 1×
                0   0.5     1            0   0.5     1             ...
                drafter's latency        drafter's latency
                / target's (1/c)         / target's (1/c)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from speclab.theory.closed_forms import dsi_speed, sd_speed
from speclab.views.shapes import centred, circle, point, title_at
from speclib.arguments import checked
from speclib.drawing.svg import INK, PAD, QUIET, card, rectangle, tag, text_at
from speclib.errors import BadValue

from .controls import ControlSpec, control, settings_in_words
from .figures import as_factor
from .picture_with_sliders import PictureWithSliders

CONTROLS: dict[str, ControlSpec] = {
    "c": (1.0, 12.0, 0.5, 5.0),
    "alpha": (0.0, 1.0, 0.01, 0.8),
    "gamma": (1, 12, 1, 5),
    "lookahead": (1, 10, 1, 2),
    "servers": (1, 8, 1, 3),
}

# Bands of speed, in multiples of plain decoding: below the first edge, between two
# neighbours, above the last edge. The three bands slower than plain decoding are pink,
# as in the paper.
EDGES = (0.5, 0.75, 1, 1.25, 1.5, 2, 3, 5)
COLOURS = (
    "#b5427f",
    "#d987b0",
    "#f2cfe1",
    "#eaf0f7",
    "#cfdff0",
    "#a7c6e3",
    "#74a5d3",
    "#3f7fbd",
    "#1f4f8f",
)
SLOWER_BANDS = 3

CELLS = 100  # cells of a map in each direction

# Pixels.
MAP_WIDTH = 360
MAP_HEIGHT = 300
MAP_TOP = 64
LEFT_OF_MAP = 62  # for the vertical axis
BETWEEN_MAPS = 84
BAND_HEIGHT = 26  # in the legend
SIZE = (1100, MAP_TOP + MAP_HEIGHT + 60)


@dataclass(frozen=True)
class Settings:
    """The values of the sliders."""

    c: float
    alpha: float
    gamma: int
    lookahead: int
    servers: int

    @property
    def draft_share(self) -> float:
        """The draft model's latency over the target model's."""
        return 1 / self.c


NEEDED_CONTROLS = tuple(Settings.__dataclass_fields__)


# -- the numbers -----------------------------------------------------------------------
def expected_speeds(settings: Settings, draft_share: Any, alpha: Any) -> dict[str, Any]:
    """Each map's speed-up over plain decoding, by the map's name.

    ``draft_share`` (the draft model's latency over the target model's) and ``alpha``
    are numbers, or arrays that numpy can broadcast.
    """
    si_name = f"SI, γ = {settings.gamma}"
    dsi_name = f"DSI, lookahead {settings.lookahead}, up to {settings.servers} targets"
    return {
        si_name: sd_speed(alpha, settings.gamma, draft_share, 1.0),
        dsi_name: dsi_speed(
            alpha, settings.lookahead, draft_share, 1.0, settings.servers
        ),
    }


def speeds_at(settings: Settings) -> dict[str, float]:
    """Each map's speed-up at the sliders' values."""
    return expected_speeds(settings, settings.draft_share, settings.alpha)


def speed_maps(settings: Settings) -> dict[str, np.ndarray]:
    """The speed-ups at the centres of each map's cells.

    Rows run from high acceptance to low, columns from low draft latency to high.
    """
    middles = (np.arange(CELLS) + 0.5) / CELLS
    alphas = middles[::-1, None]
    return expected_speeds(settings, middles, alphas)


# -- the picture -----------------------------------------------------------------------
def maps_svg(settings: Settings) -> str:
    """The SVG of both maps and their legend."""
    note = text_at(
        "formulas for an endless text; the circle marks the sliders' values",
        PAD,
        PAD + 14,
        fill=QUIET,
    )
    body = [note]

    left = PAD + LEFT_OF_MAP
    speeds_here = speeds_at(settings)
    for name, speeds in speed_maps(settings).items():
        body.append(map_svg(name, speeds, left))
        body.append(sliders_point(settings, speeds_here[name], left))
        left += MAP_WIDTH + BETWEEN_MAPS

    body.append(legend(left - BETWEEN_MAPS + 28))
    return card("".join(body), *SIZE)


def map_svg(name: str, speeds: np.ndarray, left: float) -> str:
    """A map: its cells in their bands' colours, its frame, name and axes."""
    frame = rectangle(left, MAP_TOP, MAP_WIDTH, MAP_HEIGHT, fill="none", stroke=QUIET)
    title = title_at(name, left, MAP_TOP - 12)
    return map_cells(speeds, left) + frame + title + axes(left)


def map_cells(speeds: np.ndarray, left: float) -> str:
    """One path per band of speed, in units of cells, stretched to the map's size."""
    band_of_cell = np.searchsorted(EDGES, speeds, side="right")
    paths = []
    for band, colour in enumerate(COLOURS):
        is_in_band = band_of_cell == band
        if is_in_band.any():
            paths.append(tag("path", d=path_of_cells(is_in_band), fill=colour))

    scale = point(MAP_WIDTH / CELLS, MAP_HEIGHT / CELLS)
    return tag(
        "g",
        "".join(paths),
        transform=f"translate({point(left, MAP_TOP)}) scale({scale})",
        shape_rendering="crispEdges",
    )


def path_of_cells(mask: np.ndarray) -> str:
    """The SVG path around the True cells of ``mask``, in units of cells.

    Neighbours in a row share a rectangle::

        row 2 is  . . # # # .   ->   M2 2 h3 v1 h-3 z
    """
    padded = np.pad(mask.astype(np.int8), ((0, 0), (1, 1)))
    steps = np.diff(padded, axis=1)
    starts = np.argwhere(steps == 1).tolist()
    ends = np.argwhere(steps == -1).tolist()

    rectangles = []
    for (row, start), (_, end) in zip(starts, ends, strict=True):
        rectangles.append(f"M{start} {row}h{end - start}v1h{start - end}z")
    return "".join(rectangles)


def axes(left: float) -> str:
    """The titles and the numbers of both axes of a map."""
    bottom = MAP_TOP + MAP_HEIGHT
    parts = [
        centred("drafter's latency / target's (1/c)", left + MAP_WIDTH / 2, bottom + 42)
    ]

    for share in (0, 0.25, 0.5, 0.75, 1):
        x = left + share * MAP_WIDTH
        y = MAP_TOP + (1 - share) * MAP_HEIGHT
        parts.append(text_at(f"{share:g}", x, bottom + 20, text_anchor="middle"))
        parts.append(text_at(f"{share:g}", left - 8, y + 5, text_anchor="end"))

    title_x = left - 42
    title_y = MAP_TOP + MAP_HEIGHT / 2
    parts.append(
        centred(
            "acceptance α",
            title_x,
            title_y,
            transform=f"rotate(-90 {point(title_x, title_y)})",
        )
    )
    return "".join(parts)


def sliders_point(settings: Settings, speed: float, left: float) -> str:
    """A circle in a map at the sliders' values, with the speed-up there."""
    x = left + MAP_WIDTH / settings.c
    y = MAP_TOP + (1 - settings.alpha) * MAP_HEIGHT
    point = circle(x, y, 6, fill="#fff", stroke="#000", stroke_width=2.5)

    # To stay inside the map, a label near the right edge is left of the circle.
    is_near_right_edge = settings.c < 1.5
    label_x = x - 12 if is_near_right_edge else x + 12
    label_y = min(max(y + 6, MAP_TOP + 18), MAP_TOP + MAP_HEIGHT - 8)
    label = text_at(
        as_factor(speed),
        label_x,
        label_y,
        fill="#000",
        font_size=18,
        font_weight="600",
        text_anchor="end" if is_near_right_edge else "start",
        stroke="#fff",
        stroke_width=3,
        paint_order="stroke",
    )
    return point + label


def band_names() -> list[str]:
    """The name of each band of speed, slowest first."""
    names = [f"below {EDGES[0]:g}×"]
    for lower, upper in zip(EDGES[:-1], EDGES[1:], strict=True):
        names.append(f"{lower:g} – {upper:g}×")
    names.append(f"{EDGES[-1]:g}× and more")
    return names


def legend(left: float) -> str:
    """The legend of the bands, fastest on top, with a title above the slower ones."""
    parts = [text_at("speed over plain", left, MAP_TOP - 12, fill=INK)]
    faster_bands = len(COLOURS) - SLOWER_BANDS

    fastest_first = zip(reversed(band_names()), reversed(COLOURS), strict=True)
    for band, (name, colour) in enumerate(fastest_first):
        y = MAP_TOP + BAND_HEIGHT * band
        if band >= faster_bands:
            y += BAND_HEIGHT  # for the title "slower:"
        parts.append(rectangle(left, y, 22, 22, fill=colour))
        parts.append(text_at(name, left + 30, y + 16, fill=INK))

    slower_y = MAP_TOP + BAND_HEIGHT * faster_bands + 18
    parts.append(text_at("slower:", left, slower_y, fill=INK))
    return "".join(parts)


# -- the widget ------------------------------------------------------------------------
class Regions(PictureWithSliders):
    """Sliders above the two maps.

    ``controls``: see ``Explorer``. If an Explorer shares these objects, its timeline
    and the maps move together. Raises SpeclibError if one of ``NEEDED_CONTROLS`` is
    missing.
    """

    @checked
    def __init__(self, controls: dict[str, Any] | None = None):
        controls = controls or CONTROLS
        missing = [name for name in NEEDED_CONTROLS if name not in controls]
        if missing:
            raise BadValue(
                f"the maps have no controls for {', '.join(missing)}: give controls "
                f"for {', '.join(NEEDED_CONTROLS)}"
            )
        sliders = {}
        for name in NEEDED_CONTROLS:
            sliders[name] = control(name, controls[name])
        super().__init__(sliders)

    @property
    def settings(self) -> Settings:
        return Settings(**self.values)

    @property
    def size(self) -> tuple[int, int]:
        return SIZE

    def picture(self) -> str:
        return maps_svg(self.settings)

    def text(self) -> str:
        """The settings, the speed-ups there, and each map's share of slow-downs."""
        lines = [f"regions at {settings_in_words(self.values)}"]
        speeds_here = speeds_at(self.settings)
        for name, speeds in speed_maps(self.settings).items():
            slower_share = np.mean(speeds < 1)
            lines.append(
                f"{name}: {as_factor(speeds_here[name])} plain decoding here, "
                f"slower in {slower_share:.0%} of the map"
            )
        return "\n".join(lines)


regions = Regions  # its name in lessons
