"""The DSI paper's heatmaps and accounting: rules of charge beside the method's code.

The rules are those of ``theory.dsi_heatmaps`` and ``theory.dsi_accounting``; a number
that they give says so in its note. The code runs on the virtual clock, over a coarser
grid. Renders nothing: ``result.figure`` is what a view needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from speclab.experiment import cache, cache_keys
from speclab.experiment.cells.grid_row import GridRow
from speclab.experiment.engines.latency_acceptance_grid import GridTimes, mean_times
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
    ALPHAS,
    LOOKAHEADS,
    SHARES,
    Heatmaps,
    heatmaps,
)
from speclib.data.latency import load_latency
from speclib.errors import unknown_name

from .cell_errors import naming_cell
from .figures import HeatmapFigure
from .table_result import TableResult

# The grid of the method's real code, 21 x 21. A share of 0.01 would take 100 servers,
# and its row as much time as ten grids.
CODE_SHARES = np.array([0.03, *np.arange(1, 21) / 20])
CODE_ALPHAS = np.arange(21) / 20

SHORT = 50  # tokens of a run of the code, and of Table 1
TOKENS_PER_REQUEST = (
    5_120  # virtual tokens of the profile behind each request of a cell
)
CODE_PANEL = "(c) DSI vs. non-SI"  # the row that the code's numbers stand in

# By the name that a column's ``books`` gives them: the rules, and those that a ``rule``
# of them may be taken from.
BOOKS = {"listing": (LISTING, SIMULATOR), "simulator": (SIMULATOR, LISTING)}


# -- heatmaps --------------------------------------------------------------------------
def add_heatmaps(result: TableResult) -> None:
    """Adds the figure, and the extremes of its panels by the rules and by the code.

    The rules are charged in expectation for the table's ``tokens`` and for 50, and for
    50 with SI sampled as the paper has it.
    """
    settings = result.table.settings_of()
    lookahead = int(settings.get("lookahead", 1))
    si_lookaheads = tuple(LOOKAHEADS)
    if "lookahead" in settings:
        si_lookaheads = (lookahead,)

    tokens = settings["tokens"]
    rules = _rules(si_lookaheads, lookahead, tokens)
    _add_extremes(result, rules, "", f"{tokens} tokens, SI in expectation")

    short = _rules(si_lookaheads, lookahead, SHORT)
    note = f"{SHORT} tokens, SI in expectation"
    _add_extremes(result, short, ", 50 tokens", note)

    sampled = _rules(si_lookaheads, lookahead, SHORT, repeats=5)
    note = f"{SHORT} tokens, SI the mean of 5 runs"
    _add_extremes(result, sampled, ", 50 tokens, SI sampled", note)

    result.figure = _add_code(result, rules, lookahead)


def _rules(
    si_lookaheads: tuple[int, ...],
    dsi_lookahead: int,
    tokens: int,
    repeats: int | None = None,
) -> Heatmaps:
    """``heatmaps`` of these arguments, computed once and stored."""

    def times() -> list[list[list[float]]]:
        computed = heatmaps(si_lookaheads, tokens, repeats, dsi_lookahead)
        return [computed.si.tolist(), computed.dsi.tolist()]

    arguments = {
        "lookaheads": si_lookaheads,
        "dsi_lookahead": dsi_lookahead,
        "tokens": tokens,
        "repeats": repeats,
    }
    code = cache_keys.hash_of_code(("speclab.theory.dsi_heatmaps",))
    key = cache_keys.digest(sorted(arguments.items()), code)
    si, dsi = cache.load_or_compute(key, times)
    return Heatmaps(SHARES, ALPHAS, np.array(si), np.array(dsi), float(tokens))


def _add_extremes(result: TableResult, maps: Heatmaps, suffix: str, note: str) -> None:
    """Adds the numbers of ``maps`` that the table has a row and a column for."""
    table = result.table
    for (panel, column), value in maps.cells().items():
        column += suffix
        if panel in table.row_labels and column in table.column_labels:
            _add(result, panel, column, value, "100 x 101", f"by rules: {note}")


def _add_code(result: TableResult, rules: Heatmaps, lookahead: int) -> HeatmapFigure:
    """Runs the method's code over its grid and adds the numbers that it gives.

    The grid keeps means over its runs and not the runs, so these numbers have no
    resamples: claims take them as exact.
    """
    requests = max(2, result.profile.virtual_tokens // TOKENS_PER_REQUEST)
    times, same_drafts = _code_times(lookahead, requests)
    expected = _expected_times(lookahead)

    numbers = {
        "smallest, code": (SHORT / times).min(),
        "largest, code": (SHORT / times).max(),
        "code over rules, mean": (times / expected).mean(),
        "code over rules, most": (times / expected).max(),
        "code over the same drafts' rules, most": (times / same_drafts).max(),
    }
    note = (
        f"{requests} runs of {SHORT} tokens per setting by the method's code, "
        "enough servers, cancel immediate"
    )
    for column, value in numbers.items():
        if column in result.table.column_labels:
            _add(result, CODE_PANEL, column, float(value), "21 x 21", note)

    # With lookahead 1 the rules' time is known for the very drafts that the code met.
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


def _code_times(lookahead: int, requests: int) -> GridTimes:
    """Times of the code, and the rules' for the same drafts, [shares, alphas] each."""
    rows = []
    for share in CODE_SHARES:
        servers = int(servers_needed(share, lookahead))
        row = GridRow(
            method="dsi",
            share=float(share),
            alphas=tuple(float(alpha) for alpha in CODE_ALPHAS),
            settings=(("lookahead", lookahead), ("servers", servers)),
            tokens=SHORT,
            requests=requests,
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
    """Adds DSI over SI by rules of charge, for every column that names its ``books``.

    With a ``rule``, that one rule of them is as in the other books.
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
