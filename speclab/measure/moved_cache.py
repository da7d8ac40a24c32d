"""Measures how long it takes to move a draft's KV cache from one replica to another.

Each replica is a separate process, as in a measured pair.
"""

from __future__ import annotations

import time
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from speclib.core.sampling import Sampler
from speclib.core.settings import Role
from speclib.data.pairs import Pair
from speclib.errors import BadValue, SpeclibError
from speclib.models.open_pair import open_pair
from speclib.worlds.performer import Failure, pin
from speclib.worlds.worker import Worker

if TYPE_CHECKING:
    from speclib.models.loading import Rank

ROLE: Role = "draft"
WARM_UP = 2  # warm-up moves for each length
PATIENCE = 300.0  # seconds to build the models, and to make all moves


def measure_transport(
    pair: Pair, lengths: tuple[int, ...], repeats: int
) -> dict[int, list[float]]:
    """How long each move of the cache takes, by the number of cached tokens.

    A move is timed from the request until the other replica has received the cache.
    Times are in seconds. Raises BadValue for a pair whose draft has no replicas.
    """
    ranks = open_pair(pair).ranks(ROLE)
    if pair.draft.spread != "replicas" or ranks < 2:
        raise BadValue(
            f"the draft of pair {pair.name!r} has no replicas to move a cache between: "
            'give a pair whose draft has spread = "replicas" and two places'
        )
    worker = Worker("draft", pair, _start, ranks=ranks, patience=PATIENCE)
    try:
        _receive(worker)  # it is ready
        worker.pipe.send((lengths, repeats))
        seconds: dict[int, list[float]] = _receive(worker)
        return seconds
    finally:
        worker.stop()


def _receive(worker: Worker) -> Any:
    answer = worker.receive(PATIENCE)
    if isinstance(answer, Failure):
        raise SpeclibError(f"moving the cache of a draft failed: {answer.cause}")
    return answer


def _start(pair: Pair, rank: Rank) -> Any:
    """Builds one replica; the first one replies with how long the moves took."""
    opened = open_pair(pair)
    places = opened.place.of(ROLE)
    pin(places[rank.number : rank.number + 1], pair.place.threads)
    model = opened.build(ROLE, rank=rank)
    return model if rank.number else partial(_move_often, model)


def _move_often(
    model: Any, message: tuple[tuple[int, ...], int], pipe: Connection
) -> dict[int, list[float]]:
    lengths, repeats = message
    seconds: dict[int, list[float]] = {}
    for length in lengths:
        times = [_time_move(model, length) for _ in range(WARM_UP + repeats)]
        seconds[length] = times[WARM_UP:]
    return seconds


def _time_move(model: Any, length: int) -> float:
    """How long it takes until the last replica has received the first one's cache."""
    model.reset()
    model.rows((1,) * length, 0, Sampler())
    model.go_to_first()  # returns when the other replicas have followed

    start = time.perf_counter()
    model.go_to_last()
    # Nothing is left to move, so this returns as soon as the last replica is done.
    model.go_to_last()
    seconds = time.perf_counter() - start
    model.go_to_first()
    return seconds
