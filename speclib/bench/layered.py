"""What a draft gains when several ranks share its layers, and what the ranks' meetings cost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import NamedTuple

from speclib.core.sampling import Sampler
from speclib.data.pairs import Pair, load_pair
from speclib.errors import SpeclibError
from speclib.models import factory
from speclib.worlds.worker import Failure, Rank, pin
from speclib.worlds.worker_process import Worker

from .rows import Row, Size, middle

PAIR = "embedded/easyspec"
SHAPE = (
    32,
    512,
    8,
    352,
)  # deep as Llama 3 8B; two thirds of a layer's weights are attention
LP = 4
CONTEXTS = (128, 1536)  # tokens cached: attention grows with them, MLPs don't


class Passes(NamedTuple):
    """Median seconds of a drafting pass of one token; the share of it spent waiting for others."""

    seconds: float
    waiting: float


def drafting(size: Size) -> Iterator[Row]:
    """A fuzzy pass of embedded/easyspec's draft, dilated to SHAPE, on its two ranks, on one, and an
    exact pass on one, in turns, ``size.repeats`` times ``size.passes`` of each. Ratios are of
    repeats' medians."""
    pair, found = load_pair(PAIR), {}
    pair = pair.model_copy(
        update={"draft": pair.draft.model_copy(update={"shape": SHAPE})}
    )
    with ExitStack() as open_:
        both, alone = (
            open_.enter_context(Drafter(p)) for p in (pair, on_the_first(pair))
        )
        ways = {
            "fuzzy": (both, LP),
            "fuzzy on one": (alone, LP),
            "exact on one": (alone, 1),
        }
        for context in CONTEXTS:
            for drafter, lp in ways.values():
                drafter.passes(lp, context, 2)  # warms up
            found[context] = {way: [] for way in ways}
            for _ in range(size.repeats):
                for way, (drafter, lp) in ways.items():
                    found[context][way].append(drafter.passes(lp, context, size.passes))
    for context, ways in found.items():
        where = f"{PAIR} with {SHAPE[0]} layers, {context} tokens cached"
        milliseconds = ", ".join(
            f"{way} {1000 * median(p.seconds for p in passes):.3g} ms"
            for way, passes in ways.items()
        )
        fuzzy, *others = ways.items()
        for way, passes in others:
            yield middle(
                f"draft pass with {LP} layers at once on 2 ranks over {way}, {where}",
                [
                    one.seconds / two.seconds
                    for one, two in zip(passes, fuzzy[1], strict=True)
                ],
                "ratio",
                milliseconds,
            )
        yield middle(
            f"share of that pass in which its ranks meet, {where}",
            [p.waiting for p in fuzzy[1]],
            "ratio",
            "waiting for the other one included",
        )


def on_the_first(pair: Pair) -> Pair:
    """The pair with its draft on one place."""
    place = pair.place.model_copy(update={"draft": pair.place.draft[:1]})
    return pair.model_copy(update={"place": place})


class Drafter:
    """The draft of ``pair`` on its ranks, until its context ends."""

    def __init__(self, pair: Pair):
        self.worker = Worker(
            "drafter", pair, clocked, ranks=factory.ranks(pair, "draft")
        )

    def __enter__(self):
        self._received()  # it is ready
        return self

    def passes(self, *what) -> Passes:
        """See ``timed``."""
        self.worker.pipe.send(what)
        return self._received()

    def _received(self):
        answer = self.worker.receive(300)
        if isinstance(answer, Failure):
            raise SpeclibError(f"the draft of {PAIR} failed: {answer.cause}")
        return answer

    def __exit__(self, *exc):
        self.worker.stop()


def clocked(pair: Pair, rank: Rank | None = None):
    """In a worker: builds the draft; what answers (lp, context, count) with Passes."""
    places = factory.place(pair).of("draft")
    pin(places[rank.number :][:1] if rank else places, pair.place.threads)
    model = factory.build(pair, "draft", rank=rank)
    return model if rank and rank.number else partial(timed, model, Clock(model))


class Clock:
    """The ranks of ``model``, whose meetings are timed from now on."""

    def __init__(self, model):
        owner = getattr(model, "model", model)  # behind the leader of several
        self.ranks, owner.ranks, self.seconds = owner.ranks, self, 0.0
        self.rank, self.size = self.ranks.rank, self.ranks.size

    def gather(self, tensor):
        begun = time.perf_counter()
        found = self.ranks.gather(tensor)
        self.seconds += time.perf_counter() - begun
        return found


def timed(model, clock: Clock, message, pipe) -> Passes:
    """Of ``count`` passes of one token, after one over ``context`` tokens."""
    lp, context, count = message
    text, seconds, waited = (1,) * context, [], []
    with model.drafting(lp, True):
        for n in range(count + 1):
            begun, clock.seconds = time.perf_counter(), 0.0
            model.rows(text + (1,) * n, 0, Sampler())
            seconds.append(time.perf_counter() - begun)
            waited.append(clock.seconds)
    return Passes(median(seconds[1:]), sum(waited[1:]) / sum(seconds[1:]))
