"""`python -m speclab.bench.gpu [--device cpu]`: is every method exact here, how fast?

It needs torch, transformers and pydantic with what these bring, and no network. A
report is there after each row, so that nothing is lost where the machine is.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from speclab import machine_facts
from speclib import paths
from speclib.errors import SpeclibError

from .check import CHECKS, GRACE, chosen, end_by_force_after, gpu_check
from .setup import DEVICES, MINUTES, setup_for


def main() -> int:
    """Exit code 0 if every check was run and holds, 1 if not, 2 without a GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=DEVICES, default="cuda")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="nothing is begun after so long"
    )
    names = ", ".join(check.name for check in CHECKS)
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="CHECK", help=f"of {names}"
    )
    parser.add_argument(
        "--out", type=Path, help="a folder for the report, instead of reports/gpu"
    )
    asked = parser.parse_args()

    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the embedded models are here
    # Torch's profiler must not be taken down between recorded passes: with CUDA before
    # 12.6 it does not survive that (torch/profiler/profiler.py says so).
    os.environ.setdefault("TEARDOWN_CUPTI", "0")
    try:
        setup = setup_for(asked.device, asked.minutes)
        checks = chosen(asked.only)
    except SpeclibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    end_by_force_after(60 * asked.minutes + GRACE)
    folder = asked.out or paths.REPORTS / "gpu"
    setup = replace(setup, latency_folder=folder / "latency" / machine_facts.name())
    return 0 if gpu_check(setup, checks, folder).holds else 1


if __name__ == "__main__":  # the guard is for worker processes
    sys.exit(main())
