"""How many GPUs torch can use on this machine. Knows no model."""

from functools import cache


@cache
def count() -> int:
    """0 where there is no torch, or one without CUDA."""
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()
