"""The timeline as something to look at: a widget in notebooks, a picture everywhere else.

The picture itself is made by ``layout`` and ``svg``.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

import anywidget
import traitlets

from speclib.errors import SpeclibError
from speclib.views.display import png
from speclib.views.widgets.notebook_view import NotebookView

from .facts import run_of, summary
from .layout import layout
from .svg import markup

HERE = Path(__file__).parent
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

    ``results``: what ``speclib.decode`` returns, or traces. ``labels``: one per result, instead of
    the method's name. ``until``: seconds of the axis, to look at the beginning. ``width``: pixels.
    ``places``: device -> where it is, to stand under its name.
    """

    _esm = HERE / "timeline.js"
    _css = HERE / "timeline.css"
    svg = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        *results,
        labels=None,
        until: float | None = None,
        width: float = 1100,
        places: dict[str, str] | None = None,
    ):
        self.until, self.width_px, self.places = until, width, places
        self._arrange(results, labels)
        super().__init__(svg=markup(self._figure, zoomable=True))

    def _arrange(self, results, labels) -> None:
        if labels is not None and len(labels) != len(results):
            raise SpeclibError(
                f"labels has {len(labels)} entries for {len(results)} results: "
                "give one each, or none"
            )
        self.runs = [
            run_of(r, label, self.places)
            for r, label in zip(results, labels or [None] * len(results), strict=True)
        ]
        self._figure = layout(self.runs, self.width_px, self.until)

    def update(self, *results, labels=None) -> None:
        """Shows other results in the same place; a reader's zoom stays."""
        self._arrange(results, labels)
        self.svg = markup(self._figure, zoomable=True)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture, pixels."""
        return round(self._figure.frame.width), round(self._figure.height)

    def picture(self) -> str:
        """The static SVG."""
        return markup(self._figure)

    def text(self) -> str:
        return summary(self.runs, self._figure.frame.unit)

    def html(self) -> str:
        """A page of its own, with zoom and tooltips, that loads nothing from anywhere."""
        title = "Timeline: " + ", ".join(run.label for run in self.runs)
        return PAGE.format(
            title=escape(title),
            svg=self.svg,
            js=(HERE / "timeline.js").read_text(),
            css=(HERE / "timeline.css").read_text(),
        )

    def save(self, path: str | Path) -> Path:
        """Writes ``path``: .svg and .png still, .html interactive, .json the traces themselves."""
        path = Path(path)
        makers = {
            ".svg": lambda: self.picture().encode(),
            ".png": lambda: png(self.picture()),
            ".html": lambda: self.html().encode(),
            ".json": lambda: self.json().encode(),
        }
        if path.suffix not in makers:
            raise SpeclibError(
                f"cannot save a timeline as {path.name!r}: end the name in "
                f"{', '.join(makers)}"
            )
        path.write_bytes(makers[path.suffix]())
        return path

    def json(self) -> str:
        """A list of {"label", "note", "trace"}; ``Trace.from_json`` reads each trace's text."""
        return json.dumps(
            [
                {
                    "label": run.label,
                    "note": run.note,
                    "trace": json.loads(run.trace.to_json()),
                }
                for run in self.runs
            ]
        )


def timeline(
    *results,
    labels=None,
    until: float | None = None,
    width: float = 1100,
    places: dict[str, str] | None = None,
) -> Timeline:
    """Shows ``results`` (or traces) stacked on one time axis; see ``Timeline``. ``.save(path)``."""
    return Timeline(*results, labels=labels, until=until, width=width, places=places)
