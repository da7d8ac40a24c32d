"""Measures passes and methods, and the limit set by this machine's memory bandwidth."""

from __future__ import annotations

import gc
import time
from collections.abc import Generator, Sequence
from statistics import median
from typing import Any

import torch

from speclab.bench.bench_rows import BenchRow, join_notes, median_row
from speclab.bench.races import contestant, race
from speclib.core.sampling import Sampler
from speclib.data.pairs import Pair
from speclib.models.open_pair import open_pair
from speclib.worlds.processes import Processes

from .setup import Setup

DTYPE = "bfloat16"
TEXT_LENGTH = 128
GIBIBYTE = 1 << 30
LEAST_SHARE_OF_BANDWIDTH = 0.6
RACERS = {"PEARL": "pearl", "SD": "speculative"}
PLAIN = "plain decoding"


# -- memory ----------------------------------------------------------------------------
def memory_bandwidth(device: torch.device) -> float:
    """Bytes per second moved by copying a gibibyte, which is read and written."""
    source = torch.zeros(GIBIBYTE, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    seconds = []
    for _ in range(5):
        _wait_for(device)
        start = time.perf_counter()
        target.copy_(source)
        _wait_for(device)
        seconds.append(time.perf_counter() - start)
    return 2 * GIBIBYTE / median(seconds)


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def bytes_read_per_pass(network: torch.nn.Module) -> int:
    """The bytes of all weights except embeddings; a pass reads few embedding rows."""
    read = 0
    for module in network.modules():
        if isinstance(module, torch.nn.Embedding):
            continue
        for weight in module.parameters(recurse=False):
            read += weight.numel() * weight.element_size()
    return read


def name_of(device: torch.device) -> str:
    """A GPU's product name; "cpu" for the CPU."""
    if device.type != "cuda":
        return device.type
    return torch.cuda.get_device_name(device)


def release_memory() -> None:
    """Frees GPU memory that this process no longer uses.

    Torch keeps a deleted model's memory, so no other process could use it.
    """
    gc.collect()  # a model and its hooks refer to each other
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


# -- passes ----------------------------------------------------------------------------
def passes(setup: Setup) -> Generator[BenchRow]:
    """Plain decoding's speed over the limit set by reading the weights once per token.

    The target is built in this process, on its device and in bfloat16. Only recorded
    passes have an aim: if a CPU launches a pass kernel by kernel, the pass waits for
    the CPU, however fast the memory is.
    """
    model = open_pair(setup.speed_pair()).build("target", DTYPE)
    device = model.network.device
    bandwidth = memory_bandwidth(device)
    where = f"{name_of(device)}, {device}"
    yield BenchRow("memory bandwidth", bandwidth / GIBIBYTE, "GiB/s", note=where)
    seconds = seconds_of_passes(model, setup.passes)
    yield share_of_bandwidth(setup, model, seconds, bandwidth)
    del model
    release_memory()  # workers will need it


def share_of_bandwidth(
    setup: Setup, model: Any, seconds: Sequence[float], bandwidth: float
) -> BenchRow:
    """Plain decoding's speed as a share of the limit set by ``bandwidth``, in bytes/s.

    seconds: the times of passes over one token each.
    """
    layers, width, *_ = setup.target_shape
    weights = bytes_read_per_pass(model.network)
    allowed = bandwidth / weights
    is_recorded = getattr(model, "is_recorded", False)
    return median_row(
        f"plain decoding over what bandwidth allows, {layers} layers of width {width}, "
        f"{setup.kind_of_pass}",
        [1 / (each * allowed) for each in seconds],
        "share",
        f"{DTYPE}, {weights / GIBIBYTE:.3g} GiB of weights a pass, {allowed:.4g} "
        "tokens/s allowed",
        aim=LEAST_SHARE_OF_BANDWIDTH if is_recorded else None,
    )


def seconds_of_passes(model: Any, passes: int) -> list[float]:
    """The seconds that each pass over a token takes, until the CPU has its result."""
    text = [1] * TEXT_LENGTH
    greedy = Sampler()
    seconds = []
    for number in range(passes + 3):
        text.append(1 + number % 2)
        start = time.perf_counter()
        model.rows(text, 0, greedy)
        seconds.append(time.perf_counter() - start)
    return seconds[3:]  # the first pass prefills, and the next ones choose kernels


# -- methods ---------------------------------------------------------------------------
def races(setup: Setup) -> Generator[BenchRow]:
    """Each method's speed over plain decoding's, in worker processes.

    On a GPU both models' passes are recorded. Launched kernel by kernel, a small
    draft's pass takes about as long as a large target's, and the ratios would depend on
    the CPU that launches them.
    """
    notes = [f"passes {setup.kind_of_pass}"]
    if setup.shares_a_device:
        notes.append(
            "draft and target share a GPU: this says nothing about parallel work"
        )
    yield from _race(setup, setup.speed_pair(), RACERS, "", notes)


def races_with_a_draft_on_the_cpu(setup: Setup) -> Generator[BenchRow]:
    """The same races with SSD and DuoDecoding, and with the draft on the CPU.

    One GPU is enough: draft and target have their own devices, so they can work in
    parallel.
    """
    pair = setup.cpu_draft_pair()
    runtime = open_pair(pair).runtime("draft")
    notes = [
        f"draft in {runtime}, threads: {setup.cpu_draft_threads}",
        f"passes of the target {setup.kind_of_pass}",
    ]
    racers = RACERS | {"SSD": "ssd", "DuoDecoding": "duodecoding"}
    yield from _race(setup, pair, racers, ", draft on the CPU", notes)


def _race(
    setup: Setup, pair: Pair, racers: dict[str, str], where: str, notes: Sequence[str]
) -> Generator[BenchRow]:
    """A row for each racer; ``where``: the draft's place, for the row's name."""
    with Processes(pair, dtype=DTYPE) as world:
        contestants = {PLAIN: contestant(world, "autoregressive")}
        for name, method in racers.items():
            contestants[name] = contestant(world, method)
        race(contestants, setup.texts[:1], tokens=8)
        finished = race(contestants, setup.texts, setup.tokens, repeats=2)
        c = world.cost_ratio

    for name in racers:
        same = finished.same_outputs(name, PLAIN)
        yield median_row(
            f"{name} over {PLAIN}{where}",
            finished.ratios(name, PLAIN),
            "ratio",
            join_notes(DTYPE, str(c), f"output the same in {same}", *notes),
        )
