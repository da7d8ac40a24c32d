"""A table of how often drafts pass, by their place in the window.

A row's ``pair`` has the models, and a column is called by the place. What a cell says
is the chance that the draft of its place passes, where all drafts before it do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from speclab.experiment.engines import places
from speclib import machine
from speclib.errors import SpeclibError

from .bootstrap import Resamples, draw_resamples, measured_once
from .estimates import Estimate
from .table_result import TableResult


def add_acceptance_places(result: TableResult) -> None:
    """Adds the chances, row by row.

    A row that fails leaves the rest standing and is named in ``result.errors``.
    """
    table = result.table
    for row in table.row_labels:
        try:
            _add_row(result, row, table.settings_of(row, "", "measured"))
        except (SpeclibError, ImportError) as error:
            result.errors[f"{table.item}, {row}"] = str(error)


def _add_row(result: TableResult, row: str, settings: dict[str, Any]) -> None:
    n = max(1, round(result.profile.prompts * settings.get("share", 1)))
    by_text = places.counts_by_text(
        settings["pair"],
        settings["task"],
        n,
        settings["gamma"],
        settings["max_new_tokens"],
    )
    tested = np.array([counts.tested for counts in by_text])  # [texts, places]
    accepted = np.array([counts.accepted for counts in by_text])
    for column in result.table.column_labels:
        place = int(column) - 1
        if not tested[:, place].sum():
            continue
        value = accepted[:, place].sum() / tested[:, place].sum()
        samples = _resampled(accepted[:, place], tested[:, place])
        result.samples[row, column, "measured"] = samples
        result.add(
            row,
            column,
            "measured",
            Estimate(float(value), samples),
            setup=f"{settings['pair']}@{machine.name()}/float32/1",
            n=len(by_text),
            source="measured",
            note=f"{tested[:, place].sum()} drafts tested at this place; gamma "
            f"{settings['gamma']}; the models as trained, greedy",
        )


def _resampled(accepted: np.ndarray, tested: np.ndarray) -> Resamples:
    """The chance in each resample of the texts, by their counts [texts]."""
    n = len(tested)
    if n == 1:
        return measured_once(float(accepted[0] / tested[0]))
    drawn = draw_resamples(n)
    drawn_tested = np.maximum(drawn @ tested, 1)  # a resample may have none
    return Resamples(drawn @ accepted / drawn_tested, requests=n)
