"""One virtual cell: a method's real code on the virtual clock, between toys of exact acceptance.

Request i uses the toys of seed i, whatever the method, window or pair: methods are compared on
the same agreements (common random numbers). Knows no paper and no cache.
"""

from __future__ import annotations

from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.models.toy import BOS, Toy
from speclib.trace.events import Trace
from speclib.trace.metrics import Stats, stats
from speclib.trace.rounds import sequence_choices
from speclib.worlds.devices import device_names
from speclib.worlds.virtual import Virtual

CANCEL = "immediate"  # what papers mean by "terminate"
ROOM = 256  # tokens a method may draft beyond the last one it commits


def run(
    method, latency: Latency, alpha: float, *, requests: int, **settings
) -> list[tuple[Stats, list]]:
    """Statistics and branches of ``requests`` requests; ``settings`` as in ``trace``."""
    traces = (
        trace(method, latency, alpha, request=i, **settings) for i in range(requests)
    )
    return [(stats(one), sequence_choices(one)) for one in traces]


def trace(
    method,
    latency: Latency,
    alpha: float,
    *,
    tokens: int,
    temperature: float = 0.0,
    seed: int = 0,
    request: int = 0,
    cancel: str | None = None,
    doubt: float = 0.0,
    **settings,
) -> Trace:
    """The trace of one request; ``settings`` (gamma, ...) go to ``method``. ``servers``, which a
    method may have, is also how many targets there are; otherwise one."""
    opened = world(
        latency,
        alpha,
        tokens=tokens,
        seed=seed,
        request=request,
        cancel=cancel,
        servers=settings.get("servers", 1),
        doubt=doubt,
    )
    return decode(
        opened,
        method,
        alpha,
        tokens=tokens,
        temperature=temperature,
        seed=seed,
        request=request,
        **settings,
    )


def decode(
    world,
    method,
    alpha: float,
    *,
    tokens: int,
    temperature: float = 0.0,
    seed: int = 0,
    request: int = 0,
    on_commit=None,
    **settings,
) -> Trace:
    """The trace of one request in any world of its toys."""
    world.begin(
        (BOS,),
        sampler=Sampler(temperature),
        coins=Coins(seed, request),
        limit=tokens,
        on_commit=on_commit,
    )
    method(world, **settings)
    return world.end(alpha=alpha, prompt=[BOS], **settings)


def world(
    latency: Latency,
    alpha: float,
    *,
    tokens: int,
    seed: int = 0,
    request: int = 0,
    servers: int = 1,
    cancel: str | None = None,
    doubt: float = 0.0,
) -> Virtual:
    """A draft and ``servers`` equal targets that it agrees with at each of ``tokens`` positions
    with probability alpha, and with ``doubt`` knows something of when."""
    same = script(tokens, seed, request)
    models = {
        name: Toy(**same)
        if name.startswith("target")
        else Toy(alpha, **same, doubt=doubt)
        for name in device_names(servers)
    }
    return Virtual(models, latency, cancel=cancel or CANCEL)


def script(tokens: int, seed: int, request: int) -> dict[str, int]:
    """What the toys of a request have in common."""
    return {"seed": seed * 100_003 + request, "context": tokens + ROOM}
