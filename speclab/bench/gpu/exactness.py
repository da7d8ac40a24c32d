"""Checks that every method's output equals plain decoding's, in real processes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from math import inf, log
from typing import Any, NamedTuple

import numpy as np

from speclab.bench.bench_rows import BenchRow
from speclib.core.sampling import Coins, Sampler, Tokens
from speclib.data import prompts
from speclib.data.pairs import ModelSpec, Pair
from speclib.decoding.batch import decode_batch
from speclib.decoding.decode import decode
from speclib.methods import METHODS, parameters
from speclib.worlds.process_batch import ProcessBatch
from speclib.worlds.processes import Processes
from speclib.worlds.world import World

from .setup import FIXED_ROWS, TASK, Setup

PLAIN = "autoregressive"
WITH_HEAD = "eagle"  # the method that drafts with the target's own head
WITH_OWN_DRAFT = tuple(name for name in METHODS if name not in (PLAIN, WITH_HEAD))

# The methods whose target scores trees. In a tree, tokens have other positions than in
# a line, so in bfloat16 the last bits of their logits may differ.
WITH_TREES = ("tree", "easyspec", "eagle", "lookahead", "rest", "ouroboros")
IN_A_LINE = tuple(name for name in WITH_OWN_DRAFT if name not in WITH_TREES)

# Settings that methods otherwise derive from c = t_target / t_draft. Measuring c takes
# seconds in each world, and the output is exact with any settings.
COUNTS = {"gamma": 4, "lookahead": 4, "servers": 1}

SEATS = 4  # requests at a time

# The methods for batches, whose requests proceed in lockstep. A method with several
# targets does not wait for all of them.
IN_STEP = tuple(name for name in IN_A_LINE if "servers" not in parameters(name))

# The layouts of target and draft on two ranks, and the methods to run with them.
LAYOUTS = (
    ("tensors", "layers", ("easyspec", "pearl")),
    ("stages", "replicas", ("pearl", "speculative")),
)


class Arithmetic(NamedTuple):
    """A number format, and the number of rows in every target pass; None: any number.

    ``recorded``: whether a GPU records these passes.
    """

    dtype: str
    fixed_rows: int | None = None
    recorded: bool = False

    def apply_to(self, pair: Pair) -> Pair:
        """The pair with its target computed this way."""
        if self.fixed_rows is None:
            return pair
        return pair.with_fixed_rows(self.fixed_rows, recorded=self.recorded)

    def __str__(self) -> str:
        if self.fixed_rows is None:
            return self.dtype
        kind = "recorded passes" if self.recorded else "passes"
        return f"{self.dtype} in {kind} of {self.fixed_rows} tokens"


FLOAT32 = Arithmetic("float32")
ONE_SHAPE = Arithmetic("bfloat16", FIXED_ROWS)
RECORDED = Arithmetic("bfloat16", FIXED_ROWS, recorded=True)


# -- where an output differs from plain decoding's -------------------------------------
class Divergence(NamedTuple):
    """Where an output first differs from plain decoding's: the prompt and the token.

    ``gap``: the difference between the two largest logits there.
    """

    prompt: int
    token: int
    gap: float

    def __str__(self) -> str:
        return (
            f"prompt {self.prompt} from token {self.token}, where the two likeliest "
            f"tokens' logits are {self.gap:.2g} apart"
        )


def with_own_head(pair: Pair) -> Pair:
    """The pair's target, with its EAGLE head as the draft."""
    head = ModelSpec(model=pair.target.model, head=True)
    return pair.model_copy(update={"draft": head})


def counts_of(method: str) -> dict[str, Any]:
    """The settings in ``COUNTS`` that a method has."""
    known = parameters(method)
    return {name: count for name, count in COUNTS.items() if name in known}


def written(
    world: World, method: str, texts: Sequence[Any], tokens: int
) -> list[Tokens]:
    """A method's greedy output after each of ``texts``, ignoring end tokens."""
    outputs = []
    for text in texts:
        answer = decode(
            text,
            world=world,
            method=method,
            max_new_tokens=tokens,
            ignore_eos=True,
            **counts_of(method),
        )
        outputs.append(answer.tokens)
    return outputs


def divergences(
    world: World,
    method: str,
    texts: Sequence[Any],
    plain: Sequence[Tokens],
    tokens: int,
) -> list[Divergence]:
    """Where a method's outputs first differ from ``plain``, plain decoding's."""
    found = []
    for number, (text, expected) in enumerate(zip(texts, plain, strict=True)):
        (output,) = written(world, method, [text], tokens)
        if output != expected:
            position = _first_difference(output, expected)
            prompt = world.text[: len(world.text) - len(output)]
            gap = _gap_after(world, prompt + expected[:position])
            found.append(Divergence(number, position, gap))
    return found


def _first_difference(one: Tokens, other: Tokens) -> int:
    """The first position where two outputs differ, or the end of the shorter one."""
    for position, (token, other_token) in enumerate(zip(one, other, strict=False)):
        if token != other_token:
            return position
    return min(len(one), len(other))


def _gap_after(world: World, text: Tokens) -> float:
    """The difference between the target's two largest logits after ``text``."""
    world.begin(text, sampler=Sampler(1.0), coins=Coins(), limit=1)
    row = world.wait(world.target.score(text))[0]
    world.end()
    second, first = np.sort(row)[-2:]
    return log(first / second) if second else inf


