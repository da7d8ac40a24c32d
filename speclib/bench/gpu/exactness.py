"""Whether every method writes what plain decoding writes, in real processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from speclib.bench.exact_outputs import (
    FIXED_ROWS,
    PLAIN,
    WITH_HEAD,
    WITH_OWN_DRAFT,
    Arithmetic,
    divergences,
    with_own_head,
    written,
)
from speclib.bench.rows import BenchRow
from speclib.data import prompts
from speclib.data.pairs import Pair
from speclib.worlds.processes import Processes

from .setup import Setup

TASK = "humaneval"

# In bfloat16 with passes of any shape outputs may differ: that is shown, not promised.
PROMISED = (Arithmetic("float32"), Arithmetic("bfloat16", FIXED_ROWS))
SHOWN = (Arithmetic("bfloat16"),)


def exactness(setup: Setup) -> Iterator[BenchRow]:
    """For each method the share of prompts on which its greedy output is plain's."""
    pair = setup.exact_pair()
    for arithmetic in (*PROMISED, *SHOWN):
        yield from _compared(setup, pair, WITH_OWN_DRAFT, arithmetic)
        yield from _compared(setup, with_own_head(pair), [WITH_HEAD], arithmetic)


def _compared(
    setup: Setup, pair: Pair, methods: Sequence[str], arithmetic: Arithmetic
) -> Iterator[BenchRow]:
    """A row for each of ``methods``, all of them in one world."""
    aim = 1.0 if arithmetic in PROMISED else None
    texts = [prompt.input for prompt in prompts.load(TASK, setup.prompts)]
    with Processes(arithmetic.of(pair), dtype=arithmetic.dtype) as world:
        plain = written(world, PLAIN, texts, setup.tokens, ignore_eos=True)
        for method in methods:
            differing = divergences(
                world, method, texts, plain, setup.tokens, ignore_eos=True
            )
            yield BenchRow(
                f"outputs that are plain decoding's, {method}, {arithmetic}",
                1 - len(differing) / len(texts),
                "share",
                aim=aim,
                note="; ".join(map(str, differing)),
            )
