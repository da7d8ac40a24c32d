"""EasySpec's items about the inside of a draft: which layers share an input, how near fuzzy states
are to exact ones. Adds their rows to a filled table; knows no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

import numpy as np

from speclib.errors import SpeclibError
from speclib.experiment import machine
from speclib.experiment.engines import similarity as states
from speclib.theory.layer_groups import grouped

from .statistics import RESAMPLES, interval


def draw(filled, kinds: Iterable[str]) -> None:
    """Adds what a table of groups or similarities asks for; to others nothing."""
    table = filled.table
    fills = {
        kind for kind in ("virtual", "measured") if table.paper.fills(table.item, kind)
    }
    if table.metric == "group_size" and "virtual" in fills:
        _groups(filled)
    if table.metric == "cosine_similarity" and "measured" in fills & {*kinds}:
        _similarities(filled)


def _groups(filled) -> None:
    """A row per draft and LP size, a column per group."""
    table = filled.table
    for row in table.row_labels:
        s = table.setting(row, "")
        for place, group in enumerate(grouped(s["layers"], s["lp"]), 1):
            filled.add(
                row,
                str(place),
                table.metric,
                table.unit,
                "virtual",
                f"{s['layers']} layers",
                float(len(group)),
                n=1,
                source="speclib/models/grouping.py",
                note="the rule that drafting uses",
            )


def _similarities(filled) -> None:
    """A row per LP size, a column per state of a draft; the mean over layers and texts."""
    table = filled.table
    n = max(1, round(filled.profile.prompts * table.settings.get("share", 1)))
    for row in table.row_labels:
        for column in table.column_labels:
            s = table.setting(row, column, "measured")
            if not {"pair", "state", "lp"} <= s.keys():
                continue
            try:
                found = states.draft_similarities(s["pair"], s["task"], s["length"], n, s["lp"])
            except (SpeclibError, ImportError) as error:
                filled.errors[f"{table.item}, {row}, {column}"] = str(error)
                continue
            layers = np.array([text[s["state"]] for text in found])  # [texts, layers]
            low, high = interval(_resampled(layers.mean(1)))
            filled.add(
                row,
                column,
                s["metric"],
                s["unit"],
                "measured",
                f"{s['pair']}@{machine.name()}/float32/1",
                float(layers.mean()),
                low,
                high,
                n,
                "measured",
                _note(s, layers.mean(0)),
            )


def _resampled(values: np.ndarray) -> np.ndarray | None:
    """Means of resamples of ``values`` [n]; None of one."""
    n = len(values)
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), RESAMPLES)
    return drawn @ values / n if n > 1 else None


def _note(s: dict, layers: np.ndarray) -> str:
    shared = [
        i
        for group in grouped(len(layers), s["lp"])
        if len(group) > 1
        for i in group[1:]
    ]
    return (
        f"mean over {len(layers)} layers, as trained, and texts of {s['length']} tokens; "
        f"lowest {layers.min():.3f} in layer {layers.argmin()}; of the layers that are given "
        f"another's input {fmean(layers[shared]):.3f}"
    )
