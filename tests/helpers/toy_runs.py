"""Runs of two small toy models whose tokens are hard to display."""

from __future__ import annotations

from types import SimpleNamespace

from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.methods import METHODS
from speclib.models.toy import Toy
from speclib.worlds.virtual import Virtual

WORDS = [
    "def",
    " fib",
    "(",
    "n",
    "):",
    "\n",
    "    ",
    "return",
    " <b>&\"'",
    " 数",
    "\x00",
]
PIECES = dict(enumerate(WORDS, 1))


def toy_run(
    method: str,
    limit: int = 24,
    alpha: float = 0.8,
    c: float = 3.0,
    target: float = 0.05,
    **settings: object,
) -> SimpleNamespace:
    """Runs two toy models on the virtual clock."""
    models = {
        "draft": Toy(alpha, 12, 1, tuple(PIECES)),
        "target": Toy(None, 12, 1, tuple(PIECES)),
    }
    world = Virtual(models, Latency.ratio(c, target))
    settings = {} if method == "autoregressive" else settings
    world.begin((0,), sampler=Sampler(), coins=Coins(0), limit=limit)
    METHODS[method](world, **settings)
    return SimpleNamespace(trace=world.end(method=method, **settings), pieces=PIECES)


def toy_runs(**settings: object) -> list[SimpleNamespace]:
    """Runs plain decoding, speculative decoding and PEARL."""
    return [
        toy_run("autoregressive", **settings),
        toy_run("speculative", gamma=3, **settings),
        toy_run("pearl", gamma=3, **settings),
    ]
