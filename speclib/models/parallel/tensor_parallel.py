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

Where a width does not divide among the ranks, it is padded with zeros. Five key and
value heads on three ranks are 1 + 2 + 2 heads, and the first rank has one of zeros::

    rank 0   [ kv 0 | zeros ]      as do the query heads that read it, whole groups,
    rank 1   [ kv 1 | kv 2  ]      the MLP's channels and the vocabulary's rows
    rank 2   [ kv 3 | kv 4  ]

All ranks then do the same work, and the result stays exact. A head of zeros reads
zeros, a channel of zeros is silent, and both meet inputs of zero weight. Logits of
padding are cut off before they are joined.

transformers itself does this to checkpoints while it reads them, where widths divide.
Here a network is cut before it has weights, so that dilated networks can be cut, too.
Then a rank reads its own slices alone (see ``models.weights``), and packs them. No rank
ever has more in memory than its share and one weight.

Source: Shoeybi et al. 2019, "Megatron-LM"; in EasySpec the method "TP". Padding: PEARL,
Appendix F, which proposes it and runs nothing.
Differences from Appendix F: zeros are added by whole heads, not within a head, so that
each query head stays with the keys and values that it reads. They are spread, at most
one head, channel or row to a rank; at the end of the matrix, as printed, 4 heads on 3
ranks would be 2 + 2 + 0. The width between layers is not cut, so norms meet no zeros
and no scaling factor has to ignore any. Columns of padding are removed from the logits
alone: an MLP's are added up as zeros.
"""

from __future__ import annotations

import re
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from speclib.errors import BadValue
from speclib.models.hf import HFModel, named
from speclib.models.loading import Loading
from speclib.models.packed_linear import pack
from speclib.models.weights import Share, fill, open_weights

from .ranks import Following, Leading, Ranked, joined

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# A style of transformers' plan -> the dimension in which it cuts the weight [out, in].
CUT_DIMENSIONS = {"colwise": 0, "colwise_gather_output": 0, "rowwise": 1}
# Styles of layers that stay whole: they are cheap, so every rank has a copy.
WHOLE = {"embedding_rowwise", "replicated_with_grad_allreduce"}
WAY_OUT = "Leave spread out, or give 'stages', which cuts no layer"


class Tensors(Ranked):
    """An HFModel whose ``network`` is cut to the share of one rank of ``size``.

    network: with weights or, to be filled afterwards, without.
    shares: which part of each weight that is cut this rank keeps.
    """

    def __init__(self, network: PreTrainedModel, vocab: int, number: int, size: int):
        self.shares: dict[str, Share] = {}
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
                gather = partial(self._gather_output, rows=module.out_features)
                module.register_forward_hook(gather)
            if style == "rowwise":
                module.register_forward_hook(self._sum_output)
            dimension = CUT_DIMENSIONS[style]
            units = _units(network, name, module.weight.shape[dimension])
            shares = _cut(module, dimension, units, number, size)
            for parameter, share in shares.items():
                self.shares[f"{name}.{parameter}"] = share

    def _sum_output(self, module: nn.Module, args: Any, output: torch.Tensor) -> Any:
        return self.ranks.sum(output)

    def _gather_output(
        self, module: nn.Module, args: Any, output: torch.Tensor, rows: int
    ) -> Any:
        """Joins the ranks' logits [..., own rows and padding] to [..., rows]."""
        parts = self.ranks.gather(output)
        own_parts = []
        for number, part in enumerate(parts):
            own_rows = own_units(rows, number, len(parts))
            own_parts.append(part[..., : len(own_rows)])
        return torch.cat(own_parts, -1)


def load(loading: Loading) -> HFModel | Leading | Following:
    """Builds a model as the loading's rank has it.

    Raises BadValue for a network that cannot be cut, before its weights are read.
    """
    rank = loading.rank
    assert rank is not None
    weights = open_weights(loading)
    model = Tensors(weights.network, loading.vocab, rank.number, rank.size)
    fill(weights, model.shares)
    if loading.packed:
        pack(model.network)
    return joined(model, rank)


