"""One request of a virtual cell on emulated devices: its toys in worker processes, wall-clock.

The decisions are the virtual cell's, since the toys and the coins are; only the clock differs.
Knows no paper and no cache.
"""

from __future__ import annotations

from speclib.data.latency import Latency
from speclib.data.pairs import ModelSpec, Pair
from speclib.trace.events import Trace
from speclib.worlds.processes import Processes

from .virtual import CANCEL, decode, script


def trace(
    method,
    latency: Latency,
    alpha: float,
    *,
    tokens: int,
    seed: int,
    request: int,
    cancel: str | None = None,
    **settings,
) -> Trace:
    """The trace of one request; ``settings`` as in ``virtual_cells.trace``."""
    same = script(tokens, seed, request)
    pair = Pair(
        target=ModelSpec(model="toy", **same),
        name="toys",
        draft=ModelSpec(model="toy", alpha=alpha, **same),
    )
    with Processes(
        pair,
        servers=settings.get("servers", 1),
        cancel=cancel or CANCEL,
        emulate=latency,
    ) as world:
        return decode(
            world, method, alpha, tokens=tokens, seed=seed, request=request, **settings
        )
