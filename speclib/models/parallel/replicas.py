"""A draft with a replica on each of several devices; one computes at a time.

The first passes of a block of drafts run on the first rank's device. Then the KV cache
moves to the last rank's device, the remaining passes run there, and the cache moves
back::

    rank 0    d1 d2 d3                     d6 d7 d8
                       \\              /
    rank 1               d4 d5 ------ .

So a draft can share the devices of a pipelined target, and run on whichever is idle.
All ranks have the same ``prefix``. ``held`` states how many of its first tokens each
rank has cached.

Source: PEARL, Appendix G.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from speclib.models.hf import HFModel, TreeView, network
from speclib.models.loading import Loading

from .ranks import Following, Leading, Ranked, joined

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Replica(Ranked):
    """An HFModel on each of ``size`` ranks; the ``active`` one computes."""

    take_turns = True

    def __init__(self, network: PreTrainedModel, vocab: int, size: int):
        self.size = size
        super().__init__(network, vocab)

    def reset(self) -> None:
        """Empties the cache."""
        super().reset()
        self.active = 0
        self.held = [0] * self.size

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens of the cache."""
        super().cut(length)
        self.held = [min(held, length) for held in self.held]

    def _forward(
        self, tokens: Sequence[int], wanted: int, view: TreeView | None
    ) -> torch.Tensor:
        """Computes the logits [wanted, vocab] on the active rank."""
        if self.ranks.rank == self.active:
            logits = super()._forward(tokens, wanted, view).contiguous()
        else:
            device, dtype = self.network.device, self.network.dtype
            logits = torch.empty(wanted, self.vocab, device=device, dtype=dtype)
        self.held[self.active] = len(self.prefix.fed) + len(tokens)
        return self.ranks.send(logits, self.active)

    def go_to(self, rank: int) -> None:
        """Makes ``rank`` active; sends it the keys and values that it lacks."""
        start, end = self.held[rank], len(self.prefix.fed)
        if start < end:
            cache = self._cached(start, end)
            cache = self.ranks.send(cache, self.active)
            if self.ranks.rank == rank:
                self._add_to_cache(cache)
            self.held[rank] = end
        self.active = rank

    def _cached(self, start: int, end: int) -> torch.Tensor:
        """Keys and values [2, layers, heads, end - start, channels] of some tokens.

        On an inactive rank, this is uninitialised memory for them.
        """
        if self.ranks.rank == self.active:
            layers: list[Any] = self.cache.layers
            keys = [layer.keys[0, :, start:end] for layer in layers]
            values = [layer.values[0, :, start:end] for layer in layers]
            return torch.stack([torch.stack(keys), torch.stack(values)])

        config = self.network.config.get_text_config(decoder=True)
        query_heads = config.num_attention_heads
        heads = getattr(config, "num_key_value_heads", None) or query_heads
        channels = getattr(config, "head_dim", None)
        channels = channels or config.hidden_size // query_heads
        shape = (2, config.num_hidden_layers, heads, end - start, channels)
        return torch.empty(shape, device=self.network.device, dtype=self.network.dtype)

    @torch.inference_mode()
    def _add_to_cache(self, cache: torch.Tensor) -> None:
        keys, values = cache
        for layer, (own_keys, own_values) in enumerate(zip(keys, values, strict=True)):
            self.cache.update(own_keys[None], own_values[None], layer)


class LeadingReplica(Leading):
    """A Replica on several ranks (see Leading)."""

    model: Replica

    def go_to_first(self) -> None:
        """Makes the first rank's device active."""
        if self.model.active != 0:
            self.everywhere("go_to", 0)

    def go_to_last(self) -> None:
        """Makes the last rank's device active."""
        self.everywhere("go_to", self.rank.size - 1)


def load(loading: Loading) -> HFModel | Leading | Following:
    """Builds this rank's replica."""
    rank = loading.rank
    assert rank is not None
    model = Replica(network(loading), loading.vocab, rank.size)
    return joined(model, rank, LeadingReplica)
