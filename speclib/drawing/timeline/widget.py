"""The timeline as a widget in notebooks, and as a picture everywhere else.

The picture itself is made by ``layout`` and ``render``.
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

from .layout import LEAST_WIDTH, Figure, layout, layout_for_screen, span_of
from .render import render_timeline
from .run import timeline_run
from .sayings import summary
from .story import story_of

WIDTH_SCRIPT = Path(__file__).parents[1] / "room.js"
SCRIPT = Path(__file__).with_name("timeline.js")
STYLE = Path(__file__).with_name("timeline.css")
PictureWidth: TypeAlias = Annotated[float, Number(above=0, most=20_000)]  # pixels
MOST_WIDTH = 1500  # pixels; on a wider page lines would be too long to follow
FORMATS = (".svg", ".png", ".html", ".json")
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>body {{ margin: 16px; background: #eee; }}
{css}</style></head>
<body><div class="speclib-timeline" id="timeline">{svg}</div>
<script type="module">
{js}
const root = document.getElementById("timeline");
mountPlayer(root, mount(root), {story});
</script></body></html>
"""


class Timeline(NotebookView, anywidget.AnyWidget):
    """What every device did and when, for one or more runs on one time axis.

    ``results``: what ``speclib.decode`` returns, or traces. ``labels``: one per result,
    in place of the method's name. ``until``: seconds of the axis, to look at the
    beginning. ``width``: pixels of the still picture. ``places``: device -> where it
    is, to stand under its name.

    In a notebook the page says how wide it is (``page_width``), and the picture is laid
    out anew for it: its letters keep their size, however small the window is. On a
    projector, where the picture fills a ``screen``, only the runs are drawn.
    """

    _esm = WIDTH_SCRIPT.read_text() + SCRIPT.read_text()
    _css = STYLE.read_text()
    svg = traitlets.Unicode().tag(sync=True)
    story = traitlets.Dict().tag(sync=True)  # what the player tells, see story.py
    page_width = traitlets.Int(0).tag(sync=True)  # pixels; 0 where it is not known
    screen = traitlets.Dict().tag(sync=True)  # pixels to fill: width, height; or {}
    asked_anew = traitlets.Int(0).tag(sync=True)  # how often a reader pressed R
    # What buttons in the text around may set, and what one of them last asked for.
    settable: traitlets.List[str] = traitlets.List().tag(sync=True)
    asked_values = traitlets.Dict().tag(sync=True)

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
        self.picture_width = width
        self.places = places
        self._read(results, labels)
        super().__init__(svg=self._rendered(), story=self._player_story())
        self.observe(self._render_again, ["page_width", "screen"])

    def _read(
        self, results: Sequence[object], labels: Sequence[str | None] | None
    ) -> None:
        """Takes over the runs that are to be shown."""
        if labels is not None and len(labels) != len(results):
            raise BadValue(
                f"labels has {len(labels)} entries for {len(results)} results: "
                "give one each, or none"
            )

        self.runs = []
        for i, result in enumerate(results):
            label = labels[i] if labels is not None else None
            self.runs.append(timeline_run(result, label, self.places))
        self._still: Figure | None = None

    def _rendered(self) -> str:
        """The zoomable SVG, as wide as the page."""
        if self.screen:
            size = self.screen["width"], self.screen["height"]
            figure = layout_for_screen(self.runs, *size, self.until)
            return render_timeline(figure, zoomable=True)
        if not self.page_width:
            return render_timeline(self._still_figure, zoomable=True)
        width = min(max(self.page_width, LEAST_WIDTH), MOST_WIDTH)
        return render_timeline(layout(self.runs, width, self.until), zoomable=True)

    def _player_story(self) -> dict[str, Any]:
        """The runs as the player tells them: times as shares of the axis."""
        span = span_of(self.runs, self.until)
        runs = []
        for run in self.runs:
            moments = [
                [moment.seconds / span, moment.text, moment.sentence]
                for moment in story_of(run)
            ]
            runs.append({"label": run.title, "moments": moments})
        return {"runs": runs}

    def _render_again(self, _change: object) -> None:
        self.svg = self._rendered()

    @property
    def _still_figure(self) -> Figure:
        """The layout of the still picture; made when it is asked for."""
        if self._still is None:
            self._still = layout(self.runs, self.picture_width, self.until)
        return self._still

    def update(
        self, *results: object, labels: Sequence[str | None] | None = None
    ) -> None:
        """Shows other results in the same place; a reader's zoom stays."""
        self._read(results, labels)
        self.story = self._player_story()
        self.svg = self._rendered()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture, pixels."""
        return round(self._still_figure.axis.width), round(self._still_figure.height)

    def picture(self) -> str:
        """The static SVG."""
        return render_timeline(self._still_figure)

    def text(self) -> str:
        """The summary in plain text."""
        return summary(self.runs, self._still_figure.axis.unit)

    def html(self) -> str:
        """A page with zoom and tooltips that loads nothing from anywhere."""
        title = "Timeline: " + ", ".join(run.label for run in self.runs)
        story = json.dumps(self.story).replace("<", "\\u003c")
        return PAGE.format(
            title=escape(title),
            svg=self.svg,
            story=story,
            js=SCRIPT.read_text(),
            css=STYLE.read_text(),
        )

    def json(self) -> str:
        """A list of {"label", "note", "trace"}, one per run.

        ``Trace.from_json`` reads each trace's text.
        """
        entries = []
        for run in self.runs:
            trace = json.loads(run.trace.to_json())
            entries.append({"label": run.label, "note": run.note, "trace": trace})
        return json.dumps(entries)

    @checked
    def save(self, path: str | Path) -> Path:
        """Writes ``path``, whose ending is the format.

        .svg and .png are still, .html is interactive, .json holds the traces
        themselves. Raises SpeclibError where it cannot be written, on a full disk for
        instance; an earlier file is then as it was.
        """
        path = Path(path).expanduser()
        write_atomically(path, self._content(path))
        return path

    def _content(self, path: Path) -> bytes:
        """What a file of this name holds."""
        if path.suffix == ".png":
            return png(self.picture())
        if path.suffix == ".svg":
            return self.picture().encode()
        if path.suffix == ".html":
            return self.html().encode()
        if path.suffix == ".json":
            return self.json().encode()
        raise BadValue(
            f"cannot save a timeline as {path.name!r}: end the name in "
            f"{', '.join(FORMATS)}"
        )


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
