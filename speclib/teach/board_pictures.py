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

from speclib.decoding.decode import Result
from speclib.decoding.simulate import compare, simulate
from speclib.errors import SpeclibError
from speclib.theory.closed_forms import sd_best
from speclib.views.display import png
from speclib.views.drafts.explorer import Sequences
from speclib.views.live.accept_bars import TOKENS, AcceptBarsPicture, P, Q
from speclib.views.live.kv_ribbon import KvRibbon
from speclib.views.live.outcome_tree import OutcomeTreePicture
from speclib.views.printing import pdf, svg_with_font
from speclib.views.stills.curves import Curves
from speclib.views.timeline.run import timeline_run
from speclib.views.timeline.widget import Timeline
from speclib.views.widgets.layer_schedule import Layers

from . import bugs
from .verify_exercise import verify

C, ALPHA = 5.0, 0.8  # cost ratio and acceptance rate, as the lessons have them
TOKENS_OF_A_PICTURE = 16  # written in a timeline
TOKENS_OF_A_POINT = 400  # written for each point of a curve
PNG_SCALE = 3  # pixels of a PNG per pixel of the picture
LAYER_SECONDS = 0.85e-3  # of EasySpec's Llama-3-8B: 27.2 ms a pass, over 32 layers
TIMES_PLAIN = "times as fast as plain decoding [virtual]"


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
    plain = simulate("autoregressive", c=6.0, tokens=24)
    return Timeline(plain, run, places={"draft": "CPU", "target": "GPU"}).picture()


def unsure_run() -> Result:
    """A run of DuoDecoding whose draft model is often unsure."""
    return simulate("duodecoding", gamma=6, c=6.0, alpha=0.7, doubt=1.2, tokens=24)


# -- one round -------------------------------------------------------------------------
def accept_bars() -> str:
    """q and p of one drafted token."""
    return AcceptBarsPicture(np.array(P), np.array(Q), TOKENS).picture()


def all_outcomes() -> str:
    """The outcome tree of the right test."""
    branches = bugs.branches_of(verify)
    return OutcomeTreePicture(branches, bugs.TOKENS, bugs.P.tolist()).picture()


def kv_caches() -> str:
    """PEARL's caches after its first rejection."""
    run = simulate("pearl", c=C, alpha=ALPHA, tokens=TOKENS_OF_A_PICTURE)
    return KvRibbon(timeline_run(run)).picture()


def several_sequences() -> str:
    """The widest draft of DuoDecoding."""
    return Sequences(unsure_run()).picture()


def tree_of_drafts() -> str:
    """The widest tree of tree speculative decoding."""
    run = simulate("tree", gamma=4, width=3, alpha=ALPHA, doubt=0.6, tokens=24)
    return Sequences(run).picture()


def group_of_layers() -> str:
    """EasySpec's draft pass over four devices, twelve layers."""
    controls = {"layers": (3, 40, 1, 12)}
    return Layers(LAYER_SECONDS, controls).picture()


# -- curves ----------------------------------------------------------------------------
def speed_against_gamma() -> str:
    """Speculative decoding and PEARL at each draft length, for two cost ratios."""
    lines: dict[str, dict[int, float]] = {}
    for c in (5.0, 10.0):
        for method, name in (("speculative", "speculative"), ("pearl", "PEARL")):
            line = lines.setdefault(f"{name}, c = {c:g}", {})
            for gamma in range(1, 15):
                line[gamma] = speed(method, gamma=gamma, c=c, alpha=ALPHA)
    return Curves(lines, TIMES_PLAIN, "γ, draft length", low=0).picture()


def speed_against_c() -> str:
    """Speculative decoding and PEARL, each at its best length, at each cost ratio."""
    lines: dict[str, dict[int, float]] = {"PEARL, γ = c": {}, "speculative, best γ": {}}
    for c in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20):
        best = sd_best(ALPHA, 1 / c, 1.0)
        lines["PEARL, γ = c"][c] = speed("pearl", gamma=c, c=c, alpha=ALPHA)
        lines["speculative, best γ"][c] = speed(
            "speculative", gamma=best, c=c, alpha=ALPHA
        )
    below = "c, a target pass over a draft pass (not to scale)"
    return Curves(lines, TIMES_PLAIN, below, low=0).picture()


def speed_against_acceptance() -> str:
    """All methods at each acceptance rate."""
    shares = [share / 10 for share in range(11)]
    lines: dict[str, dict[float, float]] = {}
    lines["speculative, best γ"] = {}
    for alpha in shares:
        best = sd_best(alpha, 1 / C, 1.0)
        lines["speculative, best γ"][alpha] = speed(
            "speculative", gamma=best, c=C, alpha=alpha
        )
    lines["PEARL"] = {a: speed("pearl", c=C, alpha=a) for a in shares}
    lines["DSI, 3 servers"] = {a: speed("dsi", servers=3, c=C, alpha=a) for a in shares}
    return Curves(lines, TIMES_PLAIN, "α, acceptance rate", low=0).picture()


def speed(method: str, *, c: float, alpha: float, **settings: object) -> float:
    """How many times as fast as plain decoding a method is on the virtual clock."""
    # A target pass takes a second, so plain decoding writes a token per second.
    run = simulate(
        method, c=c, alpha=alpha, target=1.0, tokens=TOKENS_OF_A_POINT, **settings
    )
    return run.stats.decode_speed


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
    "pearl-caches": BoardPicture(
        "20", "What a rejection leaves stale in both KV caches.", kv_caches
    ),
    "speed-against-gamma": BoardPicture(
        "20",
        "The best draft length of PEARL is c. That of speculative decoding is another.",
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
        "The longer a target pass takes, the more it is worth to draft meanwhile.",
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
            _write(path, content)
            written.append(path)
    return written


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise SpeclibError(f"cannot write {path}: {error.strerror}") from error
