"""A draft pass, its layers over devices: exact, and with layers that share an input.

Two schedules on one time axis that follow sliders. The picture is SVG, drawn anew while a slider
moves. Knows no network: the seconds of a layer and the share of its attention are given.
"""

from __future__ import annotations

from xml.sax.saxutils import escape
from zlib import crc32

from speclib.errors import SpeclibError
from speclib.theory.layer_schedule import Part, lasts, schedule, spans
from speclib.views.numbers import MILLISECONDS, duration, percent
from speclib.views.svg import FONTS, INK, PAD, QUIET, n, patterns, tag, words
from speclib.views.text import FONT, text_width
from speclib.views.timeline.shapes import GUTTER, SIDE, Frame

from .controls import control
from .explorer import times
from .shown import Following

CONTROLS = {
    "lp": (1, 8, 1, 4),
    "devices": (1, 8, 1, 4),
    "layers": (3, 40, 1, 32),
    "share": (0.0, 1.0, 0.01, 0.66),
    "gather": (0.0, 2.0, 0.02, 0.0),
}
FILLS = {"attention": "#0072B2", "mlp": "#E69F00", "gather": "#1a1a1a"}
PALE = {"attention": "#9CC7E4", "mlp": "#F6DDA8"}
KEY = (
    ("attention of a layer (its number)", FILLS["attention"]),
    ("its MLP", FILLS["mlp"]),
    ("gather", FILLS["gather"]),
    ("", PALE["attention"]),
    ("the same, computed on device 1 too", PALE["mlp"]),
)
WIDE, LEFT, TOP, LANE, GAP, HEAD, SPACE, AXIS = 1100, 88, 50, 20, 3, 46, 16, 46
PLOT = WIDE - LEFT - PAD


def cell(part: Part, top: float, frame: Frame, most: str) -> str:
    """One part, with the number of its layer where there is room for all up to ``most``."""
    x, wide = LEFT + frame.x(part.start), frame.x(part.seconds)
    told = {
        "attention": f"attention of layer {part.layer}",
        "mlp": f"MLP of layer {part.layer}",
        "gather": "attention outputs are handed over",
    }[part.kind]
    tip = (
        f"{told}\ndevice {part.device + 1}, starts at {frame.time(part.start)}, takes "
        f"{frame.time(part.seconds)}"
    )
    if part.kind == "gather":  # a line even where it takes no time
        x, wide = x - 0.75, max(wide, 1.5)
    drawn = tag(
        "rect",
        tag("title", escape(tip)),
        cls=part.kind + " copy" * part.copy,
        x=n(x),
        y=n(top),
        width=n(wide - min(1, wide * 0.15)),
        height=LANE,
        fill=(PALE if part.copy else FILLS)[part.kind],
    )
    if part.kind == "gather" or text_width(most, 12) + 3 > wide:
        return drawn
    return drawn + words(
        str(part.layer),
        x + wide / 2,
        top + 14.5,
        text_anchor="middle",
        font_size=12,
        pointer_events="none",
        fill="#fff" if (part.kind, part.copy) == ("attention", False) else "#000",
    )


def block(
    parts: tuple[Part, ...], devices: int, y: float, frame: Frame, name: str
) -> str:
    """The lanes of one pass; where a lane is hatched its device waits."""
    drawn, most = [], str(max(p.layer for p in parts))
    for device in range(devices):
        top = y + device * (LANE + GAP)
        drawn += [
            words(
                f"device {device + 1}", LEFT - 8, top + 15, text_anchor="end", fill=INK
            ),
            tag(
                "rect",
                cls="idle",
                x=LEFT,
                y=n(top),
                width=n(frame.x(lasts(parts))),
                height=LANE,
                fill=f"url(#{name}-idle)",
            ),
        ]
    return "".join(drawn) + "".join(
        cell(p, y + p.device * (LANE + GAP), frame, most) for p in parts
    )


def groups(
    parts: tuple[Part, ...], named: tuple[str, ...], y: float, frame: Frame
) -> str:
    """Over the lanes, each group's layers as far as there is room, a line where it begins."""
    starts = [
        p.start
        for p in parts
        if p.device == 0
        and p.kind == "attention"
        and str(p.layer) in {name.split("-")[0] for name in named}
    ]
    drawn = []
    for name, start, end in zip(
        named, starts, [*starts[1:], lasts(parts)], strict=True
    ):
        x, room = LEFT + frame.x(start), frame.x(end - start)
        drawn.append(
            tag(
                "line",
                cls="group",
                x1=n(x),
                x2=n(x),
                y1=n(y - 14),
                y2=n(y),
                stroke=QUIET,
            )
        )
        if text_width(name, 13) + 4 <= room:
            drawn.append(
                words(name, x + room / 2, y - 5, text_anchor="middle", font_size=13)
            )
    return "".join(drawn)


def legend() -> str:
    x, drawn = float(PAD), []
    for label, fill in KEY:
        drawn += [
            tag("rect", x=n(x), y=PAD, width=20, height=16, fill=fill),
            words(label, x + 26, PAD + 13, fill=INK),
        ]
        x += 26 + text_width(label) + 20 if label else 24
    return "".join(drawn)


