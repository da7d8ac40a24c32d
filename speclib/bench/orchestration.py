"""What our orchestration costs: beside a run without any, per operation, and to cancel one."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from speclib.core.sampling import Coins, Sampler, ids
from speclib.data.latency import load_latency
from speclib.data.pairs import ModelSpec, Pair, load_pair
from speclib.decoding.decode import decode, open_world
from speclib.models.toy import BOS
from speclib.operations.propose import Propose
from speclib.operations.score import Score
from speclib.worlds.processes import Processes

from .rows import Row, Size, middle

LATENCY = "pearl/llama2-7-70"
METHODS = {
    "PEARL": "pearl",
    "SD": "speculative",
    "plain decoding": "autoregressive",
    "DSI": "dsi",
}
SERVERS = 3  # of DSI
REAL = "embedded/llama-7b-70b"
WARM = 10  # operations of the controller before those that count
GAMMA = 5


def emulated(size: Size) -> Iterator[Row]:
    """Makespan of an emulated run over that of the same run on the virtual clock: real workers
    and messages, toys that make the same decisions, every operation as long as PEARL's Table 10
    has it for Llama 2 7&70B. DSI, here with four devices, may lose 5 % to them, others 3 %."""
    pair = load_pair("toy")
    how = {"servers": SERVERS, "cancel": "immediate"}
    virtual = open_world("virtual", pair, latency=LATENCY, **how)
    with Processes(pair, emulate=load_latency(LATENCY), **how) as world:
        for name, method in METHODS.items():
            what = {"method": method, "max_new_tokens": size.emulated}
            ideal = decode("toy", world=virtual, **what).trace.makespan
            runs = [decode("toy", world=world, **what) for _ in range(size.repeats)]
            late, all_ = (
                sum(getattr(r.stats, key) for r in runs)
                for key in ("overruns", "operations")
            )
            yield middle(
                f"emulated over virtual makespan, {name}",
                [r.trace.makespan / ideal for r in runs],
                "ratio",
                aim=1.05 if name == "DSI" else 1.03,
                most=True,
                note=f"{LATENCY}, {late} of {all_} operations overran",
            )


def cancelled(size: Size) -> Iterator[Row]:
    """How long a target pass still runs once it is cancelled: real models, dilated, one core each;
    passes of one token, cancelled at any time while they run."""
    with Processes(load_pair(REAL), cancel="immediate") as world:
        left = sorted(stopping(world, size.repeats * size.operations // 4))
    for share in (50, 95):
        yield Row(
            f"cancelled pass still runs, p{share}",
            left[len(left) * share // 100],
            "ms",
            note=f"{len(left)} target passes of {REAL}, of "
            f"{1000 * world.latency.target(1):.3g} ms",
        )


def stopping(world, passes: int) -> list[float]:
    """Milliseconds from cancelling to the end of the pass, of those that did not end before."""
    dice, left, whole = random.Random(0), [], world.latency.target(1)
    world.begin((1,) * 16, sampler=Sampler(), coins=Coins(), limit=1)
    world.wait(world.target.score(world.text))
    for _ in range(passes):
        future = world.target.score(world.text)
        time.sleep(whole * dice.random())
        begun = world.now
        world.cancel(future)
        world.first(future)
        if future.error is not None:
            left.append(1000 * (world.now - begun))
    world.end()
    return left


def controller(size: Size) -> Iterator[Row]:
    """What an operation costs beyond its worker's own start .. end: from submit to the result in
    hand, less that. Toys of 32,000 words, sampling at temperature 1, the operations of speculative
    decoding at gamma 5 after a text of 128 tokens, one at a time."""
    toy = {"model": "toy", "vocab": 32_000, "context": 1024}
    pair = Pair(
        target=ModelSpec(**toy),
        draft=ModelSpec(alpha=0.9, **toy),
        name="toys of 32,000",
    )
    with Processes(pair) as world:
        all_ = sorted(
            ms for _ in range(size.repeats) for ms in costs(world, size.operations)
        )
    note = f"{len(all_)} operations: vocabulary 32,000, gamma {GAMMA}, temperature 1"
    for share, aim in ((50, 1.0), (95, None)):
        yield Row(
            f"controller overhead per operation, p{share}",
            all_[len(all_) * share // 100],
            "ms",
            aim,
            True,
            note,
        )


def costs(world, operations: int) -> list[float]:
    """Milliseconds of each of ``operations`` operations beyond its device's own, after a few that
    warm up."""
    text, drafted, took = (BOS,) * 128, (), {}
    world.begin(text, sampler=Sampler(1.0), coins=Coins(), limit=1)
    for i in range(WARM + operations):
        op = Score(text + drafted, GAMMA) if i % 2 else Propose(text, GAMMA)
        begun = time.perf_counter()
        future = world.submit("target" if i % 2 else "draft", op)
        result = world.wait(future)
        took[future.id] = time.perf_counter() - begun
        drafted = drafted if i % 2 else ids(result)
    events = sorted(world.end().operations, key=lambda e: e.id)
    return [1000 * (took[e.id] - e.dur) for e in events[WARM:]]
