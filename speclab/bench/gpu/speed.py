"""How fast passes and methods are here, beside what the memory's bandwidth allows."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from speclab.bench.bench_rows import BenchRow, join_notes, median_row
from speclab.bench.predictions import busy_latency, predicted_speed
from speclab.bench.races import contestant, race
from speclib.core.sampling import Sampler
from speclib.data.pairs import Pair
from speclib.models.open_pair import open_pair
from speclib.worlds.processes import Processes

from . import bits, device_speed
from .setup import FIXED_ROWS, Setup

DTYPE = "bfloat16"
TEXT_LENGTH = 128
LEAST_SHARE_OF_BANDWIDTH = 0.6
RACERS = {"PEARL": "pearl", "SD": "speculative"}
PLAIN = "plain decoding"


# -- passes ----------------------------------------------------------------------------
def passes(setup: Setup) -> Generator[BenchRow]:
    """Plain decoding's speed over what reading the weights once per token allows.

    The target is built in this process, in its place and in bfloat16: with passes of as
    many rows as are new; then, on a GPU, with recorded passes of one shape. Only these
    have to reach a share of the bandwidth: a pass that a CPU launches kernel by kernel
    waits for the CPU, however fast the memory is.
    """
    model = open_pair(setup.speed_pair()).build("target", DTYPE)
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
    yield from _race(setup, pair, RACERS, "", notes)


def races_with_a_draft_on_the_cpu(setup: Setup) -> Generator[BenchRow]:
    """The same with SSD and DuoDecoding, and a draft on the CPU: that takes one GPU.

    Draft and target have their own devices, so methods that work in parallel can do it.
    """
    pair = setup.cpu_draft_pair()
    runtime = open_pair(pair).runtime("draft")
    notes = [f"draft in {runtime}, threads: {setup.cpu_draft_threads}"]
    if setup.on_gpu:
        notes.append("recorded passes of the target")
    racers = RACERS | {"SSD": "ssd", "DuoDecoding": "duodecoding"}
    yield from _race(setup, pair, racers, ", draft on the CPU", notes)


def _race(
    setup: Setup, pair: Pair, racers: dict[str, str], where: str, notes: Sequence[str]
) -> Iterator[BenchRow]:
    """A row for each of ``racers``; ``where``: what the rows' names say of the draft.

    A second row has what the virtual clock makes of the same runs, with passes that
    last as they do while both devices are busy.
    """
    with Processes(pair, dtype=DTYPE) as world:
        contestants = {PLAIN: contestant(world, "autoregressive")}
        for name, method in racers.items():
            contestants[name] = contestant(world, method)
        race(contestants, setup.texts[:1], tokens=8)
        finished = race(contestants, setup.texts, setup.tokens, repeats=2)
        c = world.cost_ratio
        busy = busy_latency(world, setup.passes)

    for name in racers:
        same = finished.same_outputs(name, PLAIN)
        yield median_row(
            f"{name} over {PLAIN}{where}",
            finished.ratios(name, PLAIN),
            "ratio",
            join_notes(DTYPE, str(c), f"output the same in {same}", *notes),
        )
        predicted = predicted_speed(finished, name, busy)
        yield BenchRow(
            f"{name} over {PLAIN}{where}, by the virtual clock",
            predicted / predicted_speed(finished, PLAIN, busy),
            "ratio",
            note="virtual, with the passes of both while both are busy: target "
            f"{1000 * busy.target(1):.3g} ms, draft {1000 * busy.draft(1):.3g} ms",
        )
