"""Pipeline parallelism: the layers of a network stand on ranks, one after the other.

A network of six layers on two ranks::

    rank 0    embed  0 1 2                          norm  head
                          \\                        /
    rank 1                 3 4 5 -----------------

One rank computes at a time, and the others wait for what it hands on. The first rank
also has what stands before and after the layers, since it is the one that draws tokens.
A rank reads the weights of its own layers alone (see ``models.weights``).

Source: Huang et al. 2019, "GPipe", with a single micro-batch; PEARL, Appendix G, calls
it PP.
Differences from the usual layout: norm and head are on the first rank, not on the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from speclib.errors import BadValue
from speclib.models.hf import HFModel, decoder_layers
from speclib.models.loading import Loading
from speclib.models.packed_linear import pack
from speclib.models.weights import fill, open_weights

from .ranks import Following, Leading, Ranked, joined, leave_head

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Pipeline(Ranked):
    """An HFModel of whose ``network`` one rank of ``size`` has the layers of a stage.

    Raises BadValue for a network with fewer layers than ranks.
    """

    take_turns = True

    def __init__(self, network: PreTrainedModel, vocab: int, number: int, size: int):
        self._leave_stage(network, number, size)
        super().__init__(network, vocab)

    def _leave_stage(self, network: PreTrainedModel, number: int, size: int) -> None:
        """Takes all layers but those of stage ``number`` out of the network."""
        layers = decoder_layers(network)
        if len(layers) < size:
            raise BadValue(
                f"this {type(network).__name__} has {len(layers)} layers, too few for "
                f"the stages of {size} places: give it fewer places"
            )
        for index in range(len(layers)):
            stage = index * size // len(layers)
            if stage != number:
                layers[index] = Elsewhere(index)
            next_stage = (index + 1) * size // len(layers)
            if next_stage != stage:
                layers[index].register_forward_hook(HandOn(self, stage))
        leave_head(network, number)


class Elsewhere(nn.Module):
    """Stands where a layer would that another rank has.

    It caches a number per token, so that the cache has one length in all layers.
    """

    def __init__(self, layer_number: int):
        super().__init__()
        self.layer_number = layer_number

    def forward(
        self, hidden: torch.Tensor, *args: Any, past_key_values: Any = None, **_: Any
    ) -> torch.Tensor:
        """Returns ``hidden`` [1, T, width] as it is."""
        if past_key_values is not None:
            nothing = hidden.new_zeros(1, 1, hidden.shape[1], 1)
            past_key_values.update(nothing, nothing, self.layer_number)
        return hidden


class HandOn:
    """A hook of a stage's last layer: all ranks now have what that stage computed."""

    def __init__(self, model: Pipeline, stage: int):
        self.model = model
        self.stage = stage

    def __call__(self, module: nn.Module, args: Any, hidden: torch.Tensor) -> Any:
        return self.model.ranks.send(hidden, self.stage)


def load(loading: Loading) -> HFModel | Leading | Following:
    """Builds a model as the loading's rank has it."""
    rank = loading.rank
    assert rank is not None
    weights = open_weights(loading)
    model = Pipeline(weights.network, loading.vocab, rank.number, rank.size)
    fill(weights)
    if loading.packed:
        pack(model.network)
    return joined(model, rank)