# -- one request -----------------------------------------------------------------------
def in_float32(setup: Setup) -> Generator[BenchRow]:
    """For each method, the share of prompts with plain decoding's greedy output."""
    pair = setup.exact_pair()
    yield from _compared(setup, pair, WITH_OWN_DRAFT, FLOAT32, promised=WITH_OWN_DRAFT)
    with_head = with_own_head(pair)
    yield from _compared(setup, with_head, [WITH_HEAD], FLOAT32, promised=[WITH_HEAD])


def in_one_shape(setup: Setup) -> Generator[BenchRow]:
    """The same share in bfloat16, where all passes have one shape.

    Methods that draft in a line must reach 1. The other methods have no aim.
    """
    pair = setup.exact_pair()
    yield from _compared(setup, pair, WITH_OWN_DRAFT, ONE_SHAPE, promised=IN_A_LINE)
    yield from _compared(setup, with_own_head(pair), [WITH_HEAD], ONE_SHAPE)


def in_recorded_passes(setup: Setup) -> Generator[BenchRow]:
    """The same share with passes that a GPU has recorded."""
    if setup.on_gpu:
        pair = setup.exact_pair()
        yield from _compared(setup, pair, IN_A_LINE, RECORDED, promised=IN_A_LINE)


def _compared(
    setup: Setup,
    pair: Pair,
    methods: Sequence[str],
    arithmetic: Arithmetic,
    promised: Sequence[str] = (),
) -> Generator[BenchRow]:
    """A row for each of ``methods``, all of them in one world."""
    with Processes(arithmetic.apply_to(pair), dtype=arithmetic.dtype) as world:
        yield from _compared_in(world, setup, methods, str(arithmetic), promised)


def _compared_in(
    world: Processes,
    setup: Setup,
    methods: Sequence[str],
    how: str,
    promised: Sequence[str],
) -> Generator[BenchRow]:
    """A row for each of ``methods`` in an open world.

    how: describes the models in the rows' names. promised: the methods whose outputs
    must all equal plain decoding's.
    """
    plain = written(world, PLAIN, setup.texts, setup.tokens)
    for method in methods:
        differing = divergences(world, method, setup.texts, plain, setup.tokens)
        yield BenchRow(
            f"outputs that are plain decoding's, {method}, {how}",
            1 - len(differing) / len(plain),
            "share",
            aim=1.0 if method in promised else None,
            note="; ".join(map(str, differing)),
        )


# -- two ranks -------------------------------------------------------------------------
def on_two_ranks(setup: Setup) -> Generator[BenchRow]:
    """Whether models on two ranks have the same outputs as in one process, in float32.

    With one GPU, both ranks are on it and exchange tensors through the machine's
    memory, which exercises all of the code except NCCL. With two GPUs, each rank has
    its own, and they use NCCL.
    """
    with Processes(setup.exact_pair(), dtype="float32") as world:
        expected = written(world, PLAIN, setup.texts, setup.tokens)

    for target_layout, draft_layout, methods in LAYOUTS:
        pair = setup.pair_on_two_ranks(target_layout, draft_layout)
        how = f"target by {target_layout}, draft by {draft_layout}, {FLOAT32}"
        with Processes(pair, dtype="float32") as world:
            found = written(world, PLAIN, setup.texts, setup.tokens)
            yield _same_outputs(
                f"outputs that are one process's, plain decoding, {how}",
                expected,
                found,
            )
            yield from _compared_in(world, setup, methods, how, promised=methods)


def _same_outputs(
    name: str, expected: Sequence[Tokens], found: Sequence[Tokens]
) -> BenchRow:
    """The share of outputs that equal the expected ones."""
    same = [one == other for one, other in zip(expected, found, strict=True)]
    return BenchRow(name, sum(same) / len(same), "share", aim=1.0)


# -- several requests at a time --------------------------------------------------------
def in_batches(setup: Setup) -> Generator[BenchRow]:
    """For each method, the share of requests with the tokens of plain decoding.

    In float32, we compare with plain decoding of one request at a time. In bfloat16,
    where all passes have one shape, we compare with plain decoding in a batch of the
    same size.
    """
    pair = setup.exact_pair()
    with ProcessBatch(pair, 1, dtype="float32") as alone:
        plain = _outputs_of_batch(alone, PLAIN, setup)
    with ProcessBatch(pair, SEATS, dtype="float32") as world:
        yield from _compared_batches(world, setup, (PLAIN, *IN_STEP), FLOAT32, plain)
    with ProcessBatch(ONE_SHAPE.apply_to(pair), SEATS, dtype="bfloat16") as world:
        plain = _outputs_of_batch(world, PLAIN, setup)
        yield from _compared_batches(world, setup, IN_STEP, ONE_SHAPE, plain)


def _compared_batches(
    world: ProcessBatch,
    setup: Setup,
    methods: Sequence[str],
    arithmetic: Arithmetic,
    plain: Sequence[Tokens],
) -> Generator[BenchRow]:
    for method in methods:
        yield _same_outputs(
            f"outputs that are plain decoding's, {method}, {arithmetic}, "
            f"requests at a time: {SEATS}",
            plain,
            _outputs_of_batch(world, method, setup),
        )


def _outputs_of_batch(world: ProcessBatch, method: str, setup: Setup) -> list[Tokens]:
    more_than_seats: list[Any] = [p.input for p in prompts.load(TASK, SEATS + 2)]
    batch = decode_batch(
        more_than_seats,
        world=world,
        method=method,
        max_new_tokens=setup.tokens // 2,
        ignore_eos=True,
        **counts_of(method),
    )
    return [result.tokens for result in batch.results]
