"""Data that a view needs to render a figure that is not a table of cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from speclab.theory.dsi_heatmaps import Heatmaps
from speclib.trace.events import Trace


@dataclass(frozen=True)
class ReplayedSteps:
    """A printed run, replayed with the method's code.

    ``pieces`` is the text of every token id. For each step, ``committed`` has the
    tokens, ``accepted`` the number of accepted drafts, and ``starts`` the start time in
    draft passes.
    """

    trace: Trace
    pieces: dict[int, str]
    committed: tuple[tuple[str, ...], ...]
    accepted: tuple[int, ...]
    starts: tuple[float, ...]


@dataclass(frozen=True)
class DraftLengths:
    """The best draft length at each iteration of a run, and the one that was used.

    The end of the output cuts all but the first ``complete`` values short.
    """

    values: tuple[int, ...]
    gamma: int | None
    complete: int


@dataclass(frozen=True)
class HeatmapFigure:
    """A figure's panels by the rules, and the method's code over a coarser grid.

    ``code`` is the code's speed-up over plain decoding, and ``difference`` the relative
    difference between its time and the rules' time; both are [shares, alphas].
    ``against`` names the rules.
    """

    rules: Heatmaps
    shares: np.ndarray
    alphas: np.ndarray
    code: np.ndarray
    difference: np.ndarray
    against: str


Figure: TypeAlias = ReplayedSteps | DraftLengths | HeatmapFigure | Trace
