"""Sets an explorer's sliders from outside, with buttons in the text and with a key."""

from __future__ import annotations

from pathlib import Path

import anywidget
import traitlets

from speclib.drawing.timeline.widget import PAGE_SCRIPT

SCRIPT = Path(__file__).with_name("outside_controls.js")
STYLE = Path(__file__).with_name("outside_controls.css")


class OutsideControls(anywidget.AnyWidget):
    """Listens to the page around an explorer, and shows nothing.

    ``settable``: the names of the values that a button may set. ``asked_values``: the
    last clicked button's values. ``asked_redraws``: how often a reader pressed R.
    """

    _esm = PAGE_SCRIPT.read_text() + SCRIPT.read_text()
    _css = STYLE.read_text()
    settable: traitlets.List[str] = traitlets.List().tag(sync=True)
    asked_values = traitlets.Dict().tag(sync=True)
    asked_redraws = traitlets.Int(0).tag(sync=True)
