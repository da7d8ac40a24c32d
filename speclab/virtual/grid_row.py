"""Computes a row of a heatmap: a method at one drafter latency, for all alphas."""

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
    """The arguments of one row.

    method    name of the method
    share     the time of a draft pass divided by the time of a target pass
    alphas    acceptance rates, the columns of the grid
    settings  of the method; ``servers`` is also the number of target devices
    tokens    tokens per request
    requests  number of requests per acceptance rate, over which times are averaged
    """

    method: str
    share: float
    alphas: tuple[float, ...]
    settings: tuple[tuple[str, int], ...]
    tokens: int
    requests: int


class RequestTimes(NamedTuple):
    """Times of one request, or means over several, in target passes.

    ``method``: the time that the method takes. ``formula``: the time according to
    Proposition 1 of the DSI paper for the same drafts. It charges the drafter's time
    for each right draft except the last token, and the target's time for every other
    token.
    """

    method: float
    formula: float


def compute_row(row: GridRow) -> list[RequestTimes]:
    """Computes a row: the mean times of its requests at each acceptance rate."""
    means = []
    for alpha in row.alphas:
        times = [time_request(row, alpha, request) for request in range(row.requests)]
        method, formula = np.mean(times, 0)
        means.append(RequestTimes(float(method), float(formula)))
    return means


def time_request(row: GridRow, alpha: float, request: int) -> RequestTimes:
    """Runs one request on the virtual clock, and returns its times."""
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
