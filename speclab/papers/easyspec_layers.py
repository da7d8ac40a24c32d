"""EasySpec's tables about the layers of a draft model.

The tables list which layers share an input, and how similar fuzzy hidden states (from a
forward pass in which layers share inputs) are to exact ones (from a pass in which none
do). This module runs no network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from speclab.runs.values import Value, ValuesStep, values_of
from speclib.data.layer_groups import group_layers

from .cell_errors import naming_cell
from .numbers import mean_number
from .table_cells import PROMPTS
from .table_result import TableResult

NEEDED_SETTINGS = {"pair", "state", "lp"}  # a cell with these has a similarity


def add_layer_groups(result: TableResult) -> None:
    """Adds the group sizes: a row per draft and LP size, a column per group."""
    table = result.table
    for row in table.row_labels:
        settings = table.settings_of(row, "")
        with naming_cell(table, row, "*"):
            groups = group_layers(settings["layers"], settings["lp"])
        for number, group in enumerate(groups, 1):
            result.add(
                row,
                str(number),
                "virtual",
                float(len(group)),
                setup=f"{settings['layers']} layers",
                n=1,
                source="speclib/data/layer_groups.py",
                note="the rule that drafting uses",
            )


def add_layer_similarities(result: TableResult, values: Sequence[Value]) -> None:
    """Adds mean similarities over layers and texts, by LP size and state.

    Each value is for one layer in one text, under the key "<state>, layer <number>".
    """
    table = result.table
    for row in table.row_labels:
        for column in table.column_labels:
            settings = table.settings_of(row, column, "measured")
            if not settings.keys() >= NEEDED_SETTINGS:
                continue
            found = values_of(asked_of(settings), values, result.machine)
            if found is None:
                result.left_out.add((row, column, "measured"))
                continue
            of_state = [
                by_text
                for place, by_text in found.by_place.items()
                if place.rpartition(", ")[0] == settings["state"]
            ]
            states = np.array(of_state).T  # [texts, layers]
            result.add(
                row,
                column,
                "measured",
                mean_number(states.mean(1)),
                setup=f"{settings['pair']}@{found.machine}/float32/1",
                source=f"measured {found.date}",
                note=_note(settings, states.mean(0)),
            )


def asked_of(settings: Mapping[str, Any]) -> ValuesStep:
    """The measurement for a cell: all states of a pair's draft, per text."""
    texts = max(1, round(PROMPTS * settings.get("share", 1)))
    what = tuple((name, settings[name]) for name in ("task", "length", "lp"))
    return ValuesStep("layer similarity", settings["pair"], what, texts)


def _note(settings: dict[str, Any], by_layer: np.ndarray) -> str:
    """Details that the mean over ``by_layer`` hides: the minimum, and shared inputs."""
    note = (
        f"mean over {len(by_layer)} layers, as trained, and texts of "
        f"{settings['length']} tokens; lowest {by_layer.min():.3f} in layer "
        f"{by_layer.argmin()}"
    )
    given_another_input: list[int] = []
    for group in group_layers(len(by_layer), settings["lp"]):
        given_another_input += group[1:]
    if given_another_input:
        mean = fmean(by_layer[given_another_input])
        note += f"; of the layers that are given another's input {mean:.3f}"
    return note
