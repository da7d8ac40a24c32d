"""The timeline as a widget in notebooks, and as a picture everywhere else.

``draw_timeline`` makes the picture.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import anywidget
import traitlets

from speclib.arguments import Number, Seconds, checked
from speclib.atomic_files import write_atomically
from speclib.drawing.display import NotebookView, png
from speclib.errors import BadValue

from .axis import LEAST_WIDTH
from .picture import Picture, draw_timeline, span_of
from .run import TimelineRun, timeline_run
from .sayings import story_of, summary

PAGE_SCRIPT = Path(__file__).parents[1] / "room.js"
SCRIPT = Path(__file__).with_name("timeline.js")
STYLE = Path(__file__).with_name("timeline.css")
MOST_WIDTH = 1500  # pixels; wider lines would be hard to follow
ENLARGED = 1.6  # times, on a large screen
PictureWidth: TypeAlias = Annotated[float, Number(least=LEAST_WIDTH, most=20_000)]
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>body {{ margin: 16px; background: #eee; }}
{css}</style></head>
<body><div class="speclib-timeline" id="timeline">{svg}</div>
<script type="module">
{js}
const root = document.getElementById("timeline");
const svg = root.innerHTML;
makeTimeline(root).show(svg, {story});
</script></body></html>
"""


class Timeline(NotebookView, anywidget.AnyWidget):
    """What every device did and when, for one or more runs on one time axis.

    ``results``: what ``speclib.decode`` returns, or traces. ``labels``: one per result,
    instead of the method's name. ``until``: where the axis ends, in seconds, to show
    only the beginning. ``width``: of the still picture, in pixels. ``places``: maps
    devices to their places, which are shown under their names.

    In a notebook the page reports its width (``page_width``), and the picture is laid
    out for that width, so its letters keep their size; it shrinks only if the page is
    too narrow for the facts. On a projector the picture fills the screen, is compact
    and has larger letters.
    """

    _esm = PAGE_SCRIPT.read_text() + SCRIPT.read_text()
    _css = STYLE.read_text()
    svg = traitlets.Unicode().tag(sync=True)
    story = traitlets.Dict().tag(sync=True)  # what the player shows
    page_width = traitlets.Int(0).tag(sync=True)  # pixels; 0 if unknown
    is_large = traitlets.Bool(False).tag(sync=True)  # whether it fills the screen

    @checked
    def __init__(
        self,
        *results: object,
        labels: Sequence[str | None] | None = None,
        until: Seconds | None = None,
        width: PictureWidth = 1100,
        places: dict[str, str] | None = None,
    ):
        self.until = until
        self.still_width = width
        self.places = places
        self.runs: list[TimelineRun] = []
        self._still: Picture | None = None
        super().__init__()
        self.update(*results, labels=labels)
        self.observe(self._draw, ["page_width", "is_large"])

    def update(
        self, *results: object, labels: Sequence[str | None] | None = None
    ) -> None:
        """Shows other results in the same place, and keeps the reader's zoom."""
        if not results:
            raise BadValue("no results to show: give at least one result or trace")
        if labels is None:
            labels = [None] * len(results)
        if len(labels) != len(results):
            raise BadValue(
                f"labels has {len(labels)} entries for {len(results)} results: "
                "give one each, or none"
            )
        self.runs = [
            timeline_run(result, label, self.places)
            for result, label in zip(results, labels, strict=True)
        ]
        self._still = None
        self._draw()

    def _draw(self, _change: object = None) -> None:
        """Draws the runs as wide as the page, and passes their story to the player."""
        self.story = self._player_story()
        if not self.page_width:
            self.svg = self.picture()
            return
        width: float = min(self.page_width, MOST_WIDTH)
        if self.is_large:
            width = self.page_width / ENLARGED
        width = max(width, LEAST_WIDTH)
        self.svg = draw_timeline(self.runs, width, self.until, self.is_large).svg

    def _player_story(self) -> dict[str, Any]:
        """The runs for the player, with times as shares of the axis."""
        span = span_of(self.runs, self.until)
        runs = []
        for run in self.runs:
            moments = [
                [moment.seconds / span, moment.text, moment.sentence]
                for moment in story_of(run)
            ]
            runs.append({"label": run.title, "moments": moments})
        return {"runs": runs}

    @property
    def _still_picture(self) -> Picture:
        """The still picture, drawn on first use."""
        if self._still is None:
            self._still = draw_timeline(self.runs, self.still_width, self.until)
        return self._still

    @property
    def size(self) -> tuple[int, int]:
        """The width and height of the still picture, in pixels."""
        return round(self._still_picture.width), round(self._still_picture.height)

    def picture(self) -> str:
        """The SVG of the still picture."""
        return self._still_picture.svg

    def text(self) -> str:
        """The summary in plain text."""
        return summary(self.runs, self._still_picture.unit)

    def html(self) -> str:
        """A self-contained page with zoom, player and tooltips."""
        title = "Timeline: " + ", ".join(run.label for run in self.runs)
        return PAGE.format(
            title=escape(title),
            svg=self.svg,
            story=json.dumps(self.story).replace("<", "\\u003c"),
            js=PAGE_SCRIPT.read_text() + SCRIPT.read_text(),
            css=STYLE.read_text(),
        )

    @checked
    def save(self, path: str | Path) -> Path:
        """Writes ``path`` in the format that its ending states: .svg, .png, or .html.

        Only a page is interactive. Raises SpeclibError if it cannot be written, for
        example on a full disk; an existing file is then unchanged.
        """
        path = Path(path).expanduser()
        if path.suffix == ".png":
            content = png(self.picture())
        elif path.suffix == ".svg":
            content = self.picture().encode()
        elif path.suffix == ".html":
            content = self.html().encode()
        else:
            raise BadValue(
                f"cannot save a timeline as {path.name!r}: end the name in .svg, .png, "
                "or .html; Trace.to_json gives the run itself"
            )
        write_atomically(path, content)
        return path


@checked
def timeline(
    *results: object,
    labels: Sequence[str | None] | None = None,
    until: Seconds | None = None,
    width: PictureWidth = 1100,
    places: dict[str, str] | None = None,
) -> Timeline:
    """Shows ``results`` (or traces) stacked on one time axis; see ``Timeline``."""
    return Timeline(*results, labels=labels, until=until, width=width, places=places)
