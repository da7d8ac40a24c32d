"""A picture in a notebook that Python draws, and that a reader can drag.

The script ``live_picture.js`` shows the SVG. It reports drags of elements with a
``data-handle``, key presses, and the width of the page. A subclass defines how the
picture reacts. Outside a notebook the picture is static. This module
does not depend on what is drawn.
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
STILL_WIDTH = 900.0  # in pixels, while the page's width is unknown
LEAST_WIDTH, MOST_WIDTH = 480.0, 1100.0


class LivePicture(display.NotebookView, anywidget.AnyWidget):
    """An SVG picture, with handles that a reader can drag.

    A subclass defines ``called``, its name; ``drawing(width)``, the SVG; ``height``,
    in pixels; ``text()``, the picture in words; ``sentence()``, which a screen reader
    reads after a change; and ``on_drag`` and ``on_key``.
    """

    called = "picture"

    _esm = PAGE_SCRIPT.read_text() + SCRIPT.read_text()
    _css = STYLE.read_text()
    svg = traitlets.Unicode().tag(sync=True)
    spoken = traitlets.Unicode().tag(sync=True)
    page_width = traitlets.Int(0).tag(sync=True)  # pixels; 0 if unknown
    name = traitlets.Unicode().tag(sync=True)  # for screen readers
    # The reader's latest actions: {"count": number of the message, "actions": [...]}.
    happened = traitlets.Dict().tag(sync=True)
    answered = traitlets.Int(0).tag(sync=True)  # number of the last handled message

    def __init__(self) -> None:
        super().__init__(name=self.called)
        self.draw()
        self.observe(self._on_page_width, "page_width")
        self.observe(self._on_happened, "happened")

    # -- what a subclass defines -------------------------------------------------------
    def drawing(self, width: float) -> str:
        """The picture's SVG, ``width`` pixels wide."""
        raise NotImplementedError

    def sentence(self) -> str:
        """One or two sentences about the picture's current state."""
        raise NotImplementedError

    def on_drag(self, handle: str, x: float, y: float) -> None:
        """Called when a reader drags ``handle`` to (x, y) in the picture, in pixels."""

    def on_key(self, handle: str, key: str) -> None:
        """Called for a key press on ``handle``, or on the whole picture if it is ""."""

    # -- drawing -----------------------------------------------------------------------
    def draw(self) -> None:
        """Draws the current state, and updates the sentence."""
        self.svg = self.drawing(self.width)
        self.spoken = self.sentence()

    @property
    def width(self) -> float:
        """The picture's width on the page, in pixels."""
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
            with self.hold_trait_notifications():  # draws once for several actions
                for action in self.happened.get("actions", ()):
                    self._do(action)
            self.draw()
        finally:
            self.answered = self.happened.get("count", 0)

    def _do(self, action: dict[str, Any]) -> None:
        """Handles a drag, or one or several presses of a key."""
        if action["kind"] == "drag":
            self.on_drag(action["handle"], action["x"], action["y"])
        elif action["kind"] == "key":
            for _ in range(action["times"]):
                self.on_key(action["handle"], action["key"])


class WithSentence(display.NotebookView, widgets.VBox):  # type: ignore[misc]  # untyped
    """Controls above a live picture, and a sentence about it below."""

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
