"""What our orchestration costs: over a run without any, per operation, to cancel."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from speclib.core.sampling import Coins, Sampler, ids
from speclib.data.latency import Latency, load_latency
from speclib.data.pairs import ModelSpec, Pair, load_pair
from speclib.decoding.decode import Result, decode, open_world
from speclib.models.toy import BOS
from speclib.operations.operation import Operation
from speclib.operations.propose import Propose
from speclib.operations.score import Score
from speclib.worlds.devices import Cancelled
from speclib.worlds.processes import Processes
from speclib.worlds.world import World

from .bench_rows import BenchRow, Size, median_row

LATENCY = "pearl/llama2-7-70"
METHODS = {
    "PEARL": "pearl",
    "SD": "speculative",
    "plain decoding": "autoregressive",
    "DSI": "dsi",
}
SERVERS = 3  # target devices that DSI has
REAL = "embedded/llama-7b-70b"
WARM_UP = 10  # operations of the controller before those that count
GAMMA = 5
VOCABULARY = 32_000
PROMPT_TOKENS = 128


def emulated(size: Size) -> Iterator[BenchRow]:
    """Makespan of an emulated run over that of the same run on the virtual clock.

    Workers and messages are real, the toys make the same decisions, and every operation
    takes as long as PEARL's Table 10 has it for Llama 2 7&70B. DSI, here with four
    devices, may lose 5 % to them, others 3 %.
    """
    pair = load_pair("toy")
    virtual_world = open_world(
        "virtual", pair, latency=LATENCY, servers=SERVERS, cancel="immediate"
    )
    with Processes(
        pair, emulate=load_latency(LATENCY), servers=SERVERS, cancel="immediate"
    ) as world:
        for name, method in METHODS.items():
            ideal = decode_toys(virtual_world, method, size).trace.makespan
            runs = [decode_toys(world, method, size) for _ in range(size.repeats)]
            overruns = sum(run.stats.overruns for run in runs)
            operations = sum(run.stats.operations for run in runs)
            yield median_row(
                f"emulated over virtual makespan, {name}",
                [run.trace.makespan / ideal for run in runs],
                "ratio",
                aim=1.05 if name == "DSI" else 1.03,
                at_most=True,
                note=f"{LATENCY}, {overruns} of {operations} operations overran",
            )


def decode_toys(world: World, method: str, size: Size) -> Result:
    return decode("toy", world=world, method=method, max_new_tokens=size.emulated)


def cancelled(size: Size) -> Iterator[BenchRow]:
    """How long a target pass still runs once it is cancelled.

    Real models, dilated, one core each; passes of one token, cancelled at any time
    while they run.
    """
    with Processes(load_pair(REAL), cancel="immediate") as world:
        times = cancel_passes(world, size.repeats * size.operations // 4)
        whole_pass = seconds_of_a_target_pass(world)
    times.sort()
    for percent in (50, 95):
        yield BenchRow(
            f"cancelled pass still runs, p{percent}",
            times[len(times) * percent // 100],
            "ms",
            note=f"{len(times)} target passes of {REAL}, of {1000 * whole_pass:.3g} ms",
        )


def seconds_of_a_target_pass(world: Processes) -> float:
    """Seconds of a pass over one token, as the world's devices take them."""
    assert isinstance(world.latency, Latency)  # measured: nothing is emulated here
    return world.latency.target(1)


def cancel_passes(world: Processes, passes: int) -> list[float]:
    """Milliseconds from cancelling a pass to its end; less those that ended before."""
    dice = random.Random(0)
    whole_pass = seconds_of_a_target_pass(world)
    world.begin((1,) * 16, sampler=Sampler(), coins=Coins(), limit=1)
    world.wait(world.target.score(world.text))

    milliseconds = []
    for _ in range(passes):
        future = world.target.score(world.text)
        time.sleep(whole_pass * dice.random())
        cancelled_at = world.now
        world.cancel(future)
        world.first(future)
        was_stopped = isinstance(future.error, Cancelled)
        if was_stopped:
            milliseconds.append(1000 * (world.now - cancelled_at))
    world.end()
    return milliseconds


def controller(size: Size) -> Iterator[BenchRow]:
    """What an operation costs beyond the time of its device.

    That is from submitting it to having the result in hand, less the worker's own start
    to end. Toys of 32,000 words, sampling at temperature 1; the operations of
    speculative decoding at gamma 5 after a text of 128 tokens, one at a time.
    """
    pair = Pair(
        target=ModelSpec(model="toy", vocab=VOCABULARY, context=1024),
        draft=ModelSpec(model="toy", alpha=0.9, vocab=VOCABULARY, context=1024),
        name="toys of 32,000",
    )
    overheads = []
    with Processes(pair) as world:
        for _ in range(size.repeats):
            overheads.extend(measure_overheads(world, size.operations))
    overheads.sort()

    note = (
        f"{len(overheads)} operations: vocabulary 32,000, gamma {GAMMA}, temperature 1"
    )
    for percent, aim in ((50, 1.0), (95, None)):
        yield BenchRow(
            f"controller overhead per operation, p{percent}",
            overheads[len(overheads) * percent // 100],
            "ms",
            aim,
            at_most=True,
            note=note,
        )


def measure_overheads(world: World, operations: int) -> list[float]:
    """Milliseconds of each operation beyond its device's own, after a few that warm up.

    Draft and target take turns: the draft proposes, the target scores what it proposed.
    """
    text = (BOS,) * PROMPT_TOKENS
    drafted: tuple[int, ...] = ()
    seconds: dict[int, float] = {}  # from submitting to the result, by operation
    world.begin(text, sampler=Sampler(1.0), coins=Coins(), limit=1)
    for number in range(WARM_UP + operations):
        is_draft = number % 2 == 0
        operation: Operation
        if is_draft:
            device, operation = "draft", Propose(text, GAMMA)
        else:
            device, operation = "target", Score(text + drafted, GAMMA)

        started = time.perf_counter()
        future = world.submit(device, operation)
        result = world.wait(future)
        seconds[future.id] = time.perf_counter() - started
        if is_draft:
            drafted = ids(result)

    events = sorted(world.end().operations, key=lambda event: event.id)
    return [1000 * (seconds[event.id] - event.dur) for event in events[WARM_UP:]]
