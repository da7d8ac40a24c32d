"""`python -m speclab.bench`: the whole bench.

The guard keeps worker processes from running it again.
"""

from .run_bench import run_bench

if __name__ == "__main__":
    run_bench()
