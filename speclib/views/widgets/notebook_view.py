"""What all interactive views have in common: how a notebook displays them.

A saved notebook loses its widgets, and a notebook that is not trusted shows none. So
every view gives the notebook three forms of itself at once: the widget, a PNG and plain
text. The notebook displays the richest form that it can. Knows no data.
"""

from __future__ import annotations

import ipywidgets as widgets

from speclib.views.display import notebook_forms

from .controls import side_by_side


class NotebookView:
    """A widget that can also be displayed as a still picture or as words.

    A subclass is a widget too, and defines ``size``, ``picture()`` and ``text()``.
    """

    model_id: str  # the widget's, by which the notebook finds it

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the still picture, pixels."""
        raise NotImplementedError

    def picture(self) -> str:
        """SVG of what is displayed where no widget can run."""
        raise NotImplementedError

    def text(self) -> str:
        """The view in words."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **_: object) -> tuple[dict, dict]:
        """The three forms by MIME type, and the size at which the PNG is displayed."""
        forms, metadata = notebook_forms(self.picture(), self.size, self.text())
        forms["application/vnd.jupyter.widget-view+json"] = {
            "version_major": 2,
            "version_minor": 0,
            "model_id": self.model_id,
        }
        return forms, metadata


class PictureWithSliders(NotebookView, widgets.VBox):
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
    def values(self) -> dict:
        """What the sliders say now, by name."""
        return {name: slider.value for name, slider in self.controls.items()}

    def _render_again(self, _change: object) -> None:
        self.image.value = self.picture()
