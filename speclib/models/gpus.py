"""How many GPUs torch can use on this machine, and how. Knows no model."""

from __future__ import annotations

import os
from functools import cache

ORDER = "CUDA_DEVICE_ORDER"
NVML_CHECK = "PYTORCH_NVML_BASED_CUDA_CHECK"
CUDNN_ATTENTION = "SPECLIB_CUDNN_ATTENTION"  # "1" asks for it


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
    return f"torch can use {count()} GPUs here"


# -- how they are used -----------------------------------------------------------------
def prepare_environment() -> None:
    """Says to CUDA, before it begins in this process or a later one, what we rely on.

    GPUs are numbered as nvidia-smi numbers them, which is whom we ask what is free on
    ``cuda:1``; CUDA's own order has the fastest first. And whether there is a GPU is
    asked of the driver's library of management, after which a process may still fork.
    What the user has set stays.
    """
    os.environ.setdefault(ORDER, "PCI_BUS_ID")
    os.environ.setdefault(NVML_CHECK, "1")


def settle_attention() -> None:
    """Turns cuDNN's attention off in this process, unless the environment asks for it.

    Torch prefers it on some GPUs (of compute capability 9.0 and 10.0). It makes a plan
    for each pair of lengths, of what is fed and of the whole text, which takes tens of
    milliseconds; and every pass of ours has another such pair. Then whoever makes the
    more kinds of pass is the slower, whatever the method is worth.

    Source: torch, aten/src/ATen/native/cudnn/MHA.cpp (the key of a plan) and
    transformers/cuda/sdp_utils.cpp (the order of kernels).
    """
    import torch

    if os.environ.get(CUDNN_ATTENTION) != "1":
        torch.backends.cuda.enable_cudnn_sdp(False)
