"""Layer-parallel drafting: the attentions of several layers at once, of one input.

A pass is a chain of layers; what makes a small draft slow is the chain. In a *fuzzy* pass a group
of layers shares the input of its first: all its attentions read h_1 at once, one per rank; then the
MLPs follow in order, h_(i+1) = h'_i + mlp_i(h'_i) with h'_i = h_i + attn_i(h_1). Only what an
attention reads is stale; the residual stream and the MLPs are exact given the attentions. An
*exact* pass is transformers' own.

Written once over ``ranks``: who computes which attention, and how their outputs meet. Every rank
computes the MLPs and whatever stands alone, so nothing else is sent. A rank's cache lacks the keys
of other ranks' layers after a fuzzy pass; an exact one drops all of that anyway.

Source: EasySpec, Algorithm 2 and section 3.3 (bonus calibration).
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import torch

from ..errors import SpeclibError
from ..tokens import Sampler
from .dilate import FAMILIES
from .grouping import grouped
from .hf import HFModel, _layers, network
from .ranks import ALONE, Following, Leading


class Layered(HFModel):
    """An HFModel whose groups of up to ``size`` layers share an input in fuzzy passes.

    Passes are exact until ``begin`` opens an operation. Calibrated, what fuzzy passes cached is
    forgotten then, also of tokens that were accepted; the operation's first pass is exact and feeds
    all that is missing, the others are fuzzy. Not calibrated, fuzzy keys and values stay, and all
    passes are fuzzy but one over a text of which nothing is cached. ``exact``: how many cached
    tokens, from the first on, are exact. With ``size`` 1 all are, and nothing is lost.
    """

    def __init__(self, network, vocab: int, size: int, ranks=ALONE):
        self.size, self.ranks = size, ranks
        super().__init__(network, vocab)
        with fuzzy(network, size):
            pass                                    # refuses here what cannot be

    def reset(self) -> None:
        super().reset()
        self.exact, self._fuzzy = 0, None

    def cut(self, length: int) -> None:
        super().cut(length)
        self.exact = min(self.exact, length)

    def begin(self, calibrate: bool) -> None:
        """A drafting operation begins."""
        if calibrate:
            self.cut(self.exact)
        self._fuzzy = not calibrate

    def _pass(self, text, last: int, sampler: Sampler, kept: int | None = None,
              **how) -> np.ndarray:
        kept = self.prefix.keep(text, last) if kept is None else kept
        if self._fuzzy and kept and self.size > 1:
            with fuzzy(self.network, self.size, self.ranks):
                return super()._pass(text, last, sampler, kept, **how)
        rows = super()._pass(text, last, sampler, kept, **how)
        self.exact, self._fuzzy = len(text), None if self._fuzzy is None else True
        return rows


def load(spec, dtype: str, places: tuple[str, ...], vocab: int, packed: bool = True,
         rank: int = 0, pipes=()):
    """Builds ``spec`` (a ModelSpec) on the ``rank``-th of ``places``; ``pipes``: of a leader, to
    the followers on the others (see ranks)."""
    built = network(spec, dtype, places[rank:rank + 1], packed)
    model = Layered(built, vocab, spec.layer_parallel)
    if rank:
        return Following(model, rank, len(places))
    return Leading(model, pipes) if pipes else model


@contextmanager
def fuzzy(network, size: int, ranks=ALONE):
    """In here, ``network`` computes its layers in groups of up to ``size`` (see ``grouped``).
    Raises SpeclibError where they cannot share an input."""
    kinds = sorted(set(getattr(network.config, "layer_types", None) or ()))
    if type(network).__name__ not in FAMILIES or len(kinds) > 1:
        raise SpeclibError(f"layer_parallel is {size}, but this {type(network).__name__} "
                           f"({', '.join(kinds) or 'of other layers'}) cannot run its layers at "
                           f"once: take one of {', '.join(FAMILIES)} with one kind of attention, "
                           "or give 1")
    layers, changed = _layers(network), []
    try:
        groups = [[layers[i] for i in group] for group in grouped(len(layers), size)]
        for group in (Group(g, ranks) for g in groups if len(g) > 1):
            for place, layer in enumerate(group.layers):
                layer.forward = group.at(place)
                changed.append(layer)
        yield
    finally:
        for layer in changed:
            del layer.forward                       # the class's own is there again


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
        shares = hidden.new_zeros(-(-len(self.layers) // size), *hidden.shape)  # all of one shape
        for share, layer in zip(shares, mine, strict=False):
            share.copy_(layer.self_attn(hidden_states=layer.input_layernorm(hidden), **how)[0])
        theirs = self.ranks.gather(shares)
        return [theirs[i % size][i // size] for i in range(len(self.layers))]


STATES = ("h", "q", "k", "v", "Attn output")


@torch.inference_mode()
def similarities(network, ids, size: int) -> dict[str, list[float]]:
    """Cosine similarity of exact and fuzzy states in each layer, averaged over the positions of
    ``ids``, for each of STATES: what attention reads (before its norm), its queries, keys and
    values (per head, as projected: before a norm of their own, and the rotation, which changes no
    cosine), and its output. Both passes are over the whole text: the fuzzy one reads fuzzy keys.

    Source: EasySpec, Table 5, which says neither over which layers nor with which keys.
    """
    ids = torch.tensor([list(ids)], device=network.device)
    exact = _states(network, ids)
    with fuzzy(network, size):
        stale = _states(network, ids)
    return {state: [float(torch.cosine_similarity(ours, theirs, dim=-1).mean())
                    for ours, theirs in zip(exact[state], stale[state], strict=True)]
            for state in STATES}


def _states(network, ids) -> dict[str, list[torch.Tensor]]:
    """Each of STATES, per layer, [T, heads or 1, channels], of one pass over ``ids``."""
    found, hooks = {state: [] for state in STATES}, []

    def keep(state, channels, reads):
        def see(module, args, value):
            seen = args[0] if reads else value
            found[state].append(seen[0].double().unflatten(-1, (-1, channels)))
        return see

    for layer in _layers(network):
        part, width = layer.self_attn, network.config.hidden_size
        hooks += [module.register_forward_hook(keep(state, channels, state == "h"))
                  for state, module, channels in (
                      ("h", layer.input_layernorm, width), ("q", part.q_proj, part.head_dim),
                      ("k", part.k_proj, part.head_dim), ("v", part.v_proj, part.head_dim),
                      ("Attn output", part.o_proj, width))]
    try:
        network(input_ids=ids, use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    return found
