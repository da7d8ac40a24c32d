"""What a device can be asked to do. Operations are values: they carry their whole prefix.

A worker keeps what it can of its KV cache (``Prefix``) and feeds the rest, so no method ever
handles rollback. ``run`` is the worker's part; ``result`` the controller's: what the future gives
and what the trace shows, where ``drafted(tokens, rows)`` makes Drafted tokens. Operations do not
know which world runs them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .tokens import Coins, Sampler


class Request(NamedTuple):
    """One decoding run: ``run`` is unique (a new run starts with an empty KV cache)."""

    run: int
    coins: Coins
    sampler: Sampler
    eos: frozenset[int] = frozenset()


class Stopped(Exception):
    """Raised by a model whose ``stopped()`` says that its pass is wanted no more."""


class Prefix:
    """The tokens a KV cache holds: exactly those fed, in order. ``count``: all ever fed to it."""

    def __init__(self):
        self.fed: list[int] = []
        self.count = 0

    def keep(self, text, last: int = 0) -> int:
        """How many cached tokens serve ``text`` when its last ``last`` + 1 rows are wanted."""
        ours, theirs = self.fed, list(text)
        low, high = 0, min(len(ours), len(theirs) - last - 1)
        same = high                         # slices compare at C speed: guess all, then bisect
        while low < high:
            if ours[low:same] == theirs[low:same]:
                low = same
            else:
                high = same - 1
            same = (low + high + 1) // 2
        return low

    def move(self, text, kept: int) -> None:
        """The cache now holds all of ``text``, the first ``kept`` of it from before."""
        self.count += len(text) - kept
        self.fed[kept:] = text[kept:]

    def cut(self, length: int) -> None:
        del self.fed[length:]


class Propose(NamedTuple):
    """Draft ``n`` tokens after ``text``; the result is (tokens, their q rows [n, V]).

    With a ``confidence`` drafting ends sooner: after an end token, or after a token less probable
    to the draft than that (greedy: than it was at temperature 1, since q is one-hot). Stopped, it
    ends with the tokens it has.
    """

    text: tuple[int, ...]
    n: int
    index: int = 0
    confidence: float | None = None
    name = "propose"

    def concerns(self, text) -> bool:
        """Whether it can still say what may follow ``text``."""
        same = self.text[:len(text)] == text[:len(self.text)]
        return same and len(self.text) + self.n > len(text)

    def run(self, model, request: Request):
        text, rows = list(self.text), []
        for _ in range(self.n):
            try:
                row = model.rows(text, 0, request.sampler)[0]
            except Stopped:
                break
            token = request.coins.choose(row, len(text), "draft", self.index)
            text.append(token)
            rows.append(row)
            if self.confidence is not None and (token in request.eos or self.confidence > (
                    model.chances() if request.sampler.greedy else row)[token]):
                break
        return tuple(text[len(self.text):]), np.stack(rows) if rows else np.empty((0, model.vocab))

    def result(self, value, kept: int, fed: int, drafted):
        return drafted(*value), {"tokens": tuple(value[0])}


class Score(NamedTuple):
    """The distributions after text[:-last] ... text; the result is rows [last + 1, V]."""

    text: tuple[int, ...]
    last: int = 0
    name = "score"

    @property
    def texts(self) -> tuple[tuple[int, ...], ...]:
        """What the rows follow, in their order."""
        return tuple(self.text[:n] for n in range(len(self.text) - self.last, len(self.text) + 1))

    def concerns(self, text) -> bool:
        return self.text[:len(text)] == text

    def run(self, model, request: Request):
        try:
            return model.rows(self.text, self.last, request.sampler)
        except Stopped:
            return None

    def result(self, value, kept: int, fed: int, drafted):
        return value, {"tokens": self.text[kept:]}


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
    kept, before = model.prefix.keep(op.text, getattr(op, "last", 0)), model.prefix.count
    value = op.run(model, request)
    return Done(value, kept, model.prefix.count - before)


def reached(op, done: Done, share: float) -> Done:
    """What of ``done`` there was after ``share`` of its time: the passes that were over then, all
    taken as equally long, and what they had drafted; of sequences nothing."""
    tokens, rows = ((), None) if op.name == "score" else done.value
    over = min(len(tokens), int(len(tokens) * share + 1e-9)) if op.name == "propose" else 0
    fed = done.fed - len(tokens) + over if over else 0
    return Done(None if rows is None else (tokens[:over], rows[:over]), done.kept, fed)
