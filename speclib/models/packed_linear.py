"""Faster small batches on CPUs: linear layers with weights that oneDNN has packed.

Speculative decoding relies on scoring gamma tokens at about the cost of one, which is
the case on GPUs. PyTorch's float32 matrix product packs its weights anew at every call,
so that on one core 6 tokens cost 2.5 times as much as one. With weights packed once, 6
tokens cost 1.2 times as much. The products are the same and are summed in another
order: results differ by about 1e-6.

Of one token which product is faster hangs on the machine, so each process times both.
Plain decoding makes no other passes: with the slower one it would look slower than it
is, and every method faster than it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any, TypeGuard, TypeVar

import torch
from torch import nn
from torch.nn import functional as F

Network = TypeVar("Network", bound=nn.Module)

# The layers that one token's products are timed on: as many weights as do not stay in a
# core's own cache, in the shape of a small model's layers.
TIMED_LAYERS = 8
TIMED_WIDTH = 1024
TIMES = 5


def pack(network: Network) -> Network:
    """Packs every float32 linear layer of a CPU model in place, and returns the model.

    Where this build of torch has no oneDNN, the model stays as it is.
    """
    if not can_pack():
        return network

    for module in network.modules():
        if _is_float32_linear_on_cpu(module):
            weight = module.weight.detach()
            module.packed = packed_weight(weight)
            packed_is_faster_for_one()  # now, and not within a pass that is timed
            forward = _packed_forward.__get__(module)
            module.forward = forward  # type: ignore[method-assign]
    return network


def can_pack() -> bool:
    """Says whether this build of torch has oneDNN's packed product."""
    operations = getattr(torch.ops, "mkldnn", None)
    has_product = hasattr(operations, "_linear_pointwise")
    return torch.backends.mkldnn.is_available() and has_product


def _is_float32_linear_on_cpu(module: nn.Module) -> TypeGuard[nn.Linear]:
    if type(module) is not nn.Linear:
        return False
    weight = module.weight
    return weight.dtype == torch.float32 and weight.device.type == "cpu"


def _packed_forward(self: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """The method of a packed layer: its output for ``x`` [..., in_features]."""
    is_one_token = x.numel() == x.shape[-1]
    if is_one_token and not packed_is_faster_for_one():
        return F.linear(x, self.weight, self.bias)
    packed: Any = self.packed
    return packed_product(x, packed, self.bias)


def packed_weight(weight: torch.Tensor) -> Any:
    """``weight`` [out, in] as ``packed_product`` takes it."""
    return torch.ops.mkldnn._reorder_linear_weight(weight, None)


def packed_product(
    x: torch.Tensor, packed: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """The output of a packed layer for ``x`` [..., in]: [..., out]."""
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
        x, packed, bias, "none", [], ""
    )
    return product


@cache
def packed_is_faster_for_one() -> bool:
    """Whether this machine multiplies one token faster with packed weights.

    It is timed once in a process, which takes some ten milliseconds.
    """
    weights = [torch.zeros(TIMED_WIDTH, TIMED_WIDTH) for _ in range(TIMED_LAYERS)]
    packed = [packed_weight(w) for w in weights]
    token = torch.zeros(1, 1, TIMED_WIDTH)

    def multiply_plainly() -> None:
        for weight in weights:
            F.linear(token, weight)

    def multiply_packed() -> None:
        for weight in packed:
            packed_product(token, weight, None)

    return _least_seconds(multiply_packed) < _least_seconds(multiply_plainly)


def _least_seconds(work: Callable[[], None]) -> float:
    """The shortest of a few runs: what disturbs a run makes it longer."""
    seconds = []
    for _ in range(TIMES):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
