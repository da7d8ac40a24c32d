"""The DSI paper's heatmaps and accounting: its charging rules and the method's code.

The rules are in ``theory.dsi_heatmaps`` and ``theory.dsi_accounting``; the note of a
number computed by them says so. The code runs on the virtual clock, over a coarser
grid. This module renders nothing; ``result.figure`` contains what a view needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from speclab.theory.dsi_accounting import (
    LISTING,
    SIMULATOR,
    Accounting,
    dsi_bound,
    dsi_time,
    servers_needed,
    speedup,
    switched,
)
from speclab.theory.dsi_heatmaps import (
    LOOKAHEADS,
    Heatmaps,
    heatmaps,
)
from speclab.virtual.grid_row import GridRow
from speclab.virtual.latency_acceptance_grid import GridTimes, mean_times
from speclib import paths
from speclib.data.latency import load_latency
from speclib.errors import unknown_name

from .cell_errors import naming_cell
from .figures import HeatmapFigure
from .table_result import TableResult

# The 21 x 21 grid for the method's real code. A share of 0.01 would take 100 servers,
# and computing its row would take as long as ten grids.
CODE_SHARES = np.array([0.03, *np.arange(1, 21) / 20])
CODE_ALPHAS = np.arange(21) / 20

SHORT = 50  # tokens per run of the code, and in Table 1
REQUESTS = 4  # requests per cell of the code's grid
CODE_PANEL = "(c) DSI vs. non-SI"  # the row with the code's numbers

# By the name in a column's ``books``: the rules, and those that can replace one of
# them.
BOOKS = {"listing": (LISTING, SIMULATOR), "simulator": (SIMULATOR, LISTING)}


# -- heatmaps --------------------------------------------------------------------------
def add_heatmaps(result: TableResult) -> None:
    """Adds the figure, and the extremes of its panels by the rules and by the code.

    The rules are evaluated in expectation for the table's ``tokens`` and for 50, and
    for 50 also with SI sampled as in the paper.
    """
    settings = result.table.settings_of()
    lookahead = int(settings.get("lookahead", 1))
    si_lookaheads = tuple(LOOKAHEADS)
    if "lookahead" in settings:
        si_lookaheads = (lookahead,)

    tokens = settings["tokens"]
    rules = _rules(si_lookaheads, lookahead, tokens)
    _add_extremes(result, rules.cells(), "", f"{tokens} tokens, SI in expectation")

    short = _rules(si_lookaheads, lookahead, SHORT)
    note = f"{SHORT} tokens, SI in expectation"
    _add_extremes(result, short.cells(), ", 50 tokens", note)

    grid = grid_of(lookahead)
    note = f"{SHORT} tokens, SI the mean of 5 runs"
    _add_extremes(result, grid.sampled, ", 50 tokens, SI sampled", note)

    result.figure = _add_code(result, rules, lookahead, grid)


@cache
def _rules(si_lookaheads: tuple[int, ...], dsi_lookahead: int, tokens: int) -> Heatmaps:
    """``heatmaps`` for these arguments, in expectation, computed once."""
    return heatmaps(si_lookaheads, tokens, None, dsi_lookahead)


class Grid(NamedTuple):
    """Committed results that take a while to compute: ``data/virtual-grids.json``.

    code, same_drafts   times by the method's code, and by the rules for the same
                        drafts, in target passes [CODE_SHARES, CODE_ALPHAS]
    sampled             extremes by the rules, where SI is the mean of 5 runs, by panel
                        and column
    """

    code: np.ndarray
    same_drafts: np.ndarray
    sampled: dict[tuple[str, str], float]


def grid_of(lookahead: int) -> Grid:
    """The committed grid for a lookahead; computed if it is missing."""
    stored = read_grids().get(str(lookahead))
    if stored is None:
        stored = compute_grid(lookahead)
    sampled = {(panel, column): value for panel, column, value in stored["sampled"]}
    return Grid(np.array(stored["code"]), np.array(stored["same_drafts"]), sampled)


def read_grids() -> dict[str, Any]:
    """The committed grids by lookahead, as in the JSON file; none without the file."""
    path = grids_file()
    return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}


def grids_file() -> Path:
    return paths.DATA / "virtual-grids.json"


def compute_grid(lookahead: int) -> dict[str, Any]:
    """A grid as JSON; takes half a minute to a minute on two cores."""
    times = _code_times(lookahead)
    si_lookaheads = tuple(LOOKAHEADS) if lookahead == 1 else (lookahead,)
    sampled = heatmaps(si_lookaheads, SHORT, 5, lookahead).cells()
    return {
        "code": np.round(times.method, 6).tolist(),
        "same_drafts": np.round(times.formula, 6).tolist(),
        "sampled": [[*key, value] for key, value in sampled.items()],
    }


def _add_extremes(
    result: TableResult,
    extremes: Mapping[tuple[str, str], float],
    suffix: str,
    note: str,
) -> None:
    """Adds the extremes that the table has a row and a column for."""
    table = result.table
    for (panel, column), value in extremes.items():
        column += suffix
        if panel in table.row_labels and column in table.column_labels:
            _add(result, panel, column, value, "100 x 101", f"by rules: {note}")


def _add_code(
    result: TableResult, rules: Heatmaps, lookahead: int, grid: Grid
) -> HeatmapFigure:
    """Adds the numbers that the method's code gives over its grid.

    The grid stores means over its runs, not the runs, so claims treat them as exact.
    """
    times, same_drafts = grid.code, grid.same_drafts
    expected = _expected_times(lookahead)

    numbers = {
        "smallest, code": (SHORT / times).min(),
        "largest, code": (SHORT / times).max(),
        "code over rules, mean": (times / expected).mean(),
        "code over rules, most": (times / expected).max(),
        "code over the same drafts' rules, most": (times / same_drafts).max(),
    }
    note = (
        f"{REQUESTS} runs of {SHORT} tokens per setting by the method's code, "
        "enough servers, cancel immediate"
    )
    for column, value in numbers.items():
        if column in result.table.column_labels:
            _add(result, CODE_PANEL, column, float(value), "21 x 21", note)

    # With lookahead 1 we know the rules' time for exactly the drafts that the code met.
    if lookahead == 1:
        difference = times / same_drafts - 1
        against = "the rules' for the same drafts"
    else:
        difference = times / expected - 1
        against = "the rules', sampled"
    return HeatmapFigure(
        rules=rules,
        shares=CODE_SHARES,
        alphas=CODE_ALPHAS,
        code=SHORT / times,
        difference=difference,
        against=against,
    )


def _code_times(lookahead: int) -> GridTimes:
    """The code's times, and the rules' for the same drafts, each [shares, alphas]."""
    rows = []
    for share in CODE_SHARES:
        servers = int(servers_needed(share, lookahead))
        row = GridRow(
            method="dsi",
            share=float(share),
            alphas=tuple(float(alpha) for alpha in CODE_ALPHAS),
            settings=(("lookahead", lookahead), ("servers", servers)),
            tokens=SHORT,
            requests=REQUESTS,
        )
        rows.append(row)
    return mean_times(rows)


def _expected_times(lookahead: int) -> np.ndarray:
    """The rules' expected times over the code's grid, [shares, alphas]."""
    shares = CODE_SHARES[:, None]
    if lookahead == 1:
        return dsi_bound(shares, CODE_ALPHAS, SHORT)
    return dsi_time(shares, CODE_ALPHAS, lookahead, SHORT)


def _add(
    result: TableResult, row: str, column: str, value: float, setup: str, note: str
) -> None:
    result.add(
        row,
        column,
        "virtual",
        round(value, 9),
        setup=setup,
        source="speclab/theory/dsi_heatmaps.py",
        note=note,
    )


# -- the accounting --------------------------------------------------------------------
def add_accounting(result: TableResult) -> None:
    """Adds DSI over SI by the charging rules, for every column that names ``books``.

    A ``rule`` names the one rule that is taken from the other books.
    """
    table = result.table
    for row in table.row_labels:
        for column in table.column_labels:
            settings = table.settings_of(row, column)
            if "books" not in settings:
                continue
            with naming_cell(table, row, column):
                _add_gain_by_rules(result, row, column, settings)


def _add_gain_by_rules(
    result: TableResult, row: str, column: str, settings: dict[str, Any]
) -> None:
    latency = load_latency(settings["latency"])
    rules = _named_rules(settings["books"], settings.get("rule"))
    value = speedup(1 / latency.c, settings["alpha"], SHORT, rules)
    result.add(
        row,
        column,
        "virtual",
        float(value),
        setup=settings["latency"],
        source=f"data/latency/{settings['latency']}.toml",
        note=f"by rules, in expectation: {settings['about_rule']}",
    )


def _named_rules(books: str, rule: str | None) -> Accounting:
    if books not in BOOKS:
        raise unknown_name(f"unknown books {books!r}", books, BOOKS)
    rules, others = BOOKS[books]
    if rule is None:
        return rules
    with_one_rule = switched(rules, others)
    if rule not in with_one_rule:
        problem = f"unknown rule {rule!r} of books {books!r}"
        raise unknown_name(problem, rule, with_one_rule)
    return with_one_rule[rule]
