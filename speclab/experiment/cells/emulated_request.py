"""One emulated cell: a virtual cell's toys in worker processes, in real time.

The method decides as in the virtual cell, since the toys and the coins are the same;
only the clock differs. Knows no paper and no cache.
"""

from __future__ import annotations

from collections.abc import Callable

from speclib.core.sampling import Tokens
from speclib.data.pairs import ModelSpec, Pair
from speclib.trace.events import Trace
from speclib.worlds.processes import Processes

from .toy_requests import ToyCell, decode_request


def trace_request(
    cell: ToyCell,
    request: int,
    on_commit: Callable[[Tokens], object] | None = None,
) -> Trace:
    """Run one request in worker processes that take as long as the latency says.

    ``on_commit`` is called with the tokens of every commit.
    """
    toy_settings = cell.toy_settings(request)
    pair = Pair(
        target=ModelSpec(model="toy", **toy_settings),
        draft=ModelSpec(model="toy", alpha=cell.alpha, **toy_settings),
        name="toys",
    )
    with Processes(
        pair, servers=cell.servers, cancel=cell.cancel, emulate=cell.latency
    ) as world:
        return decode_request(cell, request, world, on_commit)
