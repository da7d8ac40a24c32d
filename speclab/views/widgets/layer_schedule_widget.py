"""An exact and a fuzzy pass of a draft model, layer by layer on several devices.

An exact pass computes one layer after the other. In a fuzzy pass the layers of a group
share one input, so their attentions run at the same time on different devices
(EasySpec). Both schedules share a time axis and follow sliders. This module uses no
model: the time of a layer, and attention's share of it, are arguments.

::

    # attention   # MLP   # gather   ...                     legend
             exact: one layer after the other, 27.20 ms      heading
             |0    |1    |2    |3                            groups, if their names fit
    device 1 [att ][mlp][att ][mlp][att ][mlp] ...           a lane per device
    device 2 //////////////////////////////////              hatched: the device waits
             fuzzy: N = 2, 18.80 ms, 1.45× as fast
             |0    |1-2
    device 1 [att ][mlp][att ]|[mlp][mlp] ...                | is a gather
    device 2 [att ][mlp][att ]|[mlp][mlp] ...
             |----------|----------|----------|
                    time in ms (formula)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from speclab.theory.layer_schedule import Part, group_labels, schedule, total_seconds
from speclab.views.shapes import centred, title_at
from speclib.arguments import Seconds, checked
from speclib.data.layer_groups import group_layers
from speclib.drawing.numbers import MILLISECONDS, duration, percent
from speclib.drawing.svg import (
    INK,
    PAD,
    QUIET,
    card,
    hatch_patterns,
    horizontal_line,
    rectangle,
    text_at,
    unique_name,
    vertical_line,
)
from speclib.drawing.text_in_pictures import text_width
from speclib.drawing.timeline.axis import GUTTER, SIDE, TimeAxis
from speclib.errors import unknown_name

from .controls import ControlSpec, control
from .figures import as_factor
from .picture_with_sliders import PictureWithSliders

CONTROLS: dict[str, ControlSpec] = {
    "lp": (1, 8, 1, 4),
    "devices": (1, 8, 1, 4),
    "layers": (3, 40, 1, 32),
    "share": (0.0, 1.0, 0.01, 0.66),
    "gather": (0.0, 2.0, 0.02, 0.0),
}

COLOURS = {"attention": "#0072B2", "mlp": "#E69F00", "gather": "#1a1a1a"}
# The colours of a part that another device also computes.
PALE_COLOURS = {"attention": "#9CC7E4", "mlp": "#F6DDA8"}
LEGEND = (
    ("attention, with its layer's number", COLOURS["attention"]),
    ("MLP", COLOURS["mlp"]),
    ("gather", COLOURS["gather"]),
    ("", PALE_COLOURS["attention"]),
    ("the same, also computed on device 1", PALE_COLOURS["mlp"]),
)

# Pixels.
WIDTH = 1100
PLOT_LEFT = 88  # the devices' names are to the left
PLOT_WIDTH = WIDTH - PLOT_LEFT - PAD
TOP = 50  # pixels above the lanes, for the legend
HEADING_HEIGHT = 46  # for a schedule's heading and its groups
LANE_HEIGHT = 20
LANE_STEP = LANE_HEIGHT + 3  # between the tops of two lanes
BETWEEN_SCHEDULES = 16
AXIS_HEIGHT = 46


class Passes(NamedTuple):
    """The parts of the exact pass, on one device, and of the fuzzy pass."""

    exact: tuple[Part, ...]
    fuzzy: tuple[Part, ...]


# -- the picture -----------------------------------------------------------------------
def legend() -> str:
    """The legend of the colours, from left to right."""
    parts = []
    x = float(PAD)
    for label, colour in LEGEND:
        parts.append(rectangle(x, PAD, 20, 16, fill=colour))
        parts.append(text_at(label, x + 26, PAD + 13, fill=INK))
        # Two colours that share a label are next to each other.
        x += 26 + text_width(label) + 20 if label else 24
    return "".join(parts)


def group_names(
    parts: tuple[Part, ...], layers: int, lp: int, y: float, frame: TimeAxis
) -> str:
    """The lines above the lanes where groups begin, and the groups' layers if they fit.

    ``y``: the lines' lower ends, in pixels.
    """
    starts = group_starts(parts, layers, lp)
    ends = [*starts[1:], total_seconds(parts)]
    elements = []
    for name, start, end in zip(group_labels(layers, lp), starts, ends, strict=True):
        x = PLOT_LEFT + frame.x(start)
        group_width = frame.x(end - start)
        elements.append(vertical_line(x, y - 14, y, kind="group", stroke=QUIET))
        if text_width(name, 13) + 4 <= group_width:
            middle = x + group_width / 2
            label = text_at(name, middle, y - 5, text_anchor="middle", font_size=13)
            elements.append(label)
    return "".join(elements)


def group_starts(parts: tuple[Part, ...], layers: int, lp: int) -> list[float]:
    """The start of each group's first attention, in seconds."""
    first_layers = {group[0] for group in group_layers(layers, lp)}
    starts = []
    for part in parts:
        is_attention = part.kind == "attention" and part.device == 0
        if is_attention and part.layer in first_layers:
            starts.append(part.start)
    return starts


