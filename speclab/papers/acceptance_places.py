"""A table of acceptance rates by position in the window.

A row's ``pair`` names the models, and a column's label is the position. A cell is the
probability that the draft token at this position is accepted, given that all earlier
ones are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from speclab.runs.values import Value, ValuesStep, values_of

from .numbers import mean_number
from .table_cells import PROMPTS
from .table_result import TableResult


def add_acceptance_places(result: TableResult, values: Sequence[Value]) -> None:
    """Adds each probability as the mean, over texts, of a text's accepted share."""
    table = result.table
    for row in table.row_labels:
        settings = table.settings_of(row, "", "measured")
        found = values_of(asked_of(settings), values, result.machine)
        for column in table.column_labels:
            if found is None:
                result.left_out.add((row, column, "measured"))
                continue
            shares = found.by_place.get(f"place {column}", [])
            if shares:
                result.add(
                    row,
                    column,
                    "measured",
                    mean_number(shares),
                    setup=f"{settings['pair']}@{found.machine}/float32/1",
                    source=f"measured {found.date}",
                    note=f"gamma {settings['gamma']}; the models as trained, greedy",
                )


def asked_of(settings: Mapping[str, Any]) -> ValuesStep:
    """The measurement for a row: the accepted share at each position, per text."""
    texts = max(1, round(PROMPTS * settings.get("share", 1)))
    what = (
        ("task", settings["task"]),
        ("gamma", settings["gamma"]),
        ("tokens", settings["max_new_tokens"]),
    )
    return ValuesStep("acceptance by place", settings["pair"], what, texts)
