"""Several requests at a time on a device: are they exact, and what do they gain?"""

from __future__ import annotations

from collections.abc import Generator
from itertools import product
from typing import Any

from speclab.bench.bench_rows import BenchRow, join_notes, median_row
from speclab.bench.exact_outputs import PLAIN
from speclib.core.sampling import Tokens
from speclib.data import prompts
from speclib.decoding.batch import BatchResult, decode_batch
from speclib.methods import parameters
from speclib.worlds.process_batch import ProcessBatch

from .exactness import FLOAT32, IN_A_LINE, ONE_SHAPE, TASK, counts_of
from .setup import Setup

SEATS = 4
REPEATS = 2
RACERS = {"SD": "speculative", "PEARL": "pearl"}
GAMMA = 4

# A method with several targets does not wait for all of them.
IN_STEP = tuple(name for name in IN_A_LINE if "servers" not in parameters(name))


def exact(setup: Setup) -> Generator[BenchRow]:
    """For each method the share of requests that write plain decoding's tokens.

    In float32 those of plain decoding alone, and in bfloat16, with passes of one shape,
    those of plain decoding with as many seats.
    """
    with ProcessBatch(setup.exact_pair(), 1, dtype="float32") as alone:
        plain = _outputs(alone, PLAIN, setup)
    for arithmetic in (FLOAT32, ONE_SHAPE):
        pair = arithmetic.apply_to(setup.exact_pair())
        with ProcessBatch(pair, SEATS, dtype=arithmetic.dtype) as world:
            methods = IN_STEP
            if arithmetic is FLOAT32:
                methods = (PLAIN, *IN_STEP)
            else:
                plain = _outputs(world, PLAIN, setup)
            for method in methods:
                outputs = _outputs(world, method, setup)
                same = sum(a == b for a, b in zip(outputs, plain, strict=True))
                yield BenchRow(
                    f"outputs that are plain decoding's, {method}, {arithmetic}, "
                    f"requests at a time: {SEATS}",
                    same / len(plain),
                    "share",
                    aim=1.0,
                )


def _outputs(world: ProcessBatch, method: str, setup: Setup) -> list[Tokens]:
    more_than_seats = [prompt.input for prompt in prompts.load(TASK, SEATS + 2)]
    batch = decode_batch(
        more_than_seats,
        world=world,
        method=method,
        max_new_tokens=setup.tokens // 2,
        ignore_eos=True,
        **counts_of(method),
    )
    return [result.tokens for result in batch.results]


def gains(setup: Setup) -> Generator[BenchRow]:
    """What methods gain over plain decoding of the same batch, in padded passes.

    The draft is on a CPU, so that both devices work at the same time. Ratios are of the
    tokens per second of all requests together.
    """
    pair = setup.draft_in_torch_on_the_cpu()
    note = join_notes(
        "float32",
        f"throughput, {setup.batch_tokens} tokens of each request",
        f"draft in torch on the CPU, threads: {pair.place.threads}",
        "passes launched one by one",
    )
    one_by_one: list[float] = []
    for seats in setup.batches:
        with ProcessBatch(pair, seats, dtype="float32") as world:
            _race(world, "speculative", 2)
            plain: list[float] = []
            ratios: dict[str, list[float]] = {name: [] for name in RACERS}
            for _, name in product(range(REPEATS), [PLAIN, *RACERS]):
                if name == PLAIN:
                    plain.append(_race(world, PLAIN, setup.batch_tokens).throughput)
                    continue
                own = _race(world, RACERS[name], setup.batch_tokens).throughput
                ratios[name].append(own / plain[-1])

        one_by_one = one_by_one or plain
        if seats > 1:
            gained = [many / one for many, one in zip(plain, one_by_one, strict=True)]
            name = f"plain decoding, requests at a time: {seats}, over one at a time"
            yield median_row(name, gained, "ratio", note)
        for name, own_ratios in ratios.items():
            name = f"{name} over plain decoding, requests at a time: {seats}"
            yield median_row(name, own_ratios, "ratio", note)


def _race(world: ProcessBatch, method: str, tokens: int) -> BatchResult:
    """A request for each seat. Its end token is ignored, so no seat is ever empty."""
    asked = [prompt.input for prompt in prompts.load(TASK, len(world.seats))]
    settings: dict[str, Any] = {} if method == PLAIN else {"gamma": GAMMA}
    return decode_batch(
        asked,
        world=world,
        method=method,
        max_new_tokens=tokens,
        ignore_eos=True,
        **settings,
    )
