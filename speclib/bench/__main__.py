"""`python -m speclib.bench`: the whole bench. The guard keeps worker processes from running it."""

from . import bench

if __name__ == "__main__":
    bench()
