"""How fast passes and methods are here, beside what the memory's bandwidth allows."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from typing import Any

from speclab.bench.bench_rows import BenchRow, median_row
from speclab.bench.exact_outputs import FIXED_ROWS
from speclab.bench.races import race
from speclab.bench.speedups import contestant
from speclib.core.sampling import Sampler
from speclib.data import prompts
from speclib.data.pairs import Pair
from speclib.models.open_pair import open_pair
from speclib.worlds.processes import Processes

from . import bits
from .setup import Setup

TASK = "humaneval"
DTYPE = "bfloat16"
TEXT_LENGTH = 128
LEAST_SHARE_OF_BANDWIDTH = 0.6
RACERS = {"PEARL": "pearl", "SD": "speculative"}
PLAIN = "plain decoding"


# -- passes ----------------------------------------------------------------------------
def passes(setup: Setup) -> Generator[BenchRow]:
    """Plain decoding's speed over what reading the weights once per token allows.

    The target is built in this process, in its place and in bfloat16: with passes of as
    many rows as are new; then, on a GPU, with recorded passes of one shape. Of those
    alone a share of the bandwidth is asked: a pass that a CPU launches kernel by kernel
    waits for the CPU, however fast the memory is.
    """
    from speclib.models import device_speed  # brings torch

    pair = setup.speed_pair()
    model = open_pair(pair).build("target", DTYPE)
    device = model.network.device
    bandwidth = device_speed.memory_bandwidth(device)
    gibibytes = bandwidth / device_speed.GIBIBYTE
    where = f"{device_speed.name_of(device)}, {device}"
    yield BenchRow("memory bandwidth", gibibytes, "GiB/s", note=where)
    yield from plain_decoding(setup, model, bandwidth, "launched one by one")
    del model
    device_speed.release_memory()  # there may not be memory for two

    if setup.on_gpu:
        model = open_pair(setup.recorded_pair()).build("target", DTYPE)
        yield bits.is_recorded(model, f"of {_shape(setup)}")
        kind = f"{FIXED_ROWS} rows in each pass"
        yield from plain_decoding(setup, model, bandwidth, kind)
        del model
        device_speed.release_memory()  # workers will want it


def _shape(setup: Setup) -> str:
    layers, width, *_ = setup.target_shape
    return f"{layers} layers of width {width}"


def plain_decoding(
    setup: Setup, model: Any, bandwidth: float, kind: str
) -> Iterator[BenchRow]:
    """Its speed in tokens and in shares of what ``bandwidth``, in bytes/s, allows.

    ``kind``: what the rows' names say of the passes.
    """
    from speclib.models import device_speed

    seconds = seconds_of_passes(model, setup.passes)
    weights = device_speed.bytes_read_per_pass(model.network)
    allowed = bandwidth / weights
    is_recorded = getattr(model, "is_recorded", False)
    name = f"{_shape(setup)}, {kind}"
    gibibytes = weights / device_speed.GIBIBYTE
    note = f"{DTYPE}, {gibibytes:.3g} GiB of weights a pass"
    yield median_row(
        f"plain decoding, {name}", [1 / each for each in seconds], "tokens/s", note
    )
    yield median_row(
        f"plain decoding over what bandwidth allows, {name}",
        [1 / (each * allowed) for each in seconds],
        "share",
        f"{allowed:.4g} tokens/s allowed",
        aim=LEAST_SHARE_OF_BANDWIDTH if is_recorded else None,
    )
    if setup.on_gpu:
        share = device_speed.share_outside_kernels(
            lambda: seconds_of_passes(model, setup.passes)
        )
        yield BenchRow(f"share of a pass outside kernels, {name}", share, "share")


def seconds_of_passes(model: Any, passes: int) -> list[float]:
    """Seconds of passes that feed one token each; rows reach the CPU within a pass."""
    text = [1] * TEXT_LENGTH
    greedy = Sampler()
    seconds = []
    for number in range(passes + 3):
        text.append(1 + number % 2)
        start = time.perf_counter()
        model.rows(text, 0, greedy)
        seconds.append(time.perf_counter() - start)
    return seconds[3:]  # the first one prefills, and kernels are chosen in a few


# -- methods ---------------------------------------------------------------------------
def races(setup: Setup) -> Generator[BenchRow]:
    """Tokens per second of methods over plain decoding's, in worker processes.

    On a GPU both models' passes are recorded. Launched kernel by kernel, a pass of a
    small draft takes about as long as one of a large target, and the ratios would be
    those of the CPU that launches.
    """
    notes = []
    if setup.on_gpu:
        notes.append("recorded passes of both models")
    if setup.shares_a_device:
        notes.append(
            "draft and target share a GPU: this says nothing of working in parallel"
        )
    pair = setup.recorded_pair() if setup.on_gpu else setup.speed_pair()
    yield from _race(setup, pair, RACERS, "; ".join(notes))
    if find_spec("llama_cpp") and find_spec("gguf"):
        duodecoding = {"DuoDecoding": "duodecoding"}
        pair = setup.cpu_draft_pair()
        yield from _race(setup, pair, duodecoding, "draft on the CPU")


def _race(
    setup: Setup, pair: Pair, methods: dict[str, str], note: str
) -> Iterator[BenchRow]:
    texts = [prompt.input for prompt in prompts.load(TASK, setup.prompts)]
    with Processes(pair, dtype=DTYPE) as world:
        contestants = {PLAIN: contestant(world, "autoregressive")}
        for name, method in methods.items():
            contestants[name] = contestant(world, method)
        race(contestants, texts[:1], tokens=8)
        finished = race(contestants, texts, setup.tokens, repeats=2)
        c = world.cost_ratio

    for name in methods:
        same = finished.same_outputs(name, PLAIN)
        yield median_row(
            f"{name} over {PLAIN}",
            finished.ratios(name, PLAIN),
            "ratio",
            f"{DTYPE}, {c}; output the same in {same}; {note}".rstrip("; "),
        )
