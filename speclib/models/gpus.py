"""How many GPUs torch can use on this machine. Knows no model."""

from functools import cache


@cache
def count() -> int:
    """Counts the GPUs: 0 where torch is not installed, or was built without CUDA.

    torch asks NVML, which leaves CUDA itself untouched, so that a process which has
    counted may still fork.
    """
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()


def available() -> str:
    """What torch can use, as the end of a sentence that says what it cannot."""
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    if torch.version.cuda is None and torch.version.hip is None:
        return "this torch is built for the CPU alone and can use no GPU"
    number = count()
    if number == 0:
        return "torch finds no GPU here"
    return f"torch can use {number} here, cuda:0 to cuda:{number - 1}"
