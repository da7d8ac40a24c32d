"""The DSI paper's heatmaps and its accounting, as items: rules of charge beside the method's code.

The rules are ``heatmaps`` and ``accounting``; a number that they give says so in its note. The code
runs on the virtual clock, over a coarser grid. Draws nothing: ``filled.figure`` is what a view
needs.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from speclib.data.latency import load_latency
from speclib.experiment import cache, cache_keys
from speclib.experiment.cells.grid_row import GridRow
from speclib.experiment.engines.latency_acceptance_grid import mean_times
from speclib.theory.dsi_accounting import (
    LISTING,
    SIMULATOR,
    dsi_bound,
    dsi_time,
    servers_needed,
    speedup,
    switched,
)
from speclib.theory.dsi_heatmaps import ALPHAS, LOOKAHEADS, SHARES, Heatmaps, heatmaps

# 21 x 21, the method's real code: at 0.01 it has 100 servers, and that row costs ten grids' time
CODE_SHARES = np.array([0.03, *np.arange(1, 21) / 20])
CODE_ALPHAS = np.arange(21) / 20
SHORT = 50  # tokens of a run of the code, and of Table 1
PER_REQUEST = 5_120  # virtual tokens of the profile behind each request of a cell
MAP = "(c) DSI vs. non-SI"


@dataclass(frozen=True)
class Maps:
    """A figure's panels by the rules; the code's speed-up over plain decoding on its coarser grid,
    and by how much its time is off the rules' there (relative): ``against`` says which rules."""

    rules: Heatmaps
    shares: np.ndarray
    alphas: np.ndarray
    code: np.ndarray
    difference: np.ndarray
    against: str


def draw(filled) -> None:
    """Adds heatmaps to a table whose script they are, and every column that names its books."""
    if filled.table.settings.get("script") == "heatmaps":
        _heatmaps(filled)
    _accounting(filled)


def _heatmaps(filled) -> None:
    """Rows of a heatmap: extremes of each panel, in expectation and as printed; of the code."""
    s = filled.table.settings
    ahead = int(s.get("lookahead", 1))
    given = {
        "lookaheads": (ahead,) if "lookahead" in s else tuple(LOOKAHEADS),
        "dsi_lookahead": ahead,
    }
    rules = _kept(repeats=None, tokens=s["tokens"], **given)
    _extremes(filled, rules, "", f"{s['tokens']} tokens, SI in expectation")
    for repeats, suffix, note in (
        (None, ", 50 tokens", "SI in expectation"),
        (5, ", 50 tokens, SI sampled", "SI the mean of 5 runs"),
    ):
        short = _kept(repeats=repeats, tokens=SHORT, **given)
        _extremes(filled, short, suffix, f"{SHORT} tokens, {note}")
    filled.figure = _code(filled, rules, ahead)


def _kept(**given) -> Heatmaps:
    """``heatmaps``, once."""
    key = cache_keys.digest(
        sorted(given.items()), cache_keys.hash_of_code(("speclib.theory.dsi_heatmaps",))
    )
    si, dsi = cache.load_or_compute(
        key, lambda: [times.tolist() for times in astuple(heatmaps(**given))[2:4]]
    )
    return Heatmaps(SHARES, ALPHAS, np.array(si), np.array(dsi), float(given["tokens"]))


def _extremes(filled, maps: Heatmaps, suffix: str, note: str) -> None:
    for (panel, column), value in maps.cells().items():
        if (
            panel in filled.table.row_labels
            and column + suffix in filled.table.column_labels
        ):
            _add(
                filled, panel, column + suffix, value, "100 x 101", f"by rules: {note}"
            )


def _code(filled, rules: Heatmaps, ahead: int) -> Maps:
    """The method's code, and its rows."""
    requests = max(2, filled.profile.virtual_tokens // PER_REQUEST)
    times, drafts = mean_times(
        [
            GridRow(
                "dsi",
                float(share),
                tuple(map(float, CODE_ALPHAS)),
                (("lookahead", ahead), ("servers", int(servers_needed(share, ahead)))),
                SHORT,
                requests,
            )
            for share in CODE_SHARES
        ]
    )
    share = CODE_SHARES[:, None]
    expected = (
        dsi_bound(share, CODE_ALPHAS, SHORT)
        if ahead == 1
        else dsi_time(share, CODE_ALPHAS, ahead, SHORT)
    )
    found = {
        "smallest, code": (SHORT / times).min(),
        "largest, code": (SHORT / times).max(),
        "code over rules, mean": (times / expected).mean(),
        "code over rules, most": (times / expected).max(),
        "code over the same drafts' rules, most": (times / drafts).max(),
    }
    for column, value in found.items():
        if column in filled.table.column_labels:
            _add(
                filled,
                MAP,
                column,
                float(value),
                "21 x 21",
                f"{requests} runs of {SHORT} tokens "
                "per setting by the method's code, enough servers, cancel immediate",
            )
    against = "the rules' for the same drafts" if ahead == 1 else "the rules', sampled"
    return Maps(
        rules,
        CODE_SHARES,
        CODE_ALPHAS,
        SHORT / times,
        times / (drafts if ahead == 1 else expected) - 1,
        against,
    )


def _add(filled, row: str, column: str, value: float, setup: str, note: str) -> None:
    s = filled.table.setting(row, column)
    filled.add(
        row,
        column,
        s["metric"],
        s["unit"],
        "virtual",
        setup,
        round(value, 9),
        source="speclib/heatmaps.py",
        note=note,
    )


# -- the accounting ------------------------------------------------------------------------------
def _accounting(filled) -> None:
    """DSI over SI by rules of charge: a column names its ``books``, and a ``rule`` that is as in
    the other's."""
    table = filled.table
    for row in table.row_labels:
        for column in table.column_labels:
            s = table.setting(row, column)
            if "books" not in s:
                continue
            latency, (start, to) = load_latency(s["latency"]), _BOOKS[s["books"]]
            books = switched(start, to)[s["rule"]] if "rule" in s else start
            value = speedup(1 / latency.c, s["alpha"], SHORT, books)
            filled.add(
                row,
                column,
                s["metric"],
                s["unit"],
                "virtual",
                s["latency"],
                float(value),
                source=f"data/latency/{s['latency']}.toml",
                note=f"by rules, in expectation: {s['about_rule']}",
            )


_BOOKS = {"listing": (LISTING, SIMULATOR), "simulator": (SIMULATOR, LISTING)}
