"""Sliders and dropdowns, each labelled with the value that it sets.

This module depends neither on pictures nor on how a value is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import ipywidgets as widgets

from speclib.errors import BadValue, unknown_name

# What ``control`` accepts: numbers, names, names with values, or a widget.
ControlSpec: TypeAlias = Sequence[Any] | Mapping[str, Any] | widgets.Widget

LABELS = {
    "gamma": "γ (draft length)",
    "c": "c (cost ratio)",
    "alpha": "α (acceptance)",
    "servers": "target servers",
    "cancel": "cancellation",
    "k": "k (sequences)",
    "doubt": "draft's doubt",
    "first": "first budget",
    "lp": "N (layers at once)",
    "fuzzy": "kept per layer",
    "latency": "clock",
    "calibrate": "calibration",
    "share": "attention's share",
    "gather": "gather (ms)",
    "width": "tree width",
    "network": "message (s)",
}
LABEL_STYLE = {"description_width": "initial"}  # as wide as the label
SHOWN = 2  # controls in a toolbar that are always visible
ROW_LAYOUT = {"flex_flow": "row wrap"}
CONTROL_LAYOUT = {"width": "290px"}
BUTTON_LAYOUT = {"width": "130px"}


def control(name: str, spec: ControlSpec) -> widgets.Widget:
    """Returns a control for the value ``name``.

    ``spec`` is one of:

    - (low, high, step, value): a slider, over integers if all four are integers;
    - a tuple of names, or a dict from names to values: a dropdown;
    - a widget: returned unchanged.

    Raises SpeclibError for anything else.
    """
    if isinstance(spec, widgets.Widget):
        return spec
    if isinstance(spec, dict):
        return _dropdown(name, list(spec.items()))
    if spec and all(isinstance(part, str) for part in spec):
        return _dropdown(name, list(spec))
    if len(spec) != 4:
        raise BadValue(
            f"control {name!r} is {spec!r}: give (low, high, step, value), a tuple "
            "of names, a dict of names and values, or a widget"
        )
    return _slider(name, *spec)


def slider_over(
    name: str, options: Sequence[object], value: object
) -> widgets.SelectionSlider:
    """A slider over ``options`` that starts at ``value``."""
    return widgets.SelectionSlider(
        options=options,
        value=value,
        description=LABELS.get(name, name),
        style=LABEL_STYLE,
        layout=CONTROL_LAYOUT,
    )


def choose_option(name: str, chooser: widgets.Widget, label: object) -> None:
    """Chooses the option with this label in a dropdown or a slider over values.

    Raises SpeclibError if there is no such option.
    """
    labels = [str(option) for option in chooser._options_labels]
    if str(label) not in labels:
        raise unknown_name(f"no {name} {label!r}", str(label), labels)
    chooser.index = labels.index(str(label))


def side_by_side(controls: Mapping[str, widgets.Widget]) -> widgets.Box:
    """The controls in a row, which wraps if they do not fit."""
    return widgets.Box(list(controls.values()), layout=ROW_LAYOUT)


def toolbar(
    controls: Mapping[str, widgets.Widget], buttons: Sequence[widgets.Widget] = ()
) -> widgets.Box:
    """The first two controls and the buttons in a row; the others fold out."""
    all_controls = list(controls.values())
    first_row = [*all_controls[:SHOWN], *buttons]
    rows = [first_row]
    if all_controls[SHOWN:]:
        others = widgets.Box(all_controls[SHOWN:], layout=ROW_LAYOUT)
        first_row.append(_fold(others))
        rows.append([others])
    bar = widgets.VBox([widgets.Box(row, layout=ROW_LAYOUT) for row in rows])
    bar.add_class("speclib-toolbar")
    return bar


def _fold(others: widgets.Box) -> widgets.ToggleButton:
    """Hides ``others``, and returns the button that shows them."""
    button = widgets.ToggleButton(
        description="More", icon="sliders", layout=BUTTON_LAYOUT
    )

    def show_or_hide(_change: object) -> None:
        others.layout.display = None if button.value else "none"

    button.observe(show_or_hide, "value")
    show_or_hide(None)
    return button


def settings_in_words(values: Mapping[str, object]) -> str:
    """``values`` as "gamma = 3, c = 5.0"."""
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _dropdown(name: str, options: Sequence[object]) -> widgets.Dropdown:
    # Without an index, an option whose value is None would leave the dropdown blank.
    return widgets.Dropdown(
        options=options,
        index=0,
        description=LABELS.get(name, name),
        style=LABEL_STYLE,
        layout=CONTROL_LAYOUT,
    )


def _slider(
    name: str, low: float, high: float, step: float, value: float
) -> widgets.IntSlider | widgets.FloatSlider:
    is_whole = all(isinstance(number, int) for number in (low, high, step, value))
    slider_class = widgets.IntSlider if is_whole else widgets.FloatSlider
    return slider_class(
        min=low,
        max=high,
        step=step,
        value=value,
        description=LABELS.get(name, name),
        style=LABEL_STYLE,
        continuous_update=True,
        layout=CONTROL_LAYOUT,
    )
