"""Pictures for the board: what a lecturer prints, projects or draws.

Each is one of the lessons' own pictures, at settings that show its point. All come from
the simulated clock or from a formula, and say so. ``write_pictures`` writes them as
SVG, PDF and PNG.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from speclab.check.line_mistakes import verify
from speclab.theory import closed_forms
from speclab.traces.caches import STALE
from speclab.views.drafts.drafts_explorer import Sequences
from speclab.views.live.accept_bars import TOKENS, AcceptBarsPicture, P, Q
from speclab.views.live.kv_ribbon import KvRibbonPicture
from speclab.views.live.outcome_tree import OutcomeTreePicture
from speclab.views.live.rounds import RoundsPicture
from speclab.views.printing import pdf, svg_with_font
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

C, ALPHA = 5.0, 0.8  # cost ratio and acceptance rate, as the lessons have them
TOKENS_OF_A_PICTURE = 16  # written in a timeline
PNG_SCALE = 3  # pixels of a PNG per pixel of the picture
LAYER_SECONDS = 0.85e-3  # of EasySpec's Llama-3-8B: 27.2 ms a pass, over 32 layers
PASS = 1.0  # seconds of a target pass: plain decoding then writes a token per second
TIMES_PLAIN = "times as fast as plain decoding [formula]"


class BoardPicture(NamedTuple):
    """A picture: the lesson that it belongs to, what it shows, and its SVG."""

    lesson: str
    shows: str
    draw: Callable[[], str]


# -- timelines -------------------------------------------------------------------------
def taking_turns() -> str:
    """Plain decoding above speculative decoding."""
    plain, turns = compare(
        "speculative", gamma=4, c=C, alpha=ALPHA, tokens=TOKENS_OF_A_PICTURE
    )
    return Timeline(plain, turns).picture()


def both_at_once() -> str:
    """Speculative decoding above PEARL."""
    _plain, turns, both = compare("pearl", c=C, alpha=ALPHA, tokens=TOKENS_OF_A_PICTURE)
    return Timeline(turns, both).picture()


def several_servers() -> str:
    """Speculative decoding above DSI with three servers."""
    _plain, turns, dsi = compare(
        "dsi",
        lookahead=2,
        servers=3,
        c=C,
        alpha=ALPHA,
        tokens=TOKENS_OF_A_PICTURE,
    )
    return Timeline(turns, dsi).picture()


def draft_on_cpu() -> str:
    """Plain decoding on a GPU, above DuoDecoding with a CPU beside it."""
    run = unsure_run()
    plain = simulate("autoregressive", c=6.0, tokens=32)
    return Timeline(plain, run, places={"draft": "CPU", "target": "GPU"}).picture()


def unsure_run() -> Result:
    """A run of DuoDecoding in which the second of two sequences goes on, in round 4."""
    return simulate(
        "duodecoding", gamma=6, c=6.0, alpha=0.7, doubt=0.4, seed=1, tokens=32
    )


# -- one round -------------------------------------------------------------------------
def accept_bars() -> str:
    """q and p of one drafted token."""
    return AcceptBarsPicture(np.array(P), np.array(Q), TOKENS).picture()


def all_outcomes() -> str:
    """The outcome tree of the right test."""
    branches = bugs.branches_of(verify)
    return OutcomeTreePicture(branches, bugs.TOKENS, bugs.P.tolist()).picture()


def round_of_pearl() -> str:
    """The first round of PEARL in which a draft of the window is rejected."""
    run = simulate("pearl", c=C, alpha=ALPHA, tokens=TOKENS_OF_A_PICTURE)
    rounds = RoundsPicture(timeline_run(run))
    for step, shown in enumerate(rounds.rounds, 1):
        if "rejected" in shown.outcomes[: len(shown.window)]:
            rounds.step = step
            return rounds.picture()
    raise AssertionError("this run rejects no draft of a window")


def kv_caches() -> str:
    """PEARL's caches at the first rejection that leaves both stale."""
    run = simulate("pearl", c=C, alpha=ALPHA, tokens=TOKENS_OF_A_PICTURE)
    ribbon = KvRibbonPicture(timeline_run(run))
    ribbon.step = first_step_with_both_stale(ribbon)
    return ribbon.picture()


