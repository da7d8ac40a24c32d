"""Tensor parallelism: each linear layer of a network is cut among ranks.

How a layer is cut is said by transformers' own plan for the checkpoint's architecture:

- "colwise": the layer's outputs are cut. A rank then computes the attention of its own
  heads alone, and holds no other keys and values.
- "rowwise": the layer's inputs are cut, and the ranks' outputs are summed. This happens
  twice in a layer, and these sums are the only messages.
- the head's outputs are cut and gathered.

A layer on two ranks::

                  colwise                 rowwise
          +-> [ heads 0, 1 ] -> attn -> [ o, half ] --+
    h ----|        rank 0                             +--> sum --> h'
          +-> [ heads 2, 3 ] -> attn -> [ o, half ] --+
                   rank 1                                and the MLP alike

transformers itself does this to checkpoints while it reads them. Here any network is
cut once it is built, so that dilated networks can be cut, too, and packed afterwards.
Each rank first builds the whole network in the machine's memory; its place gets its
share alone.

Source: Shoeybi et al. 2019, "Megatron-LM"; in EasySpec the method "TP".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from speclib.errors import BadValue
from speclib.models.hf import HFModel, network
from speclib.models.packed_linear import pack

from .ranks import ALONE, Alone, Following, Leading, Ranks, joined

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from speclib.data.pairs import ModelSpec
    from speclib.models.rank import Rank

# A style of transformers' plan -> the dimension in which it cuts the weight [out, in].
CUT_DIMENSIONS = {"colwise": 0, "colwise_gather_output": 0, "rowwise": 1}
# Styles of layers that stay whole: they are cheap, so every rank has a copy.
WHOLE = {"embedding_rowwise", "replicated_with_grad_allreduce"}


class Tensors(HFModel):
    """An HFModel whose ``network`` is cut to the share of one rank of ``size``."""

    def __init__(self, network: PreTrainedModel, vocab: int, number: int, size: int):
        self.ranks: Ranks | Alone = ALONE  # until they meet
        self._split(network, number, size)
        super().__init__(network, vocab)

    def _split(self, network: PreTrainedModel, number: int, size: int) -> None:
        """Cuts every layer that the plan names, and joins its outputs where needed."""
        _check(network, size)
        for name, module in network.named_modules():
            style = _style(network, name)
            if style not in CUT_DIMENSIONS:
                continue
            if style == "colwise_gather_output":
                if module.out_features % size:
                    continue  # then it is whole on every rank
                module.register_forward_hook(self._gather_output)
            if style == "rowwise":
                module.register_forward_hook(self._sum_output)
            _cut(module, CUT_DIMENSIONS[style], number, size)

    def _sum_output(self, module: nn.Module, args: Any, output: torch.Tensor) -> Any:
        return self.ranks.sum(output)

    def _gather_output(self, module: nn.Module, args: Any, output: torch.Tensor) -> Any:
        return torch.cat(self.ranks.gather(output), -1)


def load(
    spec: ModelSpec,
    dtype: str,
    places: tuple[str, ...],
    vocab: int,
    packed: bool,
    rank: Rank,
) -> HFModel | Leading | Following:
    """Builds ``spec`` as ``rank`` of those on ``places`` has it.

    dtype, vocab, packed: as of ``hf.load``.
    """
    built = network(spec, dtype, (), packed=False)
    model = Tensors(built, vocab, rank.number, rank.size)
    place = places[rank.number]
    if place.startswith("cuda"):
        model.network.to(torch.device(place))
    if packed:
        pack(built)
    return joined(model, rank)


def _style(network: PreTrainedModel, name: str) -> str | None:
    """What the network's plan says of a module; the plan writes ``*`` for any layer."""
    plan = network.tp_plan or {}
    return plan.get(re.sub(r"\d+", "*", name))


def _check(network: PreTrainedModel, size: int) -> None:
    """Raises BadValue for a network that cannot be cut among ``size`` ranks."""
    _check_plan(network)
    family = type(network).__name__
    config = network.config.get_text_config()
    counts = {
        "attention heads": config.num_attention_heads,
        "key and value heads": config.num_key_value_heads,
        "channels in its MLPs": config.intermediate_size,
    }
    for what, count in counts.items():
        if count % size:
            raise BadValue(
                f"this {family} has {count} {what}, which {size} ranks cannot share "
                f"alike: give it a number of places that divides {count}, or "
                "another shape"
            )


def _check_plan(network: PreTrainedModel) -> None:
    """Raises BadValue for a plan of unknown styles, or one that cuts nothing."""
    styles = set((network.tp_plan or {}).values())
    unknown = sorted(styles - CUT_DIMENSIONS.keys() - WHOLE)
    if not unknown and "rowwise" in styles:
        return
    known = ", ".join([*CUT_DIMENSIONS, *sorted(WHOLE)])
    raise BadValue(
        f"spread is 'tensors', but the plan of {type(network).__name__} has "
        f"{', '.join(unknown) or 'none'}; known: {known}. Leave spread out"
    )


@torch.no_grad()
def _cut(linear: nn.Linear, dimension: int, number: int, size: int) -> None:
    """Leaves ``linear`` its ``number``-th share of ``size`` shares.

    A bias that is added to a sum of the ranks' outputs is left to the first rank alone.
    """
    linear.weight = _share(linear.weight, dimension, number, size)
    linear.out_features, linear.in_features = linear.weight.shape
    if linear.bias is None:
        return
    if dimension == 0:
        linear.bias = _share(linear.bias, 0, number, size)
    elif number != 0:
        linear.register_parameter("bias", None)


def _share(
    weight: torch.Tensor, dimension: int, number: int, size: int
) -> nn.Parameter:
    """The ``number``-th of ``size`` equal slices of ``weight``, as a parameter."""
    width = weight.shape[dimension] // size
    own = weight.narrow(dimension, number * width, width)
    copy = own.clone(memory_format=torch.contiguous_format)
    return nn.Parameter(copy, requires_grad=False)
