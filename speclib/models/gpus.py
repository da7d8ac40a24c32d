"""Counts the GPUs, and sets how torch uses them."""

from __future__ import annotations

import os
from functools import cache

ORDER = "CUDA_DEVICE_ORDER"
NVML_CHECK = "PYTORCH_NVML_BASED_CUDA_CHECK"
CUDNN_ATTENTION = "SPECLIB_CUDNN_ATTENTION"  # "1" turns it on


@cache
def count() -> int:
    """Counts the GPUs: 0 if torch is not installed, or was built without CUDA.

    torch asks NVML, which does not initialise CUDA, so the process can still fork.
    """
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()


def available() -> str:
    """The number of GPUs that torch can use, as the end of an error message."""
    return f"torch can use {count()} GPUs here"


# -- how they are used -----------------------------------------------------------------
def prepare_environment() -> None:
    """Sets environment variables before CUDA starts, for this process and its children.

    GPUs are numbered as in nvidia-smi, which we ask for the free memory of ``cuda:1``;
    by default, CUDA puts the fastest first. torch looks for GPUs through NVML, so that
    the process can still fork. Variables that the user has set are kept.
    """
    os.environ.setdefault(ORDER, "PCI_BUS_ID")
    os.environ.setdefault(NVML_CHECK, "1")


def disable_cudnn_attention() -> None:
    """Turns cuDNN's attention off in this process, unless the environment asks for it.

    torch prefers it on some GPUs (compute capability 9.0 and 10.0). cuDNN spends tens
    of milliseconds on a plan for each combination of input length and text length, and
    each of our passes has a new combination. A method with more kinds of pass would
    then look slower than it is.

    Source: torch, aten/src/ATen/native/cudnn/MHA.cpp (the key of a plan) and
    transformers/cuda/sdp_utils.cpp (the order of kernels).
    """
    import torch

    if os.environ.get(CUDNN_ATTENTION) != "1":
        torch.backends.cuda.enable_cudnn_sdp(False)
