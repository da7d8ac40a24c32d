"""How fast speclib itself is: its virtual clock, being imported, drawing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.decoding.simulate import compare, simulate
from speclib.models.toy import BOS, Toy
from speclib.operations.score import Score
from speclib.views.timeline.widget import Timeline
from speclib.views.widgets.explorer import explorer
from speclib.worlds.virtual import Virtual

from .rows import Row, Size, middle


def virtual_clock(size: Size) -> Iterator[Row]:
    """Operations per second of the virtual clock: submit, a toy's row, wait, record; two devices
    at once, 250 times ``size.operations`` operations per repeat."""
    yield middle(
        "virtual clock",
        [_operations(250 * size.operations) for _ in range(size.repeats)],
        "operations/s",
        aim=50_000,
    )


def _operations(count: int) -> float:
    world = Virtual({"draft": Toy(0.9), "target": Toy()}, Latency.ratio(5))
    world.begin((BOS,), sampler=Sampler(), coins=Coins(), limit=1)
    op, begun = Score((BOS,)), time.perf_counter()
    for _ in range(count // 2):
        world.all(world.submit("draft", op), world.submit("target", op))
    return count / (time.perf_counter() - begun)


def importing(size: Size) -> Iterator[Row]:
    """Seconds of `import speclib` in a fresh interpreter, the interpreter's own start left out."""
    code = (
        "import time; t = time.perf_counter(); import speclib; "
        "print(time.perf_counter() - t)"
    )
    yield middle(
        "import speclib",
        [
            float(
                subprocess.run(
                    [sys.executable, "-c", code],
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
            )
            for _ in range(size.repeats)
        ],
        "s",
        aim=0.5,
        most=True,
    )


def drawing(size: Size) -> Iterator[Row]:
    """Seconds to draw a timeline of more than 25 times ``size.operations`` bars, and to redraw the
    explorer when a slider moves."""
    long = simulate("pearl", gamma=4, alpha=0.9, c=4.0, tokens=25 * size.operations)
    bars = len(long.trace.events)
    yield middle(
        f"drawing {bars} bars",
        [_seconds(lambda: Timeline(long)) for _ in range(size.repeats)],
        "s",
        aim=1,
        most=True,
    )
    slider = explorer(compare).controls["c"]
    yield middle(
        "a slider moves",
        [
            _seconds(lambda c=c: setattr(slider, "value", 4.0 + c / 2))
            for c in range(size.repeats)
        ],
        "s",
        aim=0.15,
        most=True,
        note="plain decoding, SD and PEARL writing 32 tokens",
    )


def _seconds(call) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
