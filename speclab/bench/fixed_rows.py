"""Is greedy output exact in bfloat16, and what do passes of one shape cost for it?

`python -m speclab.bench.fixed_rows --prompts 100 --tokens 128` asks of every method and
prompt whether its output is plain decoding's: in float32 and bfloat16, with passes of
as many tokens as are new, and with passes of one shape.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from speclib.core.sampling import Sampler
from speclib.data import prompts
from speclib.data.pairs import load_pair
from speclib.decoding.decode import open_world
from speclib.models.open_pair import open_pair

from .bench_rows import FULL, BenchRow, Size, median_row
from .exact_outputs import (
    FIXED_ROWS,
    PLAIN,
    WITH_HEAD,
    WITH_OWN_DRAFT,
    Arithmetic,
    Divergence,
    divergences,
    with_own_head,
    written,
)

PAIR = "embedded/llama-7b-70b"
PER_TASK = 12  # prompts at most, so that not all are of one task
TASKS = ("humaneval", "gsm8k", "qa", "summarization", "translation", "rag", "mt_bench")
TEXT_LENGTH = 100  # tokens of the text behind which passes are timed
METHODS = (*WITH_OWN_DRAFT, WITH_HEAD)
FED = (1, 6, 16)  # tokens that are new in a timed pass


# -- whether outputs are equal ---------------------------------------------------------
def differing(
    arithmetic: Arithmetic,
    texts: Sequence[Any],
    tokens: int,
    methods: Sequence[str] = METHODS,
) -> dict[str, list[Divergence]]:
    """Where each method's outputs leave plain decoding's, by its name.

    The models are the embedded ones, undilated; every method runs on the virtual clock.
    """
    pair = load_pair(PAIR)
    found = {}
    for own_pair, drafting_so in (
        (pair, WITH_OWN_DRAFT),
        (with_own_head(pair), (WITH_HEAD,)),
    ):
        wanted = [method for method in drafting_so if method in methods]
        if not wanted:
            continue
        described = arithmetic.apply_to(own_pair)
        with open_world("virtual", described, dtype=arithmetic.dtype) as world:
            plain = written(world, PLAIN, texts, tokens, ignore_eos=False)
            for method in wanted:
                found[method] = divergences(
                    world, method, texts, plain, tokens, ignore_eos=False
                )
                count = len(found[method])
                print(f"{arithmetic}: {method}: {count} differ", flush=True)
    return found


# -- what it costs ---------------------------------------------------------------------
def passes(size: Size = FULL) -> Iterator[BenchRow]:
    """Seconds of a pass with one shape over those of a pass that is as short as can be.

    Both are made in turns, on the target of the stand-in as it is measured.
    """
    for dtype in ("float32", "bfloat16"):
        free = open_pair(load_pair(PAIR)).build("target", dtype)
        with_fixed_rows = load_pair(PAIR).with_fixed_rows(FIXED_ROWS)
        fixed = open_pair(with_fixed_rows).build("target", dtype)
        for fed in FED:
            ratios = []
            for _ in range(size.passes):
                ratios.append(
                    _seconds_of_pass(fixed, fed) / _seconds_of_pass(free, fed)
                )
            yield median_row(
                f"pass of {fed} tokens in {FIXED_ROWS} rows over {fed} rows, {dtype}",
                ratios,
                "ratio",
                note=f"{PAIR}, behind {TEXT_LENGTH} tokens",
            )


def _seconds_of_pass(model: Any, fed: int) -> float:
    """One pass over ``fed`` new tokens."""
    text = tuple(np.arange(1, TEXT_LENGTH + fed + 1) % model.vocab)
    greedy = Sampler()
    model.rows(text[:TEXT_LENGTH], 0, greedy)
    start = time.perf_counter()
    model.rows(text, fed - 1, greedy)
    return time.perf_counter() - start


# -- the command -----------------------------------------------------------------------
def main() -> None:
    """Prints how many outputs differ, by setting and method, and what passes cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float32"])
    parser.add_argument("--only", choices=["costs", "outputs"])
    asked = parser.parse_args()
    if asked.only != "outputs":
        for row in passes():
            print(row, flush=True)
    if asked.only == "costs":
        return

    texts: list[Any] = []
    for task in TASKS:
        texts += [prompt.input for prompt in prompts.load(task, PER_TASK)]
    texts = texts[: asked.prompts]
    for dtype in asked.dtypes:
        for fixed_rows in (None, FIXED_ROWS):
            arithmetic = Arithmetic(dtype, fixed_rows)
            found = differing(arithmetic, texts, asked.tokens, asked.methods)
            total = sum(len(differences) for differences in found.values())
            outputs = len(texts) * len(found)
            print(f"{arithmetic}: {total} of {outputs} outputs differ: {found}")


if __name__ == "__main__":
    main()
