"""The timeline as a widget in notebooks, and as a picture everywhere else.

The picture itself is made by ``layout`` and ``render``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Annotated, TypeAlias

import anywidget
import traitlets

from speclib.arguments import Number, Seconds, checked
from speclib.errors import BadValue
from speclib.views.display import NotebookView, png

from .facts import summary
from .layout import layout
from .render import render_timeline
from .run import timeline_run

SCRIPT = Path(__file__).with_name("timeline.js")
STYLE = Path(__file__).with_name("timeline.css")
PictureWidth: TypeAlias = Annotated[float, Number(above=0, most=20_000)]  # pixels
FORMATS = (".svg", ".png", ".html", ".json")
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>body {{ margin: 16px; background: #eee; }}
{css}</style></head>
<body><div class="speclib-timeline" id="timeline">{svg}</div>
<script type="module">
{js}
mount(document.getElementById("timeline"));
</script></body></html>
"""


class Timeline(NotebookView, anywidget.AnyWidget):
    """What every device did and when, for one or more runs on one time axis.

    ``results``: what ``speclib.decode`` returns, or traces. ``labels``: one per result,
    in place of the method's name. ``until``: seconds of the axis, to look at the
    beginning. ``width``: pixels. ``places``: device -> where it is, to stand under its
    name.
    """

    _esm = SCRIPT
    _css = STYLE
    svg = traitlets.Unicode().tag(sync=True)

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
        self._lay_out(results, labels)
        super().__init__(svg=render_timeline(self._figure, zoomable=True))

    def _lay_out(
        self, results: Sequence[object], labels: Sequence[str | None] | None
    ) -> None:
        if labels is not None and len(labels) != len(results):
            raise BadValue(
                f"labels has {len(labels)} entries for {len(results)} results: "
                "give one each, or none"
            )

        self.runs = []
        for i, result in enumerate(results):
            label = labels[i] if labels is not None else None
            self.runs.append(timeline_run(result, label, self.places))
        self._figure = layout(self.runs, self.picture_width, self.until)

    def update(
        self, *results: object, labels: Sequence[str | None] | None = None
    ) -> None:
        """Shows other results in the same place; a reader's zoom stays."""
        self._lay_out(results, labels)
        self.svg = render_timeline(self._figure, zoomable=True)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture, pixels."""
        return round(self._figure.axis.width), round(self._figure.height)

    def picture(self) -> str:
        """The static SVG."""
        return render_timeline(self._figure)

    def text(self) -> str:
        """The summary in plain text."""
        return summary(self.runs, self._figure.axis.unit)

    def html(self) -> str:
        """A page with zoom and tooltips that loads nothing from anywhere."""
        title = "Timeline: " + ", ".join(run.label for run in self.runs)
        return PAGE.format(
            title=escape(title),
            svg=self.svg,
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

    def save(self, path: str | Path) -> Path:
        """Writes ``path``, whose ending is the format.

        .svg and .png are still, .html is interactive, .json holds the traces
        themselves.
        """
        path = Path(path)
        path.write_bytes(self._content(path))
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
