"""A draft with a replica on each of several devices, of which one computes at a time.

A block's first passes are made on the first rank's device. Then the KV cache is moved
to the last rank's device, the others are made there, and the cache is moved back::

    rank 0    d1 d2 d3                     d6 d7 d8
                       \\              /
    rank 1               d4 d5 ------ .

So a draft can stand on devices of its target, a pipeline, and be where that does not
compute. The ranks share one text and one cache by name (``prefix``). ``held`` says how
many of its first tokens every rank has keys and values of.

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
    """An HFModel that each rank of ``size`` has; the ``active`` one computes."""

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
        """The logits [wanted, vocab], which the active rank computes."""
        if self.ranks.rank == self.active:
            logits = super()._forward(tokens, wanted, view).contiguous()
        else:
            device, dtype = self.network.device, self.network.dtype
            logits = torch.empty(wanted, self.vocab, device=device, dtype=dtype)
        self.held[self.active] = len(self.prefix.fed) + len(tokens)
        return self.ranks.send(logits, self.active)

    def go_to(self, rank: int) -> None:
        """From now on ``rank`` computes; it gets the keys and values that it lacks."""
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

        On a rank that does not compute, memory for them.
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
        """The first rank's device computes."""
        if self.model.active != 0:
            self.everywhere("go_to", 0)

    def go_to_last(self) -> None:
        """The last rank's device computes."""
        self.everywhere("go_to", self.rank.size - 1)


def load(loading: Loading) -> HFModel | Leading | Following:
    """Builds a model as the loading's rank has it."""
    rank = loading.rank
    assert rank is not None
    model = Replica(network(loading), loading.vocab, rank.size)
    return joined(model, rank, LeadingReplica)