def axis(y: float, frame: Frame) -> str:
    drawn = [
        tag("line", x1=LEFT, x2=n(LEFT + frame.plot), y1=n(y), y2=n(y), stroke=QUIET)
    ]
    for x, label in frame.ticks(1):
        drawn += [
            tag(
                "line",
                x1=n(LEFT + x),
                x2=n(LEFT + x),
                y1=n(y),
                y2=n(y + 5),
                stroke=QUIET,
            ),
            words(label, LEFT + x, y + 19, text_anchor="middle"),
        ]
    return "".join(drawn) + words(
        "time in ms (formula)",
        LEFT + frame.plot / 2,
        y + 38,
        text_anchor="middle",
        fill=INK,
    )


class Layers(Following):
    """Sliders above the two schedules. ``layer``: seconds of a layer in an exact pass; of these
    ``share`` are its attention's, and ``gather`` milliseconds hand over a group's outputs.
    ``controls`` as an Explorer's; one left out stands at its default and does not move. Raises
    SpeclibError for one that is not among ``CONTROLS``."""

    def __init__(self, layer: float, controls: dict | None = None):
        unknown = [name for name in controls or {} if name not in CONTROLS]
        if unknown:
            raise SpeclibError(
                f"no control {unknown[0]!r} here; known: {', '.join(CONTROLS)}"
            )
        self.layer = layer
        super().__init__(
            {
                name: control(name, spec)
                for name, spec in (CONTROLS if controls is None else controls).items()
            }
        )

    @property
    def values(self) -> dict:
        return {
            name: self.controls[name].value if name in self.controls else spec[-1]
            for name, spec in CONTROLS.items()
        }

    @property
    def passes(self) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
        """The exact pass, on one device, and the fuzzy one."""
        at = self.values
        parts = at["share"] * self.layer, (1 - at["share"]) * self.layer
        return (
            schedule(at["layers"], 1, 1, *parts),
            schedule(at["layers"], at["lp"], at["devices"], *parts, at["gather"] / 1e3),
        )

    @property
    def size(self) -> tuple[int, int]:
        lanes = self.values["devices"] * (LANE + GAP)
        return WIDE, TOP + 2 * (HEAD + lanes) + SPACE + AXIS

    def heads(self) -> tuple[str, str]:
        """What stands over each schedule."""
        at, (exact, fuzzy) = self.values, map(lasts, self.passes)
        return (
            f"exact: one layer after the other, {duration(exact, MILLISECONDS)}",
            f"fuzzy: N = {at['lp']}, {duration(fuzzy, MILLISECONDS)}, "
            f"{times(exact / fuzzy)} as fast",
        )

    def picture(self) -> str:
        """SVG."""
        at, passes, (wide, high) = self.values, self.passes, self.size
        frame = Frame(PLOT + 2 * PAD + GUTTER + SIDE, max(map(lasts, passes)))
        name, y, drawn = f"l{crc32(repr(passes).encode()):08x}", TOP, []
        for head, parts, lp in zip(self.heads(), passes, (1, at["lp"]), strict=True):
            drawn += [
                words(head, LEFT, y + 16, fill=INK, font_size=17, font_weight="600"),
                groups(parts, spans(at["layers"], lp), y + HEAD - 4, frame),
                block(parts, at["devices"], y + HEAD, frame, name),
            ]
            y += HEAD + at["devices"] * (LANE + GAP) + SPACE
        card = tag("rect", width=wide, height=high, rx="8", fill="#fff")
        return tag(
            "svg",
            patterns(name)
            + card
            + legend()
            + "".join(drawn)
            + axis(y - SPACE + 4, frame),
            xmlns="http://www.w3.org/2000/svg",
            width=wide,
            height=high,
            viewBox=f"0 0 {wide} {high}",
            font_family=FONTS,
            font_size=FONT,
            fill=QUIET,
            style="max-width:100%;height:auto",
        )

    def text(self) -> str:
        """The settings, the groups, both times, and how much each device does that no other does
        before it."""
        at, (_, fuzzy) = self.values, self.passes
        settings = ", ".join(f"{name} = {value:g}" for name, value in at.items())
        own = [
            percent(
                sum(
                    p.seconds
                    for p in fuzzy
                    if p.device == d and not p.copy and p.kind != "gather"
                )
                / lasts(fuzzy)
            )
            for d in range(at["devices"])
        ]
        return "\n".join(
            [
                f"layers at {settings}",
                *self.heads(),
                f"groups: {', '.join(spans(at['layers'], at['lp']))}",
                f"own work of each device: {', '.join(own)}",
            ]
        )


def layers(layer: float = 0.85e-3, controls: dict | None = None) -> Layers:
    """A draft pass over devices, exact and fuzzy, following sliders; see ``Layers``. A layer takes
    0.85 ms in EasySpec's Llama-3-8B: 27.2 ms a pass [Table 1], over 32 layers."""
    return Layers(layer, controls)
