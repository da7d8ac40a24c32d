"""PEARL's table of the time to move a draft's KV cache between devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from speclab.runs.values import Value, ValuesStep, values_of

from .numbers import mean_number
from .paper_schema import Table
from .table_result import TableResult

REPEATS = 25


def add_cache_transport(result: TableResult, values: Sequence[Value]) -> None:
    """Adds the mean seconds per move, with one column per number of tokens."""
    table = result.table
    (row,) = table.row_labels
    settings = table.settings_of(row, "", "measured")
    asked = asked_of(settings, tokens_of(table))
    found = values_of(asked, values, result.machine)
    for column, tokens in zip(table.column_labels, tokens_of(table), strict=True):
        if found is None:
            result.left_out.add((row, column, "measured"))
            continue
        seconds = found.by_place[f"{tokens} tokens"]
        result.add(
            row,
            column,
            "measured",
            mean_number(seconds),
            setup=f"{settings['pair']}@{found.machine}/float32/1",
            source=f"measured {found.date}",
            note=f"mean of {len(seconds)} moves between two processes on one machine",
        )


def tokens_of(table: Table) -> tuple[int, ...]:
    """The number of tokens in the cache, column by column."""
    (row,) = table.row_labels
    return tuple(
        int(table.settings_of(row, column)["tokens"]) for column in table.column_labels
    )


def asked_of(settings: Mapping[str, Any], lengths: tuple[int, ...]) -> ValuesStep:
    """The measurement: ``REPEATS`` moves of a cache of each length."""
    return ValuesStep(
        "cache transport", settings["pair"], (("lengths", lengths),), REPEATS
    )