def _style(network: PreTrainedModel, name: str) -> str | None:
    """What the network's plan says of a module; the plan writes ``*`` for any layer."""
    plan = network.tp_plan or {}
    return plan.get(re.sub(r"\d+", "*", name))


def own_units(units: int, number: int, size: int) -> range:
    """The units that are the ``number``-th rank's own, of ``units`` among ``size``.

    They follow each other. No rank has more than one unit more than another.
    """
    return range(number * units // size, (number + 1) * units // size)


def _units(network: PreTrainedModel, name: str, width: int) -> int:
    """In how many pieces the ``width`` of the module ``name`` may be cut.

    An attention is cut between its key and value heads, each of which keeps the query
    heads that read it. Anything else is cut anywhere.
    """
    if "attn" not in name:
        return width
    config = network.config.get_text_config(decoder=True)
    key_value_heads: int = config.num_key_value_heads
    return key_value_heads


def _check(network: PreTrainedModel, size: int) -> None:
    """Raises BadValue for a network that cannot be cut among ``size`` ranks."""
    _check_plan(network)
    family = type(network).__name__
    config = network.config.get_text_config(decoder=True)
    counts = {
        "key and value heads": config.num_key_value_heads,
        "channels in its MLPs": config.intermediate_size,
        "rows in its vocabulary": config.vocab_size,
    }
    for what, count in counts.items():
        if count < size:
            raise BadValue(
                f"this {family} has {count} {what}, too few for {size} ranks, each of "
                f"which needs one: give it at most {count} places, or another shape"
            )


def _check_plan(network: PreTrainedModel) -> None:
    """Raises BadValue for a network of which no plan says how it may be cut.

    Its plan may have unknown styles, or cut nothing. And where a configuration does not
    say how many key and value heads there are, nobody knows between which outputs an
    attention may be cut: GPT-NeoX has queries, keys and values in one matrix.
    """
    config = network.config.get_text_config(decoder=True)
    styles = set((network.tp_plan or {}).values())
    unknown = sorted(styles - CUT_DIMENSIONS.keys() - WHOLE)
    if unknown or "rowwise" not in styles:
        known = ", ".join([*CUT_DIMENSIONS, *sorted(WHOLE)])
        raise BadValue(
            f"spread is 'tensors', but the plan of {named(network)} has "
            f"{', '.join(unknown) or 'none'}; known: {known}. {WAY_OUT}"
        )
    if getattr(config, "num_key_value_heads", None) is None:
        raise BadValue(
            f"spread is 'tensors', but {named(network)} does not say between which "
            f"heads its attention may be cut. {WAY_OUT}"
        )


@torch.no_grad()
def _cut(
    linear: nn.Linear, dimension: int, units: int, number: int, size: int
) -> dict[str, Share]:
    """Leaves ``linear`` its ``number``-th share of ``size``; says what that is.

    dimension: of its weight [out, in], the one to cut.
    units: in how many pieces that may be cut.

    A bias that is added to a sum of the ranks' outputs is left to the first rank alone.
    """
    unit_width = linear.weight.shape[dimension] // units
    own = own_units(units, number, size)
    share = Share(dimension, own.start * unit_width, own.stop * unit_width)
    width = ceil(units / size) * unit_width  # the same on all ranks

    linear.weight = _padded(linear.weight, share, width)
    linear.out_features, linear.in_features = linear.weight.shape
    shares = {"weight": share}
    if linear.bias is not None and dimension == 0:
        linear.bias = _padded(linear.bias, share, width)
        shares["bias"] = share
    elif linear.bias is not None and number != 0:
        linear.register_parameter("bias", None)
    return shares


def _padded(weight: torch.Tensor, share: Share, width: int) -> nn.Parameter:
    """The ``share`` of ``weight``, with zeros up to ``width`` in the dimension cut."""
    own_slice = weight[share.region]
    padding_shape = list(weight.shape)
    padding_shape[share.dimension] = width - own_slice.shape[share.dimension]
    padding = weight.new_zeros(padding_shape)
    padded = torch.cat([own_slice, padding], share.dimension)
    return nn.Parameter(padded.contiguous(), requires_grad=False)
