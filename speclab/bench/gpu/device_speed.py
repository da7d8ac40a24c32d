"""A device beneath a model: how fast its memory is, and what a pass reads of it."""

from __future__ import annotations

import gc
import time
from statistics import median

import torch

GIBIBYTE = 1 << 30


def cuda_version() -> str:
    """The CUDA that this torch was built for; "none" for a build without."""
    return str(torch.version.cuda or "none")


def memory_bandwidth(device: torch.device) -> float:
    """Bytes a second that copying a gibibyte moves: it is read, and it is written."""
    source = torch.zeros(GIBIBYTE, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    seconds = []
    for _ in range(5):
        _wait_for(device)
        start = time.perf_counter()
        target.copy_(source)
        _wait_for(device)
        seconds.append(time.perf_counter() - start)
    return 2 * GIBIBYTE / median(seconds)


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def bytes_read_per_pass(network: torch.nn.Module) -> int:
    """All weights but the embeddings, of which a pass reads a row a token."""
    read = 0
    for module in network.modules():
        if isinstance(module, torch.nn.Embedding):
            continue
        for weight in module.parameters(recurse=False):
            read += weight.numel() * weight.element_size()
    return read


def name_of(device: torch.device) -> str:
    """What its maker calls a GPU; "cpu" for the CPU."""
    if device.type != "cuda":
        return device.type
    return torch.cuda.get_device_name(device)


def release_memory() -> None:
    """Gives back to the GPUs what this process holds for nothing.

    Torch keeps the memory of a model that is gone, and no other process has it then.
    """
    gc.collect()  # its hooks and it refer to each other
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
