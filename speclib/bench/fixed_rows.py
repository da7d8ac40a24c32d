"""Is greedy output exact in bfloat16, and what do passes of one shape cost for it?

`python -m speclib.bench.fixed_rows --prompts 100 --tokens 128` asks of every method and
prompt whether its output is plain decoding's: in float32 and bfloat16, with passes of
as many tokens as are new, and with passes of one shape.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from speclib.core.sampling import Sampler
from speclib.data import prompts
from speclib.data.pairs import Pair, load_pair, pair
from speclib.decoding.decode import decode, open_world
from speclib.methods import METHODS
from speclib.models import factory
from speclib.worlds.world import World

from .rows import FULL, BenchRow, Size, median_row

PAIR = "embedded/llama-7b-70b"
COUNT = 16
PLAIN = "autoregressive"
TASKS = ("humaneval", "gsm8k", "qa", "summarization", "translation", "rag", "mt_bench")
TEXT_LENGTH = 100  # tokens of the text behind which passes are timed
FED = (1, 6, 16)  # tokens that are new in a timed pass


class Setting(NamedTuple):
    """How a target computes: ``fixed``, the rows of each pass; None: any number."""

    dtype: str
    fixed: int | None

    def __str__(self) -> str:
        rows = "any number of rows" if self.fixed is None else f"{self.fixed} rows"
        return f"{self.dtype}, {rows}"

    def of(self, pair: Pair) -> Pair:
        """The pair with such a target."""
        return pair if self.fixed is None else pair.with_fixed_rows(self.fixed)


# -- whether outputs are equal ---------------------------------------------------------
def differing(
    setting: Setting, texts: Sequence[Any], tokens: int
) -> dict[str, list[tuple[int, int]]]:
    """By method: (prompt, token) where its output leaves plain decoding's first.

    The models are the embedded ones, undilated; every method runs on the virtual clock.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    own_draft = load_pair(PAIR)
    own_head = pair(
        {"model": own_draft.target.model},
        {"model": own_draft.target.model, "head": True},
        latency=own_draft.latency,
    )
    with _world(own_draft, setting) as world, _world(own_head, setting) as with_head:
        plain = [_written(world, PLAIN, text, tokens) for text in texts]
        for method in METHODS:
            if method == PLAIN:
                continue
            own_world = with_head if method == "eagle" else world
            found[method] = []
            for number, text in enumerate(texts):
                written = _written(own_world, method, text, tokens)
                place = _first_difference(written, plain[number])
                if place is not None:
                    found[method].append((number, place))
            print(f"{setting}: {method}: {len(found[method])} differ", flush=True)
    return found


def _world(pair: Pair, setting: Setting) -> World:
    return open_world("virtual", setting.of(pair), dtype=setting.dtype)


def _written(world: World, method: str, text: Any, tokens: int) -> tuple[int, ...]:
    answer = decode(text, world=world, method=method, max_new_tokens=tokens)
    return answer.tokens


def _first_difference(one: tuple[int, ...], other: tuple[int, ...]) -> int | None:
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return None if len(one) == len(other) else min(len(one), len(other))


# -- what it costs ---------------------------------------------------------------------
def passes(size: Size = FULL) -> Iterator[BenchRow]:
    """Seconds of a pass with one shape over those of a pass that is as short as can be.

    Both are made in turns, on the target of the stand-in as it is measured.
    """
    for dtype in ("float32", "bfloat16"):
        free = factory.build(load_pair(PAIR), "target", dtype)
        with_fixed_rows = load_pair(PAIR).with_fixed_rows(COUNT)
        fixed = factory.build(with_fixed_rows, "target", dtype)
        for fed in FED:
            ratios = []
            for _ in range(size.passes):
                ratios.append(
                    _seconds_of_pass(fixed, fed) / _seconds_of_pass(free, fed)
                )
            yield median_row(
                f"pass of {fed} tokens in {COUNT} rows over {fed} rows, {dtype}",
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
    parser.add_argument("--only-costs", action="store_true")
    asked = parser.parse_args()
    for row in passes():
        print(row, flush=True)
    if asked.only_costs:
        return

    texts: list[Any] = []
    for task in TASKS:
        texts += [prompt.input for prompt in prompts.load(task)]
    texts = texts[: asked.prompts]
    for dtype in ("bfloat16", "float32"):
        for count in (None, COUNT):
            setting = Setting(dtype, count)
            found = differing(setting, texts, asked.tokens)
            total = sum(len(differences) for differences in found.values())
            outputs = len(texts) * len(found)
            print(f"{setting}: {total} of {outputs} outputs differ: {found}")


if __name__ == "__main__":
    main()
