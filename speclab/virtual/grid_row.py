"""One row of a heatmap's grid: a method at one drafter latency, for all alphas.

Knows no paper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from speclib.data.latency import Latency
from speclib.methods import METHODS
from speclib.models.toy import BOS
from speclib.trace.metrics import stats

from .outputs import find_agreements
from .toy_requests import ToyCell, decode_request, open_world


class GridRow(NamedTuple):
    """What is asked of one row.

    method    name of the method
    share     seconds of a draft pass over those of a target pass
    alphas    acceptance rates, the columns of the grid
    settings  of the method; ``servers`` is also how many targets there are
    tokens    per request
    requests  per acceptance rate; a time is their mean
    """

    method: str
    share: float
    alphas: tuple[float, ...]
    settings: tuple[tuple[str, int], ...]
    tokens: int
    requests: int


class RequestTimes(NamedTuple):
    """Times of one request, or means over several, in target passes.

    ``method``: what the method's code took. ``formula``: what Proposition 1 of the DSI
    paper charges for the very drafts that came: the drafter's time for each right one
    but the last token, the target's time for each other token.
    """

    method: float
    formula: float


def compute_row(row: GridRow) -> list[RequestTimes]:
    """Run a row: the mean times of its requests at each of its acceptance rates."""
    means = []
    for alpha in row.alphas:
        times = [time_request(row, alpha, request) for request in range(row.requests)]
        method, formula = np.mean(times, 0)
        means.append(RequestTimes(float(method), float(formula)))
    return means


def time_request(row: GridRow, alpha: float, request: int) -> RequestTimes:
    """Run one request on the virtual clock and say what it took."""
    cell = ToyCell(
        method=METHODS[row.method],
        latency=Latency.ratio(1 / row.share),
        alpha=alpha,
        tokens=row.tokens,
        settings=dict(row.settings),
    )
    world = open_world(cell, request)
    trace = decode_request(cell, request, world)

    output = world.text[1:]
    agreements = find_agreements(world, (BOS,), output)
    right_drafts = sum(agreements[:-1])
    formula = row.tokens - right_drafts * (1 - row.share)
    return RequestTimes(stats(trace).seconds, formula)
