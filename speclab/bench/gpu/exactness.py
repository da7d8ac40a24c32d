"""Whether every method writes what plain decoding writes, in real processes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from speclab.bench.bench_rows import BenchRow
from speclab.bench.exact_outputs import (
    FIXED_ROWS,
    PLAIN,
    WITH_HEAD,
    WITH_OWN_DRAFT,
    WITH_TREES,
    Arithmetic,
    divergences,
    with_own_head,
    written,
)
from speclib.data import prompts
from speclib.data.pairs import Pair
from speclib.methods import parameters
from speclib.worlds.processes import Processes

from .setup import Setup

TASK = "humaneval"

# The counts of methods that take them from c = t_target / t_draft; to measure it takes
# seconds in each world, and any count is exact.
COUNTS = {"gamma": 4, "lookahead": 4, "servers": 1}

FLOAT32 = Arithmetic("float32")
ONE_SHAPE = Arithmetic("bfloat16", FIXED_ROWS)
RECORDED = Arithmetic("bfloat16", FIXED_ROWS, recorded=True)
ANY_SHAPE = Arithmetic("bfloat16")

# What is shown and not promised: passes of any shape in bfloat16.
SHOWN_PROMPTS = 2
SHOWN_TOKENS = 64

IN_A_LINE = tuple(name for name in WITH_OWN_DRAFT if name not in WITH_TREES)


def in_float32(setup: Setup) -> Generator[BenchRow]:
    """For each method the share of prompts on which its greedy output is plain's."""
    pair = setup.exact_pair()
    yield from _compared(setup, pair, WITH_OWN_DRAFT, FLOAT32, promised=WITH_OWN_DRAFT)
    with_head = with_own_head(pair)
    yield from _compared(setup, with_head, [WITH_HEAD], FLOAT32, promised=[WITH_HEAD])


def in_one_shape(setup: Setup) -> Generator[BenchRow]:
    """The same in bfloat16, with passes of one shape.

    It is promised of methods that draft in a line; of the others it is shown.
    """
    pair = setup.exact_pair()
    yield from _compared(setup, pair, WITH_OWN_DRAFT, ONE_SHAPE, promised=IN_A_LINE)
    yield from _compared(setup, with_own_head(pair), [WITH_HEAD], ONE_SHAPE)


def in_recorded_passes(setup: Setup) -> Generator[BenchRow]:
    """The same with passes that a GPU has recorded."""
    if setup.on_gpu:
        pair = setup.exact_pair()
        yield from _compared(setup, pair, IN_A_LINE, RECORDED, promised=IN_A_LINE)


def in_bfloat16(setup: Setup) -> Generator[BenchRow]:
    """The same in bfloat16 with passes of any shape, of which nothing is promised.

    So they write less than the others, and their rows say how much.
    """
    shown = shortened(setup)
    how = f"{ANY_SHAPE}, prompts: {shown.prompts}, tokens of each: {shown.tokens}"
    with Processes(
        ANY_SHAPE.apply_to(setup.exact_pair()), dtype=ANY_SHAPE.dtype
    ) as world:
        yield from compared_in(world, shown, WITH_OWN_DRAFT, how, promised=())


def shortened(setup: Setup) -> Setup:
    """``setup`` with no more prompts and tokens than what is only shown is worth."""
    return replace(
        setup,
        prompts=min(setup.prompts, SHOWN_PROMPTS),
        tokens=min(setup.tokens, SHOWN_TOKENS),
    )


def _compared(
    setup: Setup,
    pair: Pair,
    methods: Sequence[str],
    arithmetic: Arithmetic,
    promised: Sequence[str] = (),
) -> Generator[BenchRow]:
    """A row for each of ``methods``, all of them in one world."""
    with Processes(arithmetic.apply_to(pair), dtype=arithmetic.dtype) as world:
        yield from compared_in(world, setup, methods, str(arithmetic), promised)


def compared_in(
    world: Processes,
    setup: Setup,
    methods: Sequence[str],
    how: str,
    promised: Sequence[str],
) -> Generator[BenchRow]:
    """A row for each of ``methods`` in an open world.

    how: what the rows' names say of the models. promised: the methods of which every
    output is to be plain decoding's.
    """
    texts = texts_of(setup)
    plain = written(world, PLAIN, texts, setup.tokens, ignore_eos=True)
    for method in methods:
        differing = divergences(
            world,
            method,
            texts,
            plain,
            setup.tokens,
            ignore_eos=True,
            settings=counts_of(method),
        )
        yield BenchRow(
            f"outputs that are plain decoding's, {method}, {how}",
            1 - len(differing) / len(texts),
            "share",
            aim=1.0 if method in promised else None,
            note="; ".join(map(str, differing)),
        )


def texts_of(setup: Setup) -> list[Any]:
    """The prompts that every method writes on from."""
    return [prompt.input for prompt in prompts.load(TASK, setup.prompts)]


def counts_of(method: str) -> dict[str, Any]:
    """Those of ``COUNTS`` that a method has."""
    known = parameters(method)
    counts = {}
    for name, count in COUNTS.items():
        if name in known:
            counts[name] = count
    return counts
