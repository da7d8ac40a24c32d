"""A trail of clicks: steps of which a reader unfolds one after the other.

A step shows a table, a text, or a view of its own. Knows nothing of what they say.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import ipywidgets as widgets

from speclab.views.shapes import start_that_fits
from speclib.drawing.display import NotebookView
from speclib.drawing.svg import INK, PAD, card, text_at
from speclib.drawing.text_in_pictures import one_line, text_width
from speclib.errors import BadValue

# Pixels of the still picture, of a step in it, and of the letters of its name.
WIDTH, LINE, NAME_SIZE = 900, 26, 16
TEXT_STYLE = "white-space: pre-wrap; font-size: 13px; max-height: 24em; overflow: auto"


class Trail(NotebookView, widgets.Accordion):  # type: ignore[misc]  # untyped
    """The steps, in their order, one of them unfolded.

    ``steps``: a step's name -> a table (a DataFrame), a text, or a widget.
    """

    def __init__(self, steps: Mapping[str, Any]):
        if not steps:
            raise BadValue("a trail of nothing: give at least one step")
        self.steps = dict(steps)
        super().__init__(
            children=[_widget_of(content) for content in steps.values()],
            titles=list(steps),
            selected_index=0,
        )

    # -- where there are no widgets ----------------------------------------------------
    @property
    def size(self) -> tuple[int, int]:
        return WIDTH, 2 * PAD + LINE * len(self.steps)

    def picture(self) -> str:
        lines = []
        left = PAD + max(text_width(name, NAME_SIZE) for name in self.steps) + 24
        for number, (name, content) in enumerate(self.steps.items()):
            y = PAD + LINE * number + 18
            words = start_that_fits(_in_a_line(content), WIDTH - PAD - left)
            lines.append(text_at(name, PAD, y, fill=INK, font_size=NAME_SIZE))
            lines.append(text_at(words, left, y))
        return card("".join(lines), *self.size)

    def text(self) -> str:
        parts = []
        for name, content in self.steps.items():
            parts.append(f"-- {name}\n{content}")
        return "\n".join(parts)


def _in_a_line(content: Any) -> str:
    """What a step shows, in as many words as stand on a line."""
    if hasattr(content, "columns"):
        return f"{len(content)} rows: {', '.join(map(str, content.columns))}"
    text = content.text() if isinstance(content, NotebookView) else str(content)
    lines = [line for line in text.splitlines() if line.strip()]
    return one_line(lines[0]) if lines else ""


def _widget_of(content: Any) -> widgets.Widget:
    """What shows a step."""
    if isinstance(content, widgets.Widget):
        return content
    if hasattr(content, "to_html"):
        table = content.to_html(index=False, border=0)
        html = f'<div class="jp-RenderedHTMLCommon">{table}</div>'
        return widgets.HTML(html, layout={"overflow": "auto"})
    return widgets.HTML(f'<pre style="{TEXT_STYLE}">{escape(str(content))}</pre>')


trail = Trail  # as lessons call it
