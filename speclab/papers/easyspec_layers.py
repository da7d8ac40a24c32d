"""EasySpec's tables about the inside of a draft model.

They say which layers share an input, and how near fuzzy states are to exact ones: those
of a pass in which layers share inputs to those of a pass in which none do. Knows no
network.
"""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np

from speclab.experiment.engines import similarity
from speclib import machine
from speclib.errors import SpeclibError
from speclib.theory.layer_groups import group_layers

from .bootstrap import Resamples, draw_resamples, measured_once
from .cell_errors import naming_cell
from .estimates import Estimate
from .table_result import TableResult

NEEDED_SETTINGS = {"pair", "state", "lp"}  # of a cell that has a similarity


def add_layer_groups(result: TableResult) -> None:
    """Adds the sizes of the groups: a row per draft and LP size, a column per group."""
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
                source="speclib/theory/layer_groups.py",
                note="the rule that drafting uses",
            )


def add_layer_similarities(result: TableResult) -> None:
    """Adds similarities, means over layers and texts, by LP size and state.

    A cell that fails leaves the rest standing and is named in ``result.errors``.
    """
    table = result.table
    for row in table.row_labels:
        for column in table.column_labels:
            settings = table.settings_of(row, column, "measured")
            if not settings.keys() >= NEEDED_SETTINGS:
                continue
            try:
                _add_similarity(result, row, column, settings)
            except (SpeclibError, ImportError) as error:
                result.errors[f"{table.item}, {row}, {column}"] = str(error)


def _add_similarity(
    result: TableResult, row: str, column: str, settings: dict[str, Any]
) -> None:
    n = max(1, round(result.profile.prompts * settings.get("share", 1)))
    by_text = similarity.draft_similarities(
        settings["pair"], settings["task"], settings["length"], n, settings["lp"]
    )
    states = np.array([text[settings["state"]] for text in by_text])  # [texts, layers]
    value = float(states.mean())
    samples = _resample_mean(states.mean(1))
    result.samples[row, column, "measured"] = samples
    result.add(
        row,
        column,
        "measured",
        Estimate(value, samples),
        setup=f"{settings['pair']}@{machine.name()}/float32/1",
        n=n,
        source="measured",
        note=_note(settings, states.mean(0)),
    )


def _resample_mean(values: np.ndarray) -> Resamples:
    """The mean of ``values`` [n] in each resample."""
    n = len(values)
    if n == 1:
        return measured_once(float(values[0]))
    return Resamples(draw_resamples(n) @ values / n, requests=n)


def _note(settings: dict[str, Any], by_layer: np.ndarray) -> str:
    """What the mean over ``by_layer`` hides: its minimum, and layers that share."""
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
