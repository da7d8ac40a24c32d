"""Models that two ranks compute, in each layout that a model can have.

With one GPU both ranks are on it, and their tensors meet in the machine's memory; that
runs all of the code but NCCL. With two GPUs each rank has one, and it is NCCL.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from speclab.bench.bench_rows import BenchRow
from speclab.bench.exact_outputs import PLAIN, written
from speclib.core.sampling import Tokens
from speclib.worlds.processes import Processes

from .exactness import FLOAT32, compared_in, texts_of
from .setup import Setup

# The layouts of target and draft, and what is run so.
LAYOUTS = (
    ("tensors", "layers", ("easyspec", "pearl")),
    ("stages", "replicas", ("pearl", "speculative")),
)


def on_two_ranks(setup: Setup) -> Generator[BenchRow]:
    """Whether models on two ranks write what one process writes, in float32."""
    whole = setup.exact_pair()
    with Processes(whole, dtype=FLOAT32.dtype) as world:
        texts = texts_of(setup)
        expected = written(world, PLAIN, texts, setup.tokens, ignore_eos=True)

    for target_layout, draft_layout, methods in LAYOUTS:
        pair = setup.pair_on_two_ranks(target_layout, draft_layout)
        how = f"target by {target_layout}, draft by {draft_layout}, {FLOAT32}"
        with Processes(pair, dtype=FLOAT32.dtype) as world:
            found = written(world, PLAIN, texts, setup.tokens, ignore_eos=True)
            yield _same_outputs(how, expected, found)
            yield from compared_in(world, setup, methods, how, promised=methods)


def _same_outputs(
    how: str, expected: Sequence[Tokens], found: Sequence[Tokens]
) -> BenchRow:
    same = [one == other for one, other in zip(expected, found, strict=True)]
    return BenchRow(
        f"outputs that are one process's, plain decoding, {how}",
        sum(same) / len(same),
        "share",
        aim=1.0,
    )
