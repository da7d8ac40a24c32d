"""The base of views that have sliders above a single picture.

This module does not depend on what is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets

from speclab.views.shapes import Still
from speclib.drawing.display import NotebookView
from speclib.errors import BadValue

from .controls import settings_in_words, side_by_side, slider_over


class PictureWithSliders(NotebookView, widgets.VBox):  # type: ignore[misc]  # untyped
    """Sliders above one picture that follows them.

    ``controls``: name of a value -> its slider. A subclass defines ``size``,
    ``picture()`` and ``text()``, which read ``values``.
    """

    def __init__(self, controls: dict[str, widgets.Widget]):
        self.controls = controls
        self.image = widgets.HTML(self.picture())
        for slider in controls.values():
            slider.observe(self._render_again, "value")
        super().__init__([side_by_side(controls), self.image])

    @property
    def values(self) -> dict[str, Any]:
        """The sliders' current values, by name."""
        return {name: slider.value for name, slider in self.controls.items()}

    def _render_again(self, _change: object) -> None:
        self.image.value = self.picture()


class PictureOfEachValue(PictureWithSliders):
    """A slider above the picture that belongs to its value.

    ``pictures``: value -> picture. ``first``: {slider name: first value}. Raises
    BadValue for a first value without a picture.
    """

    def __init__(self, pictures: Mapping[Any, Still], first: Mapping[str, Any]):
        if len(first) != 1:
            raise BadValue(f"first is {first!r}: give {{slider name: first value}}")
        ((self._name, value),) = first.items()
        if value not in pictures:
            raise BadValue(
                f"{self._name} is {value!r}: give one of "
                f"{', '.join(map(str, pictures)) or 'at least one picture'}"
            )
        self.pictures = pictures
        super().__init__({self._name: slider_over(self._name, list(pictures), value)})

    @property
    def shown(self) -> Still:
        """The picture for the slider's value."""
        return self.pictures[self.values[self._name]]

    @property
    def size(self) -> tuple[int, int]:
        return self.shown.size

    def picture(self) -> str:
        return self.shown.picture()

    def text(self) -> str:
        return f"curves at {settings_in_words(self.values)}\n{self.shown!r}"
