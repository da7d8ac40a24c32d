"""What a device can be asked to do. Operations are values: they carry their whole prefix.

A worker keeps what it can of its KV cache (``Prefix``) and feeds the rest, so no method ever
handles rollback. ``run`` is the worker's part; ``result`` the controller's: what the future gives
and what the trace shows, where ``drafted(tokens, rows)`` makes Drafted tokens. Operations do not
know which world runs them.
"""

from __future__ import annotations

from typing import NamedTuple

from speclib.core.sampling import Coins, Sampler


class Request(NamedTuple):
    """One decoding run: ``run`` is unique (a new run starts with an empty KV cache)."""

    run: int
    coins: Coins
    sampler: Sampler
    eos: frozenset[int] = frozenset()


class Stopped(Exception):
    """Raised by a model whose ``stopped()`` says that its pass is wanted no more."""


class Done(NamedTuple):
    """A finished operation: its result, KV tokens kept before it, tokens fed by it."""

    value: object
    kept: int
    fed: int


def perform(op, model, request: Request) -> Done:
    """Runs ``op`` on ``model``, which starts from an empty cache when the run is a new one."""
    if getattr(model, "run", None) != request.run:
        model.run = request.run
        model.reset()
    kept, before = (
        model.prefix.keep(op.text, getattr(op, "last", 0)),
        model.prefix.count,
    )
    value = op.run(model, request)
    return Done(value, kept, model.prefix.count - before)


def reached(op, done: Done, share: float) -> Done:
    """What of ``done`` there was after ``share`` of its time: the passes that were over then, all
    taken as equally long, and what they had drafted; of sequences nothing."""
    tokens, rows = ((), None) if op.name == "score" else done.value
    over = (
        min(len(tokens), int(len(tokens) * share + 1e-9)) if op.name == "propose" else 0
    )
    fed = done.fed - len(tokens) + over if over else 0
    return Done(None if rows is None else (tokens[:over], rows[:over]), done.kept, fed)
