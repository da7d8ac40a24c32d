"""`python -m speclab.bench.gpu [--device cpu]`: are methods exact here, and how fast?

The command needs torch, transformers and pydantic with their dependencies, but no
network.

A GPU borrowed for ten minutes may be lost at any moment. So the most important checks
come first, and the report is rewritten after each row and names the check under way. No
check starts after the time limit.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from speclab import machine_facts
from speclab.bench.bench_rows import BenchRow
from speclib import paths
from speclib.errors import SpeclibError

from . import bits, exactness, shapes, speed
from .report import Report
from .setup import Setup, setup_for_cpu, setup_for_gpus

MINUTES = 9.5  # with GRACE, less than ten minutes
GRACE = 10.0  # seconds after the time limit for a check to end by itself

Check = Callable[[Setup], Generator[BenchRow]]

CHECKS: Mapping[str, Check] = {
    "float32": exactness.in_float32,
    "growth": bits.before_and_after_growth,
    "one-shape": exactness.in_one_shape,
    "recorded": bits.of_recorded_passes,
    "recorded-methods": exactness.in_recorded_passes,
    "batches": exactness.in_batches,
    "ranks": exactness.on_two_ranks,
    "passes": speed.passes,
    "races": speed.races,
    "cpu-draft": speed.races_with_a_draft_on_the_cpu,
    "shapes": shapes.passes_of_shapes,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if every check ran and every aim is met, 1 if not, 2 without a GPU."""
    parser = argparse.ArgumentParser(prog="speclab.bench.gpu", description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="after this, no check starts"
    )
    parser.add_argument("--only", nargs="+", choices=list(CHECKS), default=CHECKS)
    parser.add_argument(
        "--out",
        type=Path,
        default=paths.REPORTS / "gpu",
        help="the report's folder; reports/local/gpu by default",
    )
    args = parser.parse_args(arguments)

    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # we use only embedded models
    try:
        setup = setup_for_cpu() if args.device == "cpu" else setup_for_gpus()
    except SpeclibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    setup = replace(setup, latency_folder=args.out / "latency" / machine_facts.name())
    checks = {name: CHECKS[name] for name in CHECKS if name in args.only}
    # Ends this process and its workers, even if it hangs.
    faulthandler.dump_traceback_later(60 * args.minutes + GRACE, exit=True)
    report = gpu_check(setup, checks, args.out, args.minutes)
    faulthandler.cancel_dump_traceback_later()
    print(f"the report is in {args.out}")
    return 0 if report.holds else 1


def gpu_check(
    setup: Setup,
    checks: Mapping[str, Check],
    folder: Path,
    minutes: float,
    clock: Callable[[], float] = time.monotonic,
) -> Report:
    """Runs ``checks``, prints each row, and writes a report even after an error."""
    report = Report(setup, folder, clock)
    for name, check in checks.items():
        if report.seconds >= 60 * minutes:
            report.stop(name, f"not begun: {minutes:g} minutes were over")
            continue
        report.begin(name)
        try:
            with closing(check(setup)) as rows:
                for row in rows:
                    report.add(row)
                    if report.seconds >= 60 * minutes:
                        raise TimeoutError(f"{minutes:g} minutes were over")
        except Exception as error:  # the report still has all rows so far
            report.stop(name, f"{type(error).__name__}: {error}")
    report.begin("")
    return report


if __name__ == "__main__":  # otherwise workers would run it, too
    sys.exit(main())
