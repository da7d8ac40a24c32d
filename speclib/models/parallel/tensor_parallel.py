"""Tensor parallelism: each linear layer of a network is divided among ranks.

transformers' plan for the checkpoint's architecture specifies how each layer is cut:

- "colwise": the layer's outputs are cut. A rank then computes only the attention of its
  own heads, and caches no other keys and values.
- "rowwise": the layer's inputs are cut, and the ranks' outputs are summed. This happens
  twice in a layer, and these sums are the only messages.
- "colwise_gather_output": the LM head's outputs are cut and then gathered.

A layer on two ranks::

                  colwise                 rowwise
          +-> [ heads 0, 1 ] -> attn -> [ o, half ] --+
    h ----|        rank 0                             +--> sum --> h'
          +-> [ heads 2, 3 ] -> attn -> [ o, half ] --+
                   rank 1                                and the MLP likewise

A width that is not a multiple of the number of ranks is padded with zeros. Five key and
value heads are split among three ranks as 1 + 2 + 2, and the first rank gets another
head of zeros::

    rank 0   [ kv 0 | zeros ]      likewise the groups of query heads that read them,
    rank 1   [ kv 1 | kv 2  ]      the MLP's channels and the vocabulary's rows
    rank 2   [ kv 3 | kv 4  ]

All ranks then do the same work, and the result stays exact. A head of zeros reads
zeros, a channel of zeros outputs zeros, and the next layer's weights for both are zero.
Logits of padding are cut off before they are joined.

transformers itself cuts checkpoints while it reads them, if no width needs padding.
Here, a network is cut before it has weights, so dilated networks can be cut too. Then a
rank reads only its own slices (see ``models.weights``), and packs them. A rank never
has more in memory than its share and one weight.

Source: Shoeybi et al. 2019, "Megatron-LM"; the method "TP" in EasySpec. Padding: PEARL,
Appendix F, which proposes it without an experiment.
Differences from Appendix F: we pad whole heads, not within a head, so that each query
head stays with the keys and values that it reads. The padding is spread over the ranks,
at most one head, channel or row on each; with padding at the end of the matrix, as
printed, 4 heads on 3 ranks would be 2 + 2 + 0. The width between layers is not cut, so
norms see no padding, and no scaling factor has to ignore any. Padded columns are
removed only from the logits: an MLP's are summed as zeros.
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
    """An HFModel whose ``network`` is cut to the share of one of ``size`` ranks.

    network: with weights, or without them, to be filled afterwards.
    shares: for each weight that is cut, the part that this rank keeps.
    """

    def __init__(self, network: PreTrainedModel, vocab: int, number: int, size: int):
        self.shares: dict[str, Share] = {}
        self._split(network, number, size)
        super().__init__(network, vocab)

    def _split(self, network: PreTrainedModel, number: int, size: int) -> None:
        """Cuts every layer that the plan names, and joins outputs where needed."""
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
    """Builds this rank's part of a model.

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
    """The plan's style for a module; in the plan, ``*`` means any layer."""
    plan = network.tp_plan or {}
    return plan.get(re.sub(r"\d+", "*", name))


def own_units(units: int, number: int, size: int) -> range:
    """The consecutive units of rank ``number`` when ``size`` ranks share ``units``.

    Any two ranks differ by at most one unit.
    """
    return range(number * units // size, (number + 1) * units // size)


def _units(network: PreTrainedModel, name: str, width: int) -> int:
    """The number of pieces into which the ``width`` of module ``name`` may be cut.

    Attention is cut between its key and value heads, each together with the query heads
    that read it. Anything else may be cut anywhere.
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
                f"this {family} has {count} {what}, too few for {size} ranks, which "
                f"need one each: give it at most {count} places, or another shape"
            )


def _check_plan(network: PreTrainedModel) -> None:
    """Raises BadValue for a network without a usable plan.

    The plan may have unknown styles, or cut nothing. And if a configuration does not
    state the number of key and value heads, it is unknown where attention may be cut:
    GPT-NeoX, for example, has queries, keys and values in one matrix.
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
            f"spread is 'tensors', but {named(network)} does not state between which "
            f"heads its attention may be cut. {WAY_OUT}"
        )


@torch.no_grad()
def _cut(
    linear: nn.Linear, dimension: int, units: int, number: int, size: int
) -> dict[str, Share]:
    """Cuts ``linear`` to the share of rank ``number`` of ``size``; returns the shares.

    dimension: the dimension of its weight [out, in] to cut.
    units: the number of pieces into which it may be cut.

    If the ranks' outputs are summed, only the first rank keeps the bias.
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
    """Pads the ``share`` of ``weight`` with zeros to ``width`` in the cut dimension."""
    own_slice = weight[share.region]
    padding_shape = list(weight.shape)
    padding_shape[share.dimension] = width - own_slice.shape[share.dimension]
    padding = weight.new_zeros(padding_shape)
    padded = torch.cat([own_slice, padding], share.dimension)
    return nn.Parameter(padded.contiguous(), requires_grad=False)