def lanes(
    parts: tuple[Part, ...], devices: int, top: float, frame: TimeAxis, name: str
) -> str:
    """A lane per device with the parts of one pass, hatched while the device waits.

    ``name``: the name of the picture's patterns.
    """
    elements = []
    for device in range(devices):
        y = top + device * LANE_STEP
        device_name = text_at(
            f"device {device + 1}", PLOT_LEFT - 8, y + 15, text_anchor="end", fill=INK
        )
        ground = rectangle(
            PLOT_LEFT,
            y,
            frame.x(total_seconds(parts)),
            LANE_HEIGHT,
            kind="idle",
            fill=f"url(#{name}-idle)",
        )
        elements += [device_name, ground]

    highest_layer = max(part.layer for part in parts)
    for part in parts:
        y = top + part.device * LANE_STEP
        elements.append(part_bar(part, y, frame))
        # The widest number decides, so that all attentions show numbers, or none does.
        width = frame.x(part.seconds)
        fits = text_width(str(highest_layer), 12) + 3 <= width
        if part.kind != "gather" and fits:
            elements.append(layer_number(part, y, frame))
    return "".join(elements)


def part_bar(part: Part, y: float, frame: TimeAxis) -> str:
    """A bar whose length is the part's time, with a tooltip."""
    x = PLOT_LEFT + frame.x(part.start)
    width = frame.x(part.seconds)
    if part.kind == "gather":
        # Even if a gather takes no time, it is visible as a line.
        x = x - 0.75
        width = max(width, 1.5)

    gap = min(1, width * 0.15)  # white, to separate neighbours
    colours = PALE_COLOURS if part.copy else COLOURS
    return rectangle(
        x,
        y,
        width - gap,
        LANE_HEIGHT,
        kind=f"{part.kind} copy" if part.copy else part.kind,
        tip=part_in_words(part, frame),
        fill=colours[part.kind],
    )


def part_in_words(part: Part, frame: TimeAxis) -> str:
    """The tooltip of a part."""
    whats = {
        "attention": f"attention of layer {part.layer}",
        "mlp": f"MLP of layer {part.layer}",
        "gather": "exchange of attention outputs",
    }
    start = frame.time(part.start)
    seconds = frame.time(part.seconds)
    return (
        f"{whats[part.kind]}\n"
        f"device {part.device + 1}, starts at {start}, takes {seconds}"
    )


def layer_number(part: Part, y: float, frame: TimeAxis) -> str:
    """The number of a part's layer, in the middle of its bar."""
    x = PLOT_LEFT + frame.x(part.start)
    is_on_dark_ground = part.kind == "attention" and not part.copy
    return centred(
        str(part.layer),
        x + frame.x(part.seconds) / 2,
        y + 14.5,
        font_size=12,
        pointer_events="none",
        fill="#fff" if is_on_dark_ground else "#000",
    )


def time_axis(y: float, frame: TimeAxis) -> str:
    """A line with ticks, their numbers, and the unit."""
    elements = [horizontal_line(y, PLOT_LEFT, PLOT_LEFT + frame.plot, stroke=QUIET)]
    for offset, label in frame.ticks():
        x = PLOT_LEFT + offset
        elements.append(vertical_line(x, y, y + 5, stroke=QUIET))
        elements.append(text_at(label, x, y + 19, text_anchor="middle"))

    middle = PLOT_LEFT + frame.plot / 2
    unit = centred("time in ms (formula)", middle, y + 38)
    return "".join(elements) + unit


