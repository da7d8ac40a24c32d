"""Faster small batches on CPUs: linear layers with weights packed by oneDNN.

Speculative decoding relies on scoring gamma tokens at about the cost of one, as GPUs
do. PyTorch's float32 matrix product repacks its weights in every call, so on one core
6 tokens cost 2.5 times as much as one. With weights packed once, 6 tokens cost 1.2
times as much. The products are the same but are summed in another order: results differ
by about 1e-6.

Which product is faster for one token depends on the machine, and on whether the weights
stay in its caches. So both are timed on a network's own layers when it is packed.
Plain decoding makes only one-token passes. With the slower product, the baseline would
look slower than it is, and the methods' speed-ups larger.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, TypeVar

import torch
from torch import nn
from torch.nn import functional as F

Network = TypeVar("Network", bound=nn.Module)

TIMES = 3  # how often each product is timed, for each network


def pack(network: Network) -> Network:
    """Packs every float32 linear layer of a CPU model in place, and returns the model.

    If this build of torch has no oneDNN, the model stays as it is.
    """
    if not can_pack():
        return network

    layers = [each for each in network.modules() if _is_float32_linear_on_cpu(each)]
    for layer in layers:
        layer.packed = packed_weight(layer.weight.detach())

    is_faster: Any = packed_is_faster_for_one(layers)
    for layer in layers:
        layer.is_packed_for_one = is_faster
        forward = _packed_forward.__get__(layer)
        layer.forward = forward  # type: ignore[method-assign]
    return network


def can_pack() -> bool:
    """Whether this build of torch has oneDNN's packed product."""
    operations = getattr(torch.ops, "mkldnn", None)
    has_product = hasattr(operations, "_linear_pointwise")
    return torch.backends.mkldnn.is_available() and has_product


def _is_float32_linear_on_cpu(module: nn.Module) -> TypeGuard[nn.Linear]:
    if type(module) is not nn.Linear:
        return False
    weight = module.weight
    return weight.dtype == torch.float32 and weight.device.type == "cpu"


def _packed_forward(self: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """Computes a packed layer's output for ``x`` [..., in_features]."""
    is_one_token = x.numel() == x.shape[-1]
    if is_one_token and not self.is_packed_for_one:
        return F.linear(x, self.weight, self.bias)
    packed: Any = self.packed
    return packed_product(x, packed, self.bias)


def packed_weight(weight: torch.Tensor) -> Any:
    """Packs ``weight`` [out, in] for ``packed_product``."""
    return torch.ops.mkldnn._reorder_linear_weight(weight, None)


def packed_product(
    x: torch.Tensor, packed: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """Computes a packed layer's output [..., out] for ``x`` [..., in]."""
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
        x, packed, bias, "none", [], ""
    )
    return product


@torch.inference_mode()
def packed_is_faster_for_one(layers: Sequence[nn.Linear]) -> bool:
    """Whether these packed layers compute a single token faster with packed weights.

    The measurement takes as long as a few passes.
    """
    tokens = [torch.zeros(1, 1, layer.in_features) for layer in layers]

    def multiply_plainly() -> None:
        for token, layer in zip(tokens, layers, strict=True):
            F.linear(token, layer.weight)

    def multiply_packed() -> None:
        for token, layer in zip(tokens, layers, strict=True):
            packed: Any = layer.packed
            packed_product(token, packed, None)

    return _least_seconds(multiply_packed) < _least_seconds(multiply_plainly)


def _least_seconds(work: Callable[[], None]) -> float:
    """Times the fastest of a few runs, since disturbances only slow a run down."""
    seconds = []
    for _ in range(TIMES):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
