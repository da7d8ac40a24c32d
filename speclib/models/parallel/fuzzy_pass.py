"""Fuzzy passes: the attentions of several layers at once, all reading the same input.

A forward pass is a chain of layers, and that chain is what makes a small draft slow. In
a *fuzzy* pass the layers of a group share the input of the first. All their attentions
read h_1 at once, one per rank. Then the MLPs follow in order:

    h'_i    = h_i + attn_i(h_1)
    h_(i+1) = h'_i + mlp_i(h'_i)

A group of three layers::

    h_1 ---+------------+------------+
           |            |            |
         attn_1       attn_2       attn_3          at once, each on one rank
           |            |            |
           |   h_2      |   h_3      |
    h_1 -> + -> mlp_1 - + -> mlp_2 - + -> mlp_3 -> h_4     in order, on every rank

Only what an attention reads is stale. The residual stream and the MLPs are exact, given
the attentions. An *exact* pass is transformers' own.

The code is written once over ``ranks``: who computes which attention, and how their
outputs meet. Every rank computes the MLPs and all layers that stand alone, so nothing
else is sent. After a fuzzy pass a rank's cache lacks the keys of the other ranks'
layers. This module knows no cache beyond that, and no operation.

Source: EasySpec, Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING, Any

import torch

from speclib.data.layer_groups import group_layers
from speclib.errors import BadValue
from speclib.models.dilate import FAMILIES
from speclib.models.hf import decoder_layers, named

from .ranks import ALONE, Alone, Ranks

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def can_share_inputs(network: PreTrainedModel) -> bool:
    """Says whether layers of ``network`` can share an input.

    They can if the architecture is a known one, and all its layers are of one kind.
    """
    is_known = type(network).__name__ in FAMILIES
    return is_known and len(_attention_kinds(network)) < 2


def check(network: PreTrainedModel) -> None:
    """Raises BadValue for a network whose layers cannot share an input."""
    if can_share_inputs(network):
        return
    kinds = ", ".join(_attention_kinds(network)) or "of other layers"
    raise BadValue(
        f"{named(network)} ({kinds}) cannot run several of its layers at once (spread "
        f"is 'layers'): take one of {', '.join(FAMILIES)} with one kind of attention, "
        "or leave spread out"
    )


def _attention_kinds(network: PreTrainedModel) -> list[str]:
    kinds = getattr(network.config, "layer_types", None) or ()
    return sorted(set(kinds))


@contextmanager
def fuzzy(
    network: PreTrainedModel, lp: int, ranks: Ranks | Alone = ALONE
) -> Iterator[None]:
    """In here ``network`` computes its layers in groups of up to ``lp``.

    Which layers form a group is said by ``data.layer_groups.group_layers``.
    """
    layers = decoder_layers(network)
    changed = []
    short_layers = getattr(network.get_decoder(), "short_layers", None)
    try:
        for numbers in group_layers(len(layers), lp):
            if len(numbers) == 1:
                continue  # a layer alone computes as it always does
            group = LayerGroup([layers[number] for number in numbers], ranks)
            for index, layer in enumerate(group.layers):
                layer.forward = group.forward_of(index)
                changed.append(layer)
        if short_layers is not None and ranks is ALONE:
            with short_layers.sharing(lp):
                yield
        else:
            yield
    finally:
        for layer in changed:
            del layer.forward  # the class's own is there again


class LayerGroup:
    """Consecutive layers whose attentions read the input of the first."""

    def __init__(self, layers: Sequence[Any], ranks: Ranks | Alone):
        self.layers = layers
        self.ranks = ranks
        self.attention_outputs: list[torch.Tensor] = []  # of the pass under way

    def forward_of(self, place: int) -> Callable[..., torch.Tensor]:
        """The forward method for the layer at ``place`` in this group."""
        layer = self.layers[place]

        def forward(hidden: torch.Tensor, **options: Any) -> torch.Tensor:
            if place == 0:
                self.attention_outputs = self.attend(hidden, options)
            hidden = hidden + self.attention_outputs[place]
            normed = layer.post_attention_layernorm(hidden)
            mlp_output: torch.Tensor = layer.mlp(normed)
            return hidden + mlp_output

        return forward

    def attend(
        self, hidden: torch.Tensor, options: dict[str, Any]
    ) -> list[torch.Tensor]:
        """What each layer's attention makes of ``hidden`` [1, T, D], in order.

        Layer i is computed by rank i % size. Five layers on two ranks::

            rank 0:  layer 0,  layer 2,  layer 4
            rank 1:  layer 1,  layer 3,  zeros      or the ranks' tensors had two shapes

        options: what transformers hands to a layer beside its input.
        """
        rank, size = self.ranks.rank, self.ranks.size
        rounds = ceil(len(self.layers) / size)
        own_outputs = hidden.new_zeros(rounds, *hidden.shape)
        for number, layer in enumerate(self.layers[rank::size]):
            normed = layer.input_layernorm(hidden)
            output = layer.self_attn(hidden_states=normed, **options)[0]
            own_outputs[number].copy_(output)

        outputs_of_ranks = self.ranks.gather(own_outputs)
        outputs = []
        for place in range(len(self.layers)):
            outputs.append(outputs_of_ranks[place % size][place // size])
        return outputs
