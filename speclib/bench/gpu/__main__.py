"""`python -m speclib.bench.gpu [--device cpu]`; the guard is for worker processes."""

from __future__ import annotations

import argparse
import sys

from speclib.errors import SpeclibError

from .check import gpu_check
from .setup import DEVICES, setup_for


def main() -> int:
    """Exit code 0 if every check was run and holds, 1 if not, 2 without a GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=DEVICES, default="cuda")
    device = parser.parse_args().device
    try:
        setup = setup_for(device)
    except SpeclibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0 if gpu_check(setup).holds else 1


if __name__ == "__main__":
    sys.exit(main())
