"""What moves a view: sliders and dropdowns by the name of what they set.

Knows no picture, and not what a value does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import ipywidgets as widgets

from speclib.errors import SpeclibError

SYMBOLS = {
    "gamma": "γ (draft length)",
    "c": "c (cost ratio)",
    "alpha": "α (acceptance)",
    "servers": "target servers",
    "cancel": "stale work ends",
    "k": "k (sequences)",
    "doubt": "doubt (of the draft)",
    "first": "first budget",
    "lp": "N (layers at once)",
    "fuzzy": "kept per layer",
    "latency": "clock",
    "calibrate": "calibration",
    "share": "attention's share",
    "gather": "gather, ms",
    "width": "tree width",
}


def control(name: str, spec) -> widgets.Widget:
    """(low, high, step, value) -> a slider; names, or a dict of names and values -> a dropdown; a
    widget -> itself."""
    style, label = {"description_width": "120px"}, SYMBOLS.get(name, name)
    if isinstance(spec, widgets.Widget):
        return spec
    if isinstance(spec, dict) or spec and all(isinstance(s, str) for s in spec):
        options = list(spec.items()) if isinstance(spec, dict) else list(spec)
        return widgets.Dropdown(options=options, description=label, style=style)
    if len(spec) != 4:
        raise SpeclibError(
            f"control {name!r} is {spec!r}: give (low, high, step, value), a tuple "
            "of names, a dict of names and values, or a widget"
        )
    low, high, step, value = spec
    kind = (
        widgets.IntSlider
        if all(isinstance(s, int) for s in spec)
        else widgets.FloatSlider
    )
    return kind(
        min=low,
        max=high,
        step=step,
        value=value,
        description=label,
        style=style,
        continuous_update=True,
        layout={"width": "340px"},
    )


def stored(made: Mapping, first: dict) -> tuple[Callable, dict]:
    """Results by value, and {name: the value shown first} -> what an Explorer is made of."""
    ((name, value),) = first.items()
    slider = widgets.SelectionSlider(
        options=list(made),
        value=value,
        description=SYMBOLS.get(name, name),
        style={"description_width": "120px"},
        layout={"width": "340px"},
    )

    def look_up(**values):
        return made[values[name]]

    return look_up, {name: slider}


def box(controls: dict) -> widgets.Box:
    """The controls side by side, as many as fit."""
    return widgets.Box(list(controls.values()), layout={"flex_flow": "row wrap"})
