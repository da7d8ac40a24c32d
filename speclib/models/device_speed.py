"""How fast a device is beneath a model: its memory, and what its kernels leave idle."""

from __future__ import annotations

import time
from collections.abc import Callable
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


def share_outside_kernels(run: Callable[[], object]) -> float:
    """The share of ``run``'s time in which the GPU has no kernel, by torch's profiler.

    The profiler itself takes time on the CPU, so this is an upper bound.
    """
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities) as profiled:
        start = time.perf_counter()
        run()
        whole = time.perf_counter() - start
    microseconds = 0.0
    for event in profiled.key_averages():
        microseconds += event.self_device_time_total
    return 1 - microseconds / 1e6 / whole
