"""Measures what large vocabularies and long texts cost outside the models."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np

from speclib.core.sampling import Coins, Drafted, Rows, Sampler
from speclib.core.verification import verify
from speclib.data.pairs import ModelSpec, Pair
from speclib.models.toy import BOS
from speclib.worlds.processes import Processes
from speclib.worlds.world import World

from .bench_rows import BenchRow, Size, median_row

VOCABULARIES = (32_000, 152_000, 256_000)
AIMED_AT = 152_000  # the aims are for this vocabulary; for others they are scaled
TOP_P = 0.9
GAMMA = 5
DEVIATION = 3.0  # standard deviation of logits; a real model's is larger
DISAGREEMENT = 0.3  # standard deviation of the draft's logits from the target's

LONG_TEXT = 32_000  # tokens
SHORT_TEXT = 128
WARM_UP = 10  # messages that don't count


# -- a vocabulary ----------------------------------------------------------------------
def sampling(size: Size) -> Iterator[BenchRow]:
    """How long the work on logits outside forward passes takes, in milliseconds.

    We time the sampler with top_p for one distribution, and without it for the
    gamma + 1 distributions of a pass. We also time a keyed random number, and all the
    work for a target pass at temperature 1: the sampler, then the test of gamma drafts.
    """
    for vocab in VOCABULARIES:
        yield from _sampling_rows(vocab, size)


def _sampling_rows(vocab: int, size: Size) -> Iterator[BenchRow]:
    random = np.random.default_rng(vocab)
    logits = random.normal(0, DEVIATION, (GAMMA + 1, vocab)).astype(np.float32)
    noise = random.normal(0, DISAGREEMENT, (GAMMA, vocab)).astype(np.float32)
    q_rows = Sampler(1.0)(logits[:GAMMA] + noise)
    p = Sampler(1.0)(logits[:1])[0]

    nucleus = Sampler(1.0, top_p=TOP_P)
    size_of_nucleus = np.count_nonzero(nucleus(logits[:1]))
    rounds = [Round(Coins(seed), q_rows) for seed in range(_count(size))]

    measures: dict[str, tuple[Callable[[int], object], float, str]] = {
        "top_p, a row": (
            lambda number: nucleus(logits[:1]),
            1.5,
            f"the sampler with top_p {TOP_P}, which keeps {size_of_nucleus:,} tokens",
        ),
        f"sampler, {GAMMA + 1} rows": (
            lambda number: Sampler(1.0)(logits),
            1.5,
            "temperature 1",
        ),
        "a coin": (
            lambda number: Coins(number).choose(p, 0, "draft"),
            0.2,
            "",
        ),
        "a pass beside the model": (
            lambda number: rounds[number].test(logits),
            2.0,
            f"gamma {GAMMA}, temperature 1: the sampler, then the test of the drafts",
        ),
    }
    for name, (act, aim, note) in measures.items():
        yield median_row(
            f"{name}, vocabulary {vocab:,}",
            _milliseconds(act, size),
            "ms",
            note,
            aim=aim * vocab / AIMED_AT,
            at_most=True,
        )


class Round:
    """A round of speculative decoding before the target pass.

    It provides everything that the test of the drafts needs from a world. ``q_rows``:
    [gamma, V].
    """

    text = (BOS,)

    def __init__(self, coins: Coins, q_rows: Rows):
        self.coins = coins
        self.drafted = []
        for position, q in enumerate(q_rows, len(self.text)):
            token = coins.choose(q, position, "draft")
            self.drafted.append(Drafted(token, q))

    def mark(self, drafted: Drafted, outcome: str) -> None:
        """Does nothing, because there is no trace."""

    def test(self, logits: Rows) -> None:
        """Tests the drafts with the target's ``logits`` [gamma + 1, V]."""
        verify(self, self.drafted, Sampler(1.0)(logits))


def _count(size: Size) -> int:
    return size.repeats * size.passes


def _milliseconds(act: Callable[[int], object], size: Size) -> list[float]:
    """How long each call of ``act`` takes; it receives the call's number."""
    act(0)
    times = []
    for number in range(_count(size)):
        started = time.perf_counter()
        act(number)
        times.append(1000 * (time.perf_counter() - started))
    return times


# -- a long text -----------------------------------------------------------------------
def messages(size: Size) -> Iterator[BenchRow]:
    """The time from requesting a pass to receiving its distributions, in milliseconds.

    The target is a toy, which takes hardly any time. Decoding is greedy. After each
    pass, the text continues with tokens other than the scored ones, as after a
    rejection. Long and short texts take turns.
    """
    for vocab in VOCABULARIES:
        longs: list[float] = []
        shorts: list[float] = []
        with Processes(_toys(vocab)) as world:
            for _ in range(size.repeats):
                shorts.append(median(round_trips(world, SHORT_TEXT, size.operations)))
                longs.append(median(round_trips(world, LONG_TEXT, size.operations)))

        yield median_row(
            f"a message, a text of {LONG_TEXT:,} tokens, vocabulary {vocab:,}",
            longs,
            "ms",
            f"{size.operations} each; gamma {GAMMA}; of {SHORT_TEXT} tokens: "
            f"{median(shorts):.3g} ms",
            aim=0.75,
            at_most=True,
        )
        yield BenchRow(
            f"a message of {LONG_TEXT:,} tokens over one of {SHORT_TEXT}, "
            f"vocabulary {vocab:,}",
            median(longs) / median(shorts),
            "ratio",
            aim=1.1,
            at_most=True,
        )


def _toys(vocab: int) -> Pair:
    context = 2 * LONG_TEXT
    return Pair(
        target=ModelSpec(model="toy", vocab=vocab, context=context),
        draft=ModelSpec(model="toy", alpha=0.9, vocab=vocab, context=context),
        name=f"toys of {vocab:,}",
    )


def round_trips(world: World, length: int, count: int) -> list[float]:
    """How long each of ``count`` passes takes after ``length`` tokens, in ms."""
    window = (1,) * GAMMA
    committed = (1, 1, 2)
    limit = (WARM_UP + count) * len(committed)
    world.begin((BOS,) * length, sampler=Sampler(), coins=Coins(), limit=limit)

    times = []
    for _ in range(WARM_UP + count):
        started = time.perf_counter()
        world.wait(world.target.score(world.text + window, GAMMA))
        times.append(1000 * (time.perf_counter() - started))
        world.commit(committed)
    world.end()
    return times[WARM_UP:]
