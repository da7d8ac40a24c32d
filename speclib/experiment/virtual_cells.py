"""One virtual cell: a method's real code on the virtual clock, between toys of exact acceptance.

Request i uses the toys of seed i, whatever the method, window or pair: methods are compared on
the same agreements (common random numbers). Knows no paper and no cache.
"""

from __future__ import annotations

from ..latency import Latency
from ..metrics import Stats, stats
from ..models.toy import BOS, Toy
from ..tokens import Coins, Sampler
from ..trace import Trace
from ..virtual import Virtual

ROOM = 256                  # tokens a method may draft beyond the last one it commits


def run(method, latency: Latency, alpha: float, *, requests: int, tokens: int,
        temperature: float = 0.0, seed: int = 0, **settings) -> list[Stats]:
    """Statistics of ``requests`` requests of ``tokens`` tokens each; ``settings`` (gamma, ...) go
    to ``method``."""
    return [stats(trace(method, latency, alpha, tokens=tokens, temperature=temperature, seed=seed,
                        request=i, **settings)) for i in range(requests)]


def trace(method, latency: Latency, alpha: float, *, tokens: int, temperature: float = 0.0,
          seed: int = 0, request: int = 0, **settings) -> Trace:
    """The trace of one request."""
    return decode(world(latency, alpha, tokens=tokens, seed=seed, request=request), method, alpha,
                  tokens=tokens, temperature=temperature, seed=seed, request=request, **settings)


def decode(world, method, alpha: float, *, tokens: int, temperature: float = 0.0, seed: int = 0,
           request: int = 0, on_commit=None, **settings) -> Trace:
    """The trace of one request in any world of its toys."""
    world.begin((BOS,), sampler=Sampler(temperature), coins=Coins(seed, request), limit=tokens,
                on_commit=on_commit)
    method(world, **settings)
    return world.end(alpha=alpha, prompt=[BOS], **settings)


def world(latency: Latency, alpha: float, *, tokens: int, seed: int = 0,
          request: int = 0) -> Virtual:
    """A target and a draft that agree with probability alpha at each of ``tokens`` positions."""
    same = script(tokens, seed, request)
    return Virtual({"draft": Toy(alpha, **same), "target": Toy(None, **same)}, latency)


def script(tokens: int, seed: int, request: int) -> dict[str, int]:
    """What the toys of a request have in common."""
    return {"seed": seed * 100_003 + request, "context": tokens + ROOM}
