"""How fast a device is beneath a model: its memory, and what its kernels leave idle."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any, NamedTuple

import torch
from torch._C._autograd import DeviceType  # as torch.autograd has it

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


class KernelShares(NamedTuple):
    """Which shares of some time a GPU spent in what; together they are 1."""

    products: float  # of matrices, where the weights are read
    attention: float
    others: float  # norms, rotations, copies: each of them takes microseconds
    outside: float  # in no kernel: it waits for the CPU, or for the next launch


# Parts of kernels' names, as cuBLAS and torch give them; attention is looked for first,
# since its kernels may be made of products.
OF_ATTENTION = ("fmha", "flash", "attention")
OF_PRODUCTS = ("gemm", "gemv", "nvjet", "splitk", "cutlass")


def kernel_shares(run: Callable[[], object]) -> KernelShares:
    """What a GPU does while ``run`` runs, by torch's profiler.

    The profiler itself takes time, so ``outside`` is an upper bound.
    """
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        start = time.perf_counter()
        run()
        whole = time.perf_counter() - start
    return shares_of(profiled.key_averages(), whole)


def shares_of(events: Iterable[Any], whole: float) -> KernelShares:
    """The shares of ``whole`` seconds, by the ``events`` of torch's profiler.

    A kernel has an event of its own. The CPU's operation that launched it states the
    same time once more, and so does a range of the GPU's that somebody has named:
    neither counts. Source: torch/autograd/profiler_util.py, in its own table.
    """
    products = attention = others = 0.0
    for event in events:
        if event.device_type != DeviceType.CUDA or event.is_user_annotation:
            continue
        share = event.self_device_time_total / 1e6 / whole
        name = event.key.lower()
        if any(part in name for part in OF_ATTENTION):
            attention += share
        elif any(part in name for part in OF_PRODUCTS):
            products += share
        else:
            others += share
    outside = 1 - products - attention - others
    return KernelShares(products, attention, others, outside)


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
