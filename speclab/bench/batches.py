"""Several requests at a time: what a batch gains, and what drafting is worth in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from typing import Any

from speclib.data import prompts
from speclib.data.latency import Latency
from speclib.data.pairs import load_pair
from speclib.decoding.batch import BatchResult, decode_batch
from speclib.decoding.simulate import simulate_batch
from speclib.worlds.process_batch import ProcessBatch

from .bench_rows import BenchRow, Size, median_row
from .contention import PAIR

BATCHES = (1, 2, 4, 8)
TASK = "humaneval"
TOKENS = 24  # of each request, its end token ignored: so no seat is ever empty
GAMMA = 4
METHODS = {"SD": "speculative", "PEARL": "pearl"}
LARGEST = 128  # requests of a virtual batch
SECONDS = 1.0  # that it may take


def of_real_models(size: Size) -> Iterator[BenchRow]:
    """On embedded/llama-7b-70b, eight requests so many at a time, in turns.

    Tokens per second of all requests together, from the first step to the last: plain
    decoding's over its own of one request at a time, and the methods' over plain
    decoding's of the same batch.
    """
    plain: dict[int, list[float]] = {batch: [] for batch in BATCHES}
    ratios: dict[tuple[str, int], list[float]] = {}
    with ExitStack() as stack:
        worlds = {}
        for batch in BATCHES:
            worlds[batch] = stack.enter_context(ProcessBatch(load_pair(PAIR), batch))
        for _, batch in product(range(size.repeats), BATCHES):
            throughput = _decode("autoregressive", worlds[batch]).throughput
            plain[batch].append(throughput)
            for name, method in METHODS.items():
                own = _decode(method, worlds[batch], gamma=GAMMA).throughput
                ratios.setdefault((name, batch), []).append(own / throughput)

    for batch in BATCHES[1:]:
        gains = [many / one for many, one in zip(plain[batch], plain[1], strict=True)]
        yield median_row(
            f"plain decoding, batch {batch} over batch 1, {PAIR}",
            gains,
            "ratio",
            note=f"throughput, {TOKENS} tokens of each request, padded passes",
            aim=float(batch),  # more would mean that passes over one token are slow
            at_most=True,
        )
    for (name, batch), of_repeats in ratios.items():
        yield median_row(
            f"{name} over plain decoding, batch {batch}, {PAIR}",
            of_repeats,
            "ratio",
            note=f"throughput, gamma {GAMMA}",
        )


def _decode(method: str, world: ProcessBatch, **settings: Any) -> BatchResult:
    asked = [prompt.input for prompt in prompts.load(TASK, max(BATCHES))]
    return decode_batch(
        asked,
        world=world,
        method=method,
        max_new_tokens=TOKENS,
        ignore_eos=True,
        **settings,
    )


def of_the_virtual_clock(size: Size) -> Iterator[BenchRow]:
    """A batch as large as any that a slider asks for."""
    latency = Latency.ratio(5, 0.1).lengthened(0.01)
    taken = []
    for seed in range(size.repeats):
        started = time.perf_counter()
        simulate_batch("pearl", gamma=4, batch=LARGEST, latency=latency, seed=seed)
        taken.append(time.perf_counter() - started)
    yield median_row(
        f"a virtual batch of {LARGEST}",
        taken,
        "s",
        note="PEARL, 32 tokens of each request",
        aim=SECONDS,
        at_most=True,
    )
