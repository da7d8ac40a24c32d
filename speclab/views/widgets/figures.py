"""The table of figures below an explorer's timeline.

It has a row per run, with simulated and expected figures. By default it leaves out
figures that the bars already show, such as the waiting time. The cells have fixed
widths, so that nothing jumps while a slider moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import isfinite, nan
from typing import Any, NamedTuple

from speclib.drawing.numbers import DASH, percent
from speclib.drawing.timeline.run import TimelineRun
from speclib.drawing.timeline.sayings import idle_shares, speedup_as_drawn
from speclib.errors import unknown_name
from speclib.trace.metrics import Stats

from .draws import DRAWS, SpeedRange

CELL_STYLE = "padding: 1px 18px 1px 0; text-align: left; min-width: 76px"
NUMBER_STYLE = f"{CELL_STYLE}; white-space: nowrap"
# The headings of many columns wrap, and on a narrow page the table scrolls sideways.
HEADING_STYLE = f"{CELL_STYLE}; line-height: 1.25; vertical-align: bottom"
TABLE_STYLE = "font-size: 15px; font-variant-numeric: tabular-nums"


class RunFigures(NamedTuple):
    """The cells of one run's row, from left to right."""

    run: str
    as_drawn: str
    after_first: str
    draws: str
    expected: str
    over_sd: str
    accepted: str
    discarded: str
    device_time: str
    waiting: str


HEADINGS = RunFigures(
    run="",
    as_drawn="speed-up in this run",
    after_first="… after the first commit",
    draws=f"… in {DRAWS} draws",
    expected="… expected for a long text",
    over_sd="over speculative decoding",
    accepted="tested drafts accepted",
    discarded="drafts discarded",
    device_time="device time per token",
    waiting="waiting",
)

# The names of the figures that are shown by default.
COLUMNS = ("as_drawn", "after_first", "draws", "expected", "over_sd", "device_time")


def check_columns(columns: Sequence[str]) -> None:
    """Raises SpeclibError for an unknown figure."""
    for name in columns:
        if name not in RunFigures._fields:
            raise unknown_name(f"no figure {name!r}", name, RunFigures._fields)


def as_factor(ratio: float) -> str:
    """``ratio`` as "1.25×"; a dash if it is not finite."""
    if not isfinite(ratio):
        return "–"
    return f"{ratio:.2f}×"


def figures_of(
    runs: list[TimelineRun],
    theory: Callable[..., float],
    values: dict[str, Any],
    ranges: Sequence[SpeedRange] = (),
) -> list[RunFigures]:
    """A row of figures for each run.

    ``ranges``: each run's range of speed-ups over many draws, if known.

    ``theory(**values)`` returns the expected speed-up of ``values["method"]``, which is
    set to each run's method. Device time is relative to plain decoding's; the first run
    without drafts counts as plain decoding.
    """
    plain = _stats_of_plain_decoding(runs)
    rows = []
    for index, run in enumerate(runs):
        stats = run.stats
        method = run.trace.meta.get("method", "")
        expected = theory(**{**values, "method": method})
        row = RunFigures(
            run=f"{run.label} {run.note}".strip(),
            as_drawn=as_factor(speedup_as_drawn(run, runs)),
            after_first=as_factor(speedup_after_first(run, runs)),
            draws=str(ranges[index]) if index < len(ranges) else DASH,
            expected=as_factor(expected),
            over_sd=as_factor(speedup_as_drawn(run, runs, "speculative")),
            accepted=percent(stats.acceptance_rate),
            discarded=percent(untested_share(stats)),
            device_time=as_factor(_device_time_ratio(stats, plain)),
            waiting=idle_shares(run),
        )
        rows.append(row)
    return rows


def speedup_after_first(run: TimelineRun, runs: Sequence[TimelineRun]) -> float:
    """The speed-up over plain decoding after the first commit, as papers report it.

    It is not-a-number if ``runs`` has no run of plain decoding.
    """
    for other in runs:
        is_plain = other.trace.meta.get("method") == "autoregressive"
        if is_plain and other.kind == run.kind:
            return run.stats.decode_speed / other.stats.decode_speed
    return nan


def untested_share(stats: Stats) -> float:
    """The share of drafts that were never tested; not-a-number without drafts."""
    if not stats.drafted:
        return nan
    return 1 - (stats.accepted + stats.rejected) / stats.drafted


def figures_html(rows: list[RunFigures], columns: Sequence[str] = COLUMNS) -> str:
    """These columns of the table as HTML."""
    lines = [_table_row("th", HEADING_STYLE, _chosen(HEADINGS, columns))]
    for row in rows:
        lines.append(_table_row("td", NUMBER_STYLE, _chosen(row, columns)))
    return f'<table style="{TABLE_STYLE}">{"".join(lines)}</table>'


def figures_in_words(row: RunFigures) -> str:
    """A run's figures in a line of text."""
    return (
        f"{row.run}: speed-up in this run {row.as_drawn}, after the first commit "
        f"{row.after_first}, expected for a long text {row.expected}, over speculative "
        f"decoding {row.over_sd}, accepted {row.accepted} of the tested drafts, "
        f"discarded {row.discarded} of all, device time {row.device_time}, waiting "
        f"{row.waiting}"
    )


def _stats_of_plain_decoding(runs: list[TimelineRun]) -> Stats | None:
    for run in runs:
        stats = run.stats
        if stats.drafted == 0:
            return stats
    return None


def _device_time_ratio(stats: Stats, plain: Stats | None) -> float:
    if plain is None:
        return nan
    return stats.device_seconds_per_token / plain.device_seconds_per_token


def _chosen(row: RunFigures, columns: Sequence[str]) -> list[str]:
    """The run's name, and its figures in these columns."""
    return [row.run, *(getattr(row, name) for name in columns)]


def _table_row(element: str, style: str, cells: Sequence[str]) -> str:
    html = [f'<{element} style="{style}">{escape(cell)}</{element}>' for cell in cells]
    return f"<tr>{''.join(html)}</tr>"
