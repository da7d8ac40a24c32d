"""Checks that logits have the same bits in all passes of one shape.

Only then can outputs be equal for every text.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from speclab.bench.bench_rows import BenchRow
from speclib.core.sampling import Rows, Sampler
from speclib.data.pairs import Pair
from speclib.models.open_pair import open_pair

from .setup import FIXED_ROWS, Setup
from .speed import release_memory

DTYPE = "bfloat16"
PLAIN = Sampler(temperature=1.0)
CODE = "def add(a, b):\n    return a + b\n"
PARTS = (1, 1, 2, 5, 9, 17)  # numbers of tokens fed at once, chosen at random
BEYOND = 24  # tokens beyond the cache's first room, which make it grow


def before_and_after_growth(setup: Setup) -> Generator[BenchRow]:
    """Compares a text's logits before and after a cache grows, and when fed in parts.

    A larger cache has different strides, which may lead to a different kernel.
    """
    from speclib.models.fixed_rows import FIRST_ROOM  # imports transformers

    pair = setup.exact_pair().with_fixed_rows(FIXED_ROWS)
    model = open_pair(pair).build("target", DTYPE)
    text = _text(pair, FIRST_ROOM + BEYOND)
    within = text[: FIRST_ROOM - FIXED_ROWS]

    before = logits_of(model, within)
    logits_of(model, text)  # now the cache has grown
    after = logits_of(model, within)
    yield same_bits("before and after a cache grew", before, after)

    long_before = logits_of(model, text)
    in_parts = logits_in_parts(model, text)
    yield same_bits("at once and in parts", long_before, in_parts)
    del model
    release_memory()


def of_recorded_passes(setup: Setup) -> Generator[BenchRow]:
    """Whether a GPU records passes, and whether launched passes have equal logits."""
    if not setup.on_gpu:
        return
    pair = setup.exact_pair()
    recorded_pair = pair.with_fixed_rows(FIXED_ROWS, recorded=True)
    recorded = open_pair(recorded_pair).build("target", DTYPE)
    launched = open_pair(pair.with_fixed_rows(FIXED_ROWS)).build("target", DTYPE)
    yield from compared_with_recorded(recorded, launched, _text(pair, 320))
    del recorded, launched
    release_memory()


def compared_with_recorded(
    recorded: Any, launched: Any, text: Sequence[int]
) -> Generator[BenchRow]:
    """Compares models with and without recorded passes, both with fixed rows."""
    expected = logits_in_parts(launched, text)
    found = logits_in_parts(recorded, text)
    yield is_recorded(recorded, "of the embedded target")
    yield same_bits("of recorded passes and of launched ones", expected, found)


def is_recorded(model: Any, which: str) -> BenchRow:
    """Whether a model's passes are recorded and replayed, as requested."""
    return BenchRow(
        f"passes are recorded, {which}",
        float(model.is_recorded),
        "1 is yes",
        aim=1.0,
    )


def logits_of(model: Any, text: Sequence[int]) -> Rows:
    """The logits [tokens, vocab] of a whole text, fed at once."""
    model.reset()
    model.rows(tuple(text), len(text) - 1, PLAIN)
    logits: Rows = model.logits
    return logits


def logits_in_parts(model: Any, text: Sequence[int]) -> Rows:
    """The logits of a text that is fed in parts, always split in the same way."""
    model.reset()
    dice = random.Random(1)
    parts = []
    fed = 0
    while fed < len(text):
        end = min(len(text), fed + dice.choice(PARTS))
        model.rows(tuple(text[:end]), end - fed - 1, PLAIN)
        parts.append(model.logits)
        fed = end
    return np.concatenate(parts)


def same_bits(how: str, some: Rows, others: Rows) -> BenchRow:
    """The share of a text's positions whose logits are equal to the last bit."""
    is_same = (some == others).all(axis=-1)
    distance = float(np.abs(some - others).max())
    return BenchRow(
        f"positions with the same logits, {how}, {DTYPE} in passes of "
        f"{FIXED_ROWS} tokens",
        float(is_same.mean()),
        "share",
        aim=1.0,
        note=f"{len(some)} positions; at most {distance:.3g} apart",
    )


def _text(pair: Pair, tokens: int) -> tuple[int, ...]:
    """A text of ``tokens`` tokens."""
    code = CODE * tokens  # contains at least this many tokens
    return tuple(open_pair(pair).tokenizer.encode(code)[:tokens])