# -- the widget ------------------------------------------------------------------------
class Layers(PictureWithSliders):
    """Sliders above the two schedules.

    ``layer``: the time of one layer in an exact pass, in seconds. EasySpec's Llama-3-8B
    takes 0.85 ms: 27.2 ms per pass [Table 1], divided by 32 layers. Among the controls,
    ``share`` is attention's share of a layer, and ``gather`` the milliseconds to
    exchange a group's attention outputs.

    ``controls``: see ``Explorer``. A missing control keeps its default. Raises
    SpeclibError for a name that is not in ``CONTROLS``.
    """

    @checked
    def __init__(
        self, layer: Seconds = 0.85e-3, controls: dict[str, Any] | None = None
    ):
        if controls is None:
            controls = CONTROLS
        for name in controls:
            if name not in CONTROLS:
                raise unknown_name(f"no control {name!r}", name, CONTROLS)
        self.layer = layer
        super().__init__({name: control(name, spec) for name, spec in controls.items()})

    @property
    def values(self) -> dict[str, Any]:
        """The value of every control, or its default if it is missing."""
        values = {}
        for name, (_low, _high, _step, default) in CONTROLS.items():
            is_left_out = name not in self.controls
            values[name] = default if is_left_out else self.controls[name].value
        return values

    @property
    def passes(self) -> Passes:
        values = self.values
        attention = values["share"] * self.layer
        mlp = (1 - values["share"]) * self.layer
        gather = values["gather"] / 1e3

        layers = values["layers"]
        exact = schedule(layers, 1, 1, attention, mlp)
        fuzzy = schedule(
            layers, values["lp"], values["devices"], attention, mlp, gather
        )
        return Passes(exact, fuzzy)

    @property
    def schedule_height(self) -> int:
        """The height of one schedule with its heading, in pixels."""
        devices: int = self.values["devices"]
        return HEADING_HEIGHT + devices * LANE_STEP

    @property
    def size(self) -> tuple[int, int]:
        height = TOP + 2 * self.schedule_height + BETWEEN_SCHEDULES + AXIS_HEIGHT
        return WIDTH, height

    def headings(self) -> tuple[str, str]:
        """The heading of each schedule."""
        exact, fuzzy = (total_seconds(parts) for parts in self.passes)
        return (
            f"exact: one layer after the other, {duration(exact, MILLISECONDS)}",
            f"fuzzy: N = {self.values['lp']}, {duration(fuzzy, MILLISECONDS)}, "
            f"{as_factor(exact / fuzzy)} as fast",
        )

    def picture(self) -> str:
        """The SVG of both schedules."""
        passes = self.passes
        longest = max(total_seconds(parts) for parts in passes)
        frame = TimeAxis(PLOT_WIDTH + 2 * PAD + GUTTER + SIDE, longest)
        name = unique_name("l", passes)

        group_sizes = (1, self.values["lp"])
        schedules = []
        y = TOP
        for heading, parts, lp in zip(
            self.headings(), passes, group_sizes, strict=True
        ):
            schedules.append(self._schedule_svg(heading, parts, lp, y, frame, name))
            y += self.schedule_height + BETWEEN_SCHEDULES

        axis = time_axis(y - BETWEEN_SCHEDULES + 4, frame)
        body = legend() + "".join(schedules) + axis
        return card(body, *self.size, definitions=hatch_patterns(name))

    def _schedule_svg(
        self,
        heading: str,
        parts: tuple[Part, ...],
        lp: int,
        y: float,
        frame: TimeAxis,
        name: str,
    ) -> str:
        """A schedule's heading, groups and lanes, from ``y`` downwards."""
        values = self.values
        title = title_at(heading, PLOT_LEFT, y + 16)
        lanes_top = y + HEADING_HEIGHT
        groups = group_names(parts, values["layers"], lp, lanes_top - 4, frame)
        return title + groups + lanes(parts, values["devices"], lanes_top, frame, name)

    def text(self) -> str:
        """The settings, the times of both passes, the groups, and each device's work.

        A device's own work is the share of the fuzzy pass in which it computes parts
        that no lower-numbered device computes.
        """
        values = self.values
        fuzzy = self.passes.fuzzy
        settings = ", ".join(f"{name} = {value:g}" for name, value in values.items())
        own_work = [
            percent(own_seconds(fuzzy, device) / total_seconds(fuzzy))
            for device in range(values["devices"])
        ]
        lines = [
            f"layers at {settings}",
            *self.headings(),
            f"groups: {', '.join(group_labels(values['layers'], values['lp']))}",
            f"own work of each device: {', '.join(own_work)}",
        ]
        return "\n".join(lines)


def own_seconds(parts: tuple[Part, ...], device: int) -> float:
    """Seconds in which ``device`` computes parts that no lower-numbered one does."""
    seconds = 0.0
    for part in parts:
        is_own = part.device == device and not part.copy and part.kind != "gather"
        if is_own:
            seconds += part.seconds
    return seconds


layers = Layers  # its name in lessons
