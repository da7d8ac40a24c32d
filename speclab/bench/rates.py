"""Measures the speed of speclib itself: its virtual clock, import and drawing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

from speclab.views.widgets.timeline_explorer import explorer
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.decoding.compare import compare
from speclib.decoding.simulate import simulate, simulate_batch
from speclib.drawing.timeline.widget import Timeline
from speclib.models.toy import BOS, Toy
from speclib.operations.score import Score
from speclib.worlds.virtual import Virtual

from .bench_rows import BenchRow, Size, median_row

LARGEST = 128  # requests in the largest virtual batch
TIME_AN_IMPORT = """
import time
started = time.perf_counter()
import speclib
print(time.perf_counter() - started)
"""


def virtual_clock(size: Size) -> Iterator[BenchRow]:
    """Operations per second on the virtual clock.

    An operation is submitted, computed by a toy, waited for and recorded, on two
    devices in parallel. A repeat consists of ``size.operations`` x 250 operations.
    """
    count = 250 * size.operations
    yield median_row(
        "virtual clock",
        [_operations_per_second(count) for _ in range(size.repeats)],
        "operations/s",
        aim=50_000,
    )


def _operations_per_second(count: int) -> float:
    world = Virtual({"draft": Toy(0.9), "target": Toy()}, Latency.ratio(5))
    world.begin((BOS,), sampler=Sampler(), coins=Coins(), limit=1)
    operation = Score((BOS,))
    started = time.perf_counter()
    for _ in range(count // 2):
        world.all(world.submit("draft", operation), world.submit("target", operation))
    return count / (time.perf_counter() - started)


def importing(size: Size) -> Iterator[BenchRow]:
    """How long `import speclib` takes in a new interpreter, once that has started."""
    yield median_row(
        "import speclib",
        [_seconds_to_import() for _ in range(size.repeats)],
        "s",
        aim=0.5,
        at_most=True,
    )


def _seconds_to_import() -> float:
    interpreter = subprocess.run(
        [sys.executable, "-c", TIME_AN_IMPORT],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(interpreter.stdout)


def drawing(size: Size) -> Iterator[BenchRow]:
    """The time to draw a long timeline, and to redraw the explorer when a slider moves.

    The timeline has more than 25 x ``size.operations`` bars.
    """
    long_run = simulate("pearl", gamma=4, alpha=0.9, c=4.0, tokens=25 * size.operations)
    yield median_row(
        f"drawing {len(long_run.trace.events)} bars",
        [_seconds(lambda: Timeline(long_run)) for _ in range(size.repeats)],
        "s",
        aim=1,
        at_most=True,
    )

    slider = explorer(compare).controls["c"]
    seconds = []
    for repeat in range(size.repeats):
        c = 4.0 + repeat / 2
        seconds.append(_seconds(partial(setattr, slider, "value", c)))
    yield median_row(
        "a slider moves",
        seconds,
        "s",
        aim=0.15,
        at_most=True,
        note="plain decoding, SD and PEARL writing 32 tokens",
    )


def virtual_batch(size: Size) -> Iterator[BenchRow]:
    """How long a virtual batch takes, of the largest size that a slider offers."""
    seconds = []
    latency = Latency.ratio(5, 0.1).lengthened(0.01)
    for seed in range(size.repeats):
        run_batch = partial(
            simulate_batch, "pearl", gamma=4, latency=latency, batch=LARGEST, seed=seed
        )
        seconds.append(_seconds(run_batch))
    yield median_row(
        f"a virtual batch of {LARGEST}",
        seconds,
        "s",
        note="PEARL, 32 tokens of each request",
        aim=1,
        at_most=True,
    )


def _seconds(call: Callable[[], object]) -> float:
    """How long a call takes, in seconds."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
