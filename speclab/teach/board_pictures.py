"""Pictures for lectures: to print, to project or to copy onto the board.

Each is a picture from the lessons, with settings that make its point visible. All come
from the virtual clock or from a formula, and are labelled accordingly.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from speclab.theory import closed_forms
from speclab.views.drafts.drafts_explorer import Sequences
from speclab.views.live.accept_bars import TOKENS, AcceptBarsPicture, P, Q
from speclab.views.live.kv_ribbon import KvRibbonPicture
from speclab.views.live.rounds import RoundsPicture
from speclab.views.stills.curves import Curves
from speclab.views.widgets.layer_schedule_widget import Layers
from speclib.atomic_files import write_atomically
from speclib.decoding.compare import compare
from speclib.decoding.decode import Result
from speclib.decoding.simulate import simulate
from speclib.drawing.display import png
from speclib.drawing.timeline.run import timeline_run
from speclib.drawing.timeline.widget import Timeline

from . import bugs

WHAT_IF: dict[str, Any] = {
    "c": 5.0,
    "alpha": 0.8,
    "tokens": 16,
}  # as in the lessons
C, ALPHA = WHAT_IF["c"], WHAT_IF["alpha"]
ROUND_WITH_A_REJECTION = 4  # in PEARL's run; the rejected draft is in the window
BOTH_CACHES_STALE = 12  # a step of that run
PNG_SCALE = 3  # PNG pixels per pixel of the picture
LAYER_SECONDS = 0.85e-3  # EasySpec's Llama-3-8B: 27.2 ms per pass, over 32 layers
PASS = 1.0  # seconds per target pass, so that plain decoding writes 1 token a second
TIMES_PLAIN = "times as fast as plain decoding [formula]"


# -- timelines -------------------------------------------------------------------------
def taking_turns() -> str:
    """Plain decoding above speculative decoding."""
    plain, turns = compare("speculative", gamma=4, **WHAT_IF)
    return Timeline(plain, turns).picture()


def both_at_once() -> str:
    """Speculative decoding above PEARL."""
    _plain, turns, both = compare("pearl", **WHAT_IF)
    return Timeline(turns, both).picture()


def several_servers() -> str:
    """Speculative decoding above DSI with three servers."""
    _plain, turns, dsi = compare("dsi", lookahead=2, servers=3, **WHAT_IF)
    return Timeline(turns, dsi).picture()


def draft_on_cpu() -> str:
    """Plain decoding on a GPU, above DuoDecoding on a GPU and a CPU."""
    run = unsure_run()
    plain = simulate("autoregressive", c=6.0, tokens=32)
    return Timeline(plain, run, places={"draft": "CPU", "target": "GPU"}).picture()


def unsure_run() -> Result:
    """A run of DuoDecoding that continues with the second sequence in round 4."""
    return simulate(
        "duodecoding", gamma=6, c=6.0, alpha=0.7, doubt=0.4, seed=1, tokens=32
    )


# -- one round -------------------------------------------------------------------------
def accept_bars() -> str:
    """The bars of q and p for one drafted token."""
    return AcceptBarsPicture(np.array(P), np.array(Q), TOKENS).picture()


def all_outcomes() -> str:
    """The outcome tree of the correct test."""
    return bugs.outcome_tree().tree.picture()


def round_of_pearl() -> str:
    """A round of PEARL in which a draft in the window is rejected."""
    rounds = RoundsPicture(timeline_run(simulate("pearl", **WHAT_IF)))
    rounds.step = ROUND_WITH_A_REJECTION
    return rounds.picture()


def kv_caches() -> str:
    """PEARL's KV caches after a rejection that leaves both stale."""
    ribbon = KvRibbonPicture(timeline_run(simulate("pearl", **WHAT_IF)))
    ribbon.step = BOTH_CACHES_STALE
    return ribbon.picture()


def several_sequences() -> str:
    """The round of DuoDecoding that continues with the second sequence."""
    return Sequences(unsure_run(), round=4).picture()


