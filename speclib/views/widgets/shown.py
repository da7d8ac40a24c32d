"""What interactive views share: how a notebook shows them, and sliders above one drawing.

Widgets are lost when a notebook is saved, and untrusted notebooks show none; so one MIME bundle
carries the widget, a PNG and plain text. Knows no data.
"""

from __future__ import annotations

from base64 import b64encode

import ipywidgets as widgets

from speclib.views.display import png

from .controls import box


class Shown:
    """A widget that is also a still picture and words: a subclass has ``text()``, and ``size``
    (pixels) and ``picture()`` (SVG), or another ``still`` that has these two."""

    @property
    def still(self):
        return self

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **_) -> tuple[dict, dict]:
        """MIME data and metadata; frontends take the richest form they trust."""
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        image = b64encode(png(self.still.picture(), 1.5)).decode()
        width, height = self.still.size
        return (
            {
                "text/plain": self.text(),
                "image/png": image,
                "application/vnd.jupyter.widget-view+json": view,
            },
            {"image/png": {"width": width, "height": height}},
        )


class Following(Shown, widgets.VBox):
    """Sliders, by the name of what they set, above a picture drawn anew while one moves."""

    def __init__(self, controls: dict[str, widgets.Widget]):
        self.controls = controls
        self.map = widgets.HTML(self.picture())
        for slider in controls.values():
            slider.observe(self._moved, "value")
        super().__init__([box(controls), self.map])

    @property
    def values(self) -> dict:
        return {name: slider.value for name, slider in self.controls.items()}

    def _moved(self, _) -> None:
        self.map.value = self.picture()
