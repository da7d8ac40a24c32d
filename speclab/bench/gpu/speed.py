"""How fast passes and methods are here, beside what the memory's bandwidth allows."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from speclab.bench.bench_rows import BenchRow, Size, join_notes, median_row
from speclab.bench.contention import measure_latencies
from speclab.bench.exact_outputs import FIXED_ROWS
from speclab.bench.races import race
from speclab.bench.speedups import contestant, predicted_speed
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
SHARE_OF = {
    "products": "share of a pass in products of matrices",
    "attention": "share of a pass in attention",
    "others": "share of a pass in other kernels",
    "outside": "share of a pass outside kernels",
}


# -- passes ----------------------------------------------------------------------------
def passes(setup: Setup) -> Generator[BenchRow]:
    """Plain decoding's speed over what reading the weights once per token allows.

    The target is built in this process, in its place and in bfloat16: with passes of as
    many rows as are new; then, on a GPU, with recorded passes of one shape. Of those
    alone a share of the bandwidth is asked: a pass that a CPU launches kernel by kernel
    waits for the CPU, however fast the memory is.
    """
    from speclab.bench.gpu import device_speed  # brings torch

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
    from speclab.bench.gpu import device_speed

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
        shares = device_speed.kernel_shares(
            lambda: seconds_of_passes(model, setup.passes)
        )
        for what, share in shares._asdict().items():
            yield BenchRow(f"{SHARE_OF[what]}, {name}", share, "share")


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
    yield from _race(setup, pair, RACERS, notes=notes)


def races_with_a_draft_on_the_cpu(setup: Setup) -> Generator[BenchRow]:
    """The same with SSD and DuoDecoding, and a draft on the CPU: that takes one GPU.

    Draft and target have devices of their own, so methods that work in parallel can do
    it. Beside each ratio stands what the virtual clock makes of the same runs, with
    passes that last as they do while both devices are busy.
    """
    pair = setup.cpu_draft_pair()
    runtime = open_pair(pair).runtime("draft")
    notes = [f"draft in {runtime}, threads: {setup.cpu_draft_threads}"]
    if setup.on_gpu:
        notes.append("recorded passes of the target")
    yield from _race(
        setup,
        pair,
        RACERS | {"SSD": "ssd", "DuoDecoding": "duodecoding"},
        where=", draft on the CPU",
        notes=notes,
        is_predicted=True,
    )


def _race(
    setup: Setup,
    pair: Pair,
    methods: dict[str, str],
    where: str = "",
    notes: Sequence[str] = (),
    is_predicted: bool = False,
) -> Iterator[BenchRow]:
    """A row for each of ``methods``; ``where``: what the rows' names say of the draft.

    is_predicted: whether a second row has the ratio by the virtual clock.
    """
    texts = [prompt.input for prompt in prompts.load(TASK, setup.prompts)]
    with Processes(pair, dtype=DTYPE) as world:
        contestants = {PLAIN: contestant(world, "autoregressive")}
        for name, method in methods.items():
            contestants[name] = contestant(world, method)
        race(contestants, texts[:1], tokens=8)
        finished = race(contestants, texts, setup.tokens, repeats=2)
        c = world.cost_ratio
        if is_predicted:
            busy = measure_latencies(world, Size(passes=setup.passes)).busy

    for name in methods:
        same = finished.same_outputs(name, PLAIN)
        yield median_row(
            f"{name} over {PLAIN}{where}",
            finished.ratios(name, PLAIN),
            "ratio",
            join_notes(DTYPE, str(c), f"output the same in {same}", *notes),
        )
        if is_predicted:
            predicted = predicted_speed(finished, name, busy)
            yield BenchRow(
                f"{name} over {PLAIN}{where}, by the virtual clock",
                predicted / predicted_speed(finished, PLAIN, busy),
                "ratio",
                note="virtual, with the passes of both while both are busy: target "
                f"{1000 * busy.target(1):.3g} ms, draft {1000 * busy.draft(1):.3g} ms",
            )