def tree_of_drafts() -> str:
    """A tree whose accepted path leaves the likeliest branch, and then ends."""
    run = simulate("tree", gamma=4, width=3, alpha=0.7, doubt=0.8, seed=2, tokens=32)
    return Sequences(run, round=4).picture()


def group_of_layers() -> str:
    """EasySpec's draft pass through twelve layers on four devices."""
    return Layers(LAYER_SECONDS, {"layers": (3, 40, 1, 12)}).picture()


# -- curves ----------------------------------------------------------------------------
def speed_against_gamma() -> str:
    """Speculative decoding and PEARL at each draft length, for two cost ratios."""
    lines: dict[str, dict[int, float]] = {}
    for c in (5, 10):
        turns = lines.setdefault(f"speculative, c = {c}", {})
        both = lines.setdefault(f"PEARL, c = {c}", {})
        for gamma in range(1, 15):
            turns[gamma] = closed_forms.sd_speed(ALPHA, gamma, 1 / c, PASS)
            both[gamma] = closed_forms.pearl_speed(ALPHA, gamma, 1 / c, PASS)
    return Curves(lines, TIMES_PLAIN, "γ, draft length", low=0).picture()


def speed_against_c() -> str:
    """Speculative decoding with its best gamma, and PEARL, at each cost ratio."""
    turns: dict[int, float] = {}
    both: dict[int, float] = {}
    for c in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20):
        turns[c] = best_speed_of_turns(ALPHA, c)
        both[c] = closed_forms.pearl_speed(ALPHA, c, 1 / c, PASS)
    lines = {"speculative, best γ": turns, "PEARL, γ = c": both}
    below = "c, a target pass over a draft pass (not to scale)"
    return Curves(lines, TIMES_PLAIN, below, low=0).picture()


def speed_against_acceptance() -> str:
    """Three methods at each acceptance rate."""
    turns: dict[float, float] = {}
    both: dict[float, float] = {}
    dsi: dict[float, float] = {}
    for tenths in range(11):
        alpha = tenths / 10
        turns[alpha] = best_speed_of_turns(alpha, C)
        both[alpha] = closed_forms.pearl_speed(alpha, round(C), 1 / C, PASS)
        dsi[alpha] = closed_forms.dsi_speed(alpha, 2, 1 / C, PASS, servers=3)
    lines = {"speculative, best γ": turns, "PEARL, γ = c": both, "DSI, 3 servers": dsi}
    return Curves(lines, TIMES_PLAIN, "α, acceptance rate", low=0).picture()


def best_speed_of_turns(alpha: float, c: float) -> float:
    """The speed of speculative decoding at its best draft length."""
    gamma = closed_forms.sd_best(alpha, 1 / c, PASS)
    speed: float = closed_forms.sd_speed(alpha, gamma, 1 / c, PASS)
    return speed


# -- all of them -----------------------------------------------------------------------
PICTURES: dict[str, Callable[[], str]] = {
    "race": taking_turns,
    "accept-bars": accept_bars,
    "outcome-tree": all_outcomes,
    "pearl": both_at_once,
    "pearl-round": round_of_pearl,
    "pearl-caches": kv_caches,
    "speed-against-gamma": speed_against_gamma,
    "dsi": several_servers,
    "duodecoding": draft_on_cpu,
    "sequences": several_sequences,
    "tree": tree_of_drafts,
    "layers": group_of_layers,
    "speed-against-c": speed_against_c,
    "speed-against-acceptance": speed_against_acceptance,
}


def write_pictures(folder: Path) -> list[Path]:
    """Writes each picture as <name>.svg and <name>.png; returns their paths."""
    written = []
    for name, draw in PICTURES.items():
        svg = draw()
        contents = {".svg": svg.encode(), ".png": png(svg, PNG_SCALE)}
        for ending, content in contents.items():
            path = folder / f"{name}{ending}"
            write_atomically(path, content)
            written.append(path)
    return written