def first_step_with_both_stale(ribbon: KvRibbonPicture) -> int:
    """The first step after which no cache fits the text."""
    for step, moment in enumerate(ribbon.moments, 1):
        if all(STALE in kinds for kinds in moment.kinds.values()):
            return step
    raise AssertionError("this run has no rejection that both caches notice")


def several_sequences() -> str:
    """The round of DuoDecoding in which the second sequence goes on."""
    return Sequences(unsure_run(), round=4).picture()


def tree_of_drafts() -> str:
    """A tree whose path leaves the likeliest branch, and then ends."""
    run = simulate("tree", gamma=4, width=3, alpha=0.7, doubt=0.8, seed=2, tokens=32)
    return Sequences(run, round=4).picture()


def group_of_layers() -> str:
    """EasySpec's draft pass over four devices, twelve layers."""
    controls = {"layers": (3, 40, 1, 12)}
    return Layers(LAYER_SECONDS, controls).picture()


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
    """Speculative decoding and PEARL, each at its usual length, at each cost ratio."""
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
    """Speculative decoding at the draft length that is best for it."""
    gamma = closed_forms.sd_best(alpha, 1 / c, PASS)
    speed: float = closed_forms.sd_speed(alpha, gamma, 1 / c, PASS)
    return speed


# -- all of them -----------------------------------------------------------------------
PICTURES = {
    "race": BoardPicture(
        "00",
        "Plain decoding and speculative decoding write the same text. Who waits?",
        taking_turns,
    ),
    "accept-bars": BoardPicture(
        "10",
        "Of a drafted token min(p, q) is kept. What is rejected is as much as what is "
        "missing.",
        accept_bars,
    ),
    "outcome-tree": BoardPicture(
        "12", "All outcomes of one tested draft, which sum to p.", all_outcomes
    ),
    "pearl": BoardPicture(
        "20",
        "PEARL drafts while the target model tests. The price is in yellow.",
        both_at_once,
    ),
    "pearl-round": BoardPicture(
        "20",
        "One round of PEARL: the window, the draft that is tested early, and the rows.",
        round_of_pearl,
    ),
    "pearl-caches": BoardPicture(
        "20", "What a rejection leaves stale in both KV caches.", kv_caches
    ),
    "speed-against-gamma": BoardPicture(
        "20",
        "PEARL is fastest where γ is c. Speculative decoding prefers shorter drafts.",
        speed_against_gamma,
    ),
    "dsi": BoardPicture(
        "30",
        "Three servers test while the draft model goes on. A rejection stops useless "
        "work.",
        several_servers,
    ),
    "duodecoding": BoardPicture(
        "40", "A CPU drafts beside a GPU, and both end a round together.", draft_on_cpu
    ),
    "sequences": BoardPicture(
        "40", "An unsure draft model writes several short sequences.", several_sequences
    ),
    "tree": BoardPicture(
        "50", "A tree of candidates, and the path that was followed.", tree_of_drafts
    ),
    "layers": BoardPicture(
        "50",
        "Layers of a group share one input, so their attentions run at once.",
        group_of_layers,
    ),
    "speed-against-c": BoardPicture(
        "60",
        "Both gain with c. PEARL leads until c drafts are too many to be all right.",
        speed_against_c,
    ),
    "speed-against-acceptance": BoardPicture(
        "60",
        "Which methods never fall below plain decoding, and what the others need.",
        speed_against_acceptance,
    ),
}


def write_pictures(folder: Path, names: Iterable[str] = PICTURES) -> list[Path]:
    """Writes each picture as <name>.svg, .pdf and .png; returns their paths.

    Raises SpeclibError where the folder cannot be written, or typst is missing.
    """
    written = []
    for name in names:
        svg = PICTURES[name].draw()
        contents = {
            ".svg": svg_with_font(svg).encode(),
            ".pdf": pdf(svg),
            ".png": png(svg, PNG_SCALE),
        }
        for ending, content in contents.items():
            path = folder / f"{name}{ending}"
            write_atomically(path, content)
            written.append(path)
    return written
