"""Sliders above one picture: what the views with a single picture have in common.

Knows no data.
"""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from speclib.drawing.display import NotebookView

from .controls import side_by_side


class PictureWithSliders(NotebookView, widgets.VBox):  # type: ignore[misc]  # untyped
    """Sliders above one picture, which is rendered again whenever a slider moves.

    ``controls``: the sliders by the name of the value that they set. A subclass defines
    ``size``, ``picture()`` and ``text()``, which read ``values``.
    """

    def __init__(self, controls: dict[str, widgets.Widget]):
        self.controls = controls
        self.image = widgets.HTML(self.picture())
        for slider in controls.values():
            slider.observe(self._render_again, "value")
        super().__init__([side_by_side(controls), self.image])

    @property
    def values(self) -> dict[str, Any]:
        """What the sliders say now, by name."""
        return {name: slider.value for name, slider in self.controls.items()}

    def _render_again(self, _change: object) -> None:
        self.image.value = self.picture()
