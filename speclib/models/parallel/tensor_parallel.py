"""Tensor parallelism: each linear layer of a network cut among ranks, by transformers' own plan.

The plan of a checkpoint's architecture says how: a "colwise" layer has its outputs cut, so a rank
computes the attention of its heads alone, and holds no other keys and values; a "rowwise" layer
has its inputs cut, and the ranks' outputs are summed: twice a layer, the only messages. The head's
outputs are cut and gathered. transformers itself does this to checkpoints while it reads them; here
any network is cut once it is built, so dilated ones too, and packed afterwards. Each rank builds
the whole network first, in the machine's memory; its place gets its share alone.

Source: Shoeybi et al. 2019, "Megatron-LM"; in EasySpec the method "TP".
"""

from __future__ import annotations

import re

import torch
from torch import nn

from speclib.errors import SpeclibError
from speclib.models.hf import HFModel, network
from speclib.models.packed_linear import pack

from .ranks import ALONE, joined

CUT = {
    "colwise": 0,
    "colwise_gather_output": 0,
    "rowwise": 1,
}  # the dimension of the weight
WHOLE = {
    "embedding_rowwise",
    "replicated_with_grad_allreduce",
}  # cheap: a copy on every rank


class Tensors(HFModel):
    """An HFModel, of whose ``network`` this is the share of rank ``number`` of ``size``."""

    def __init__(self, network, vocab: int, number: int, size: int):
        self.ranks = ALONE  # until they meet
        self._split(network, number, size)
        super().__init__(network, vocab)

    def _split(self, network, number: int, size: int) -> None:
        _check(network, size)
        for name, module in network.named_modules():
            style = _style(network, name)
            if style not in CUT:
                continue
            if style == "colwise_gather_output":
                if module.out_features % size:
                    continue  # then it is whole on every rank
                module.register_forward_hook(self._gathered)
            if style == "rowwise":
                module.register_forward_hook(self._summed)
            _cut(module, CUT[style], number, size)

    def _summed(self, module, args, share: torch.Tensor) -> torch.Tensor:
        return self.ranks.sum(share)

    def _gathered(self, module, args, share: torch.Tensor) -> torch.Tensor:
        return torch.cat(self.ranks.gather(share), -1)


def load(spec, dtype: str, places: tuple[str, ...], vocab: int, packed: bool, rank):
    """Builds ``spec`` (a ModelSpec) as ``rank`` (a worker.Rank) of those on ``places`` has it."""
    built = network(spec, dtype, (), packed=False)
    model = Tensors(built, vocab, rank.number, rank.size)
    if places[rank.number].startswith("cuda"):
        built.to(places[rank.number])
    if packed:
        pack(built)
    return joined(model, rank)


def _style(network, name: str) -> str | None:
    """What the network's plan says of a module; it names layers by ``*``."""
    return (network.tp_plan or {}).get(re.sub(r"\d+", "*", name))


def _check(network, size: int) -> None:
    """Raises SpeclibError for what cannot be cut in ``size``."""
    kind, config = type(network).__name__, network.config.get_text_config()
    styles = set((network.tp_plan or {}).values())
    if odd := sorted(styles - CUT.keys() - WHOLE) or ["none"] * (
        "rowwise" not in styles
    ):
        raise SpeclibError(
            f"spread is 'tensors', but the plan of {kind} has {', '.join(odd)}; "
            f"known: {', '.join([*CUT, *sorted(WHOLE)])}. Leave spread out"
        )
    widths = {
        "attention heads": config.num_attention_heads,
        "key and value heads": config.num_key_value_heads,
        "channels in its MLPs": config.intermediate_size,
    }
    for what, count in widths.items():
        if count % size:
            raise SpeclibError(
                f"this {kind} has {count} {what}, which {size} ranks cannot share "
                f"alike: give it a number of places that divides {count}, or "
                "another shape"
            )


@torch.no_grad()
def _cut(linear: nn.Linear, dimension: int, number: int, size: int) -> None:
    """Leaves ``linear`` its ``number``-th share of ``size``; of a bias that is added to a sum the
    first rank has all."""

    def share(weight, dimension):
        width = weight.shape[dimension] // size
        mine = weight.narrow(dimension, number * width, width)
        return nn.Parameter(mine.clone(memory_format=torch.contiguous_format), False)

    linear.weight = share(linear.weight, dimension)
    linear.out_features, linear.in_features = linear.weight.shape
    if linear.bias is not None and dimension == 0:
        linear.bias = share(linear.bias, 0)
    elif number:
        linear.bias = None
