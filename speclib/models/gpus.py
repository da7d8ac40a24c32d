"""How many GPUs torch can use on this machine. Knows no model."""

from functools import cache


@cache
def count() -> int:
    """Counts the GPUs: 0 where torch is not installed, or was built without CUDA."""
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()
