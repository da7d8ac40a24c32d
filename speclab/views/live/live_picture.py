"""A picture that Python draws and a reader takes hold of, in a notebook.

The script ``live_picture.js`` shows the SVG, and sends what a reader does: drags of
elements with a ``data-handle``, keys, and how wide the page is. A subclass says what
that means. Without a notebook the picture stands still. Knows no data.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from speclib.drawing import display

PAGE_SCRIPT = Path(display.__file__).with_name("room.js")
SCRIPT = Path(__file__).with_name("live_picture.js")
STYLE = Path(__file__).with_name("live_picture.css")
STILL_WIDTH = 900.0  # pixels of the picture where no page says how wide it is
LEAST_WIDTH, MOST_WIDTH = 480.0, 1100.0


class LivePicture(display.NotebookView, anywidget.AnyWidget):
    """An SVG with handles.

    A subclass defines ``called``, its name; ``drawing(width)``, the SVG; ``height``,
    pixels; ``text()``, the picture in words; ``sentence()``, what a screen reader says
    when it has changed; and what it makes of ``on_drag`` and ``on_key``.
    """

    called = "picture"

    _esm = PAGE_SCRIPT.read_text() + SCRIPT.read_text()
    _css = STYLE.read_text()
    svg = traitlets.Unicode().tag(sync=True)
    spoken = traitlets.Unicode().tag(sync=True)
    page_width = traitlets.Int(0).tag(sync=True)  # pixels; 0 where it is not known
    name = traitlets.Unicode().tag(sync=True)  # what a screen reader calls it
    # What a reader did since the last time: {"count": its number, "actions": [...]}.
    happened = traitlets.Dict().tag(sync=True)
    answered = traitlets.Int(0).tag(sync=True)  # the number of what was done last

    def __init__(self) -> None:
        super().__init__(name=self.called)
        self.draw()
        self.observe(self._on_page_width, "page_width")
        self.observe(self._on_happened, "happened")

    # -- what a subclass defines -------------------------------------------------------
    def drawing(self, width: float) -> str:
        """SVG, ``width`` pixels wide."""
        raise NotImplementedError

    def sentence(self) -> str:
        """What is to be seen now, in one or two sentences."""
        raise NotImplementedError

    def on_drag(self, handle: str, x: float, y: float) -> None:
        """A reader drags ``handle`` to a point of the picture, pixels."""

    def on_key(self, handle: str, key: str) -> None:
        """A reader pressed a key, on ``handle`` or, if that is empty, on the whole."""

    # -- drawing -----------------------------------------------------------------------
    def draw(self) -> None:
        """Draws what is to be seen now, and says it."""
        self.svg = self.drawing(self.width)
        self.spoken = self.sentence()

    @property
    def width(self) -> float:
        """Pixels of the picture on the page."""
        if not self.page_width:
            return STILL_WIDTH
        return min(max(float(self.page_width), LEAST_WIDTH), MOST_WIDTH)

    def picture(self) -> str:
        return self.drawing(STILL_WIDTH)

    # -- what a reader does ------------------------------------------------------------
    def _on_page_width(self, _change: object) -> None:
        self.draw()

    def _on_happened(self, _change: object) -> None:
        try:
            with self.hold_trait_notifications():  # what moves often is drawn once
                for action in self.happened.get("actions", ()):
                    self._do(action)
            self.draw()
        finally:
            self.answered = self.happened.get("count", 0)

    def _do(self, action: dict[str, Any]) -> None:
        """One drag, or a key that was pressed so many times."""
        if action["kind"] == "drag":
            self.on_drag(action["handle"], action["x"], action["y"])
        elif action["kind"] == "key":
            for _ in range(action["times"]):
                self.on_key(action["handle"], action["key"])


class WithSentence(display.NotebookView, widgets.VBox):  # type: ignore[misc]  # untyped
    """Controls above a live picture, and below it what has just been seen, in words."""

    def __init__(self, controls: widgets.Widget, live: LivePicture):
        self.live = live
        self.words = widgets.HTML()
        live.observe(self._say, "spoken")
        self._say(None)
        super().__init__([controls, live, self.words])

    def _say(self, _change: object) -> None:
        words = escape(self.live.spoken)
        self.words.value = f'<span style="font-size: 15px">{words}</span>'

    @property
    def size(self) -> tuple[int, int]:
        return self.live.size

    def picture(self) -> str:
        return self.live.picture()

    def text(self) -> str:
        return self.live.text()
