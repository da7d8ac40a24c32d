"""Fuzzy passes: the attentions of several layers at once, of one input.

A pass is a chain of layers; what makes a small draft slow is the chain. In a *fuzzy* pass a group
of layers shares the input of its first: all its attentions read h_1 at once, one per rank; then the
MLPs follow in order, h_(i+1) = h'_i + mlp_i(h'_i) with h'_i = h_i + attn_i(h_1). Only what an
attention reads is stale; the residual stream and the MLPs are exact given the attentions. An
*exact* pass is transformers' own.

Written once over ``ranks``: who computes which attention, and how their outputs meet. Every rank
computes the MLPs and whatever stands alone, so nothing else is sent. A rank's cache lacks the keys
of other ranks' layers after a fuzzy pass. Knows no cache beyond that, and no operation.

Source: EasySpec, Algorithm 2.
"""

from __future__ import annotations

from contextlib import contextmanager

import torch

from speclib.errors import SpeclibError
from speclib.models.dilate import FAMILIES
from speclib.models.hf import _layers
from speclib.theory.layer_groups import group_layers

from .ranks import ALONE


def able(network) -> bool:
    """Whether its layers can share an input: of a known architecture, and all of one kind."""
    return type(network).__name__ in FAMILIES and len(_kinds(network)) < 2


def _kinds(network) -> list[str]:
    return sorted(set(getattr(network.config, "layer_types", None) or ()))


def check(network) -> None:
    """Raises SpeclibError for layers that cannot share an input."""
    kinds = _kinds(network)
    if not able(network):
        raise SpeclibError(
            f"this {type(network).__name__} ({', '.join(kinds) or 'of other layers'}"
            ") cannot run several of its layers at once (spread is 'layers'): take "
            f"one of {', '.join(FAMILIES)} with one kind of attention, or leave "
            "spread out"
        )


@contextmanager
def fuzzy(network, lp: int, ranks=ALONE):
    """In here, ``network`` computes its layers in groups of up to ``lp`` (see ``group_layers``)."""
    layers, changed = _layers(network), []
    try:
        groups = [[layers[i] for i in group] for group in group_layers(len(layers), lp)]
        for group in (Group(g, ranks) for g in groups if len(g) > 1):
            for place, layer in enumerate(group.layers):
                layer.forward = group.at(place)
                changed.append(layer)
        yield
    finally:
        for layer in changed:
            del layer.forward  # the class's own is there again


class Group:
    """Consecutive layers whose attentions read the input of the first."""

    def __init__(self, layers, ranks):
        self.layers, self.ranks, self.said = layers, ranks, ()

    def at(self, place: int):
        """The forward of the layer at ``place``."""
        layer = self.layers[place]

        def forward(hidden, **how):
            if not place:
                self.said = self.attend(hidden, how)
            hidden = hidden + self.said[place]
            return hidden + layer.mlp(layer.post_attention_layernorm(hidden))

        return forward

    def attend(self, hidden, how) -> list[torch.Tensor]:
        """What every layer's attention makes of ``hidden`` [1, T, D], in their order; layer i is
        computed by rank i % size."""
        rank, size = self.ranks.rank, self.ranks.size
        mine = self.layers[rank::size]
        shares = hidden.new_zeros(
            -(-len(self.layers) // size), *hidden.shape
        )  # all of one shape
        for share, layer in zip(shares, mine, strict=False):
            share.copy_(
                layer.self_attn(hidden_states=layer.input_layernorm(hidden), **how)[0]
            )
        theirs = self.ranks.gather(shares)
        return [theirs[i % size][i // size] for i in range(len(self.layers))]
