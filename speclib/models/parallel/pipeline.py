"""Pipeline parallelism: each rank has some consecutive layers of a network.

A network of six layers on two ranks::

    rank 0    embed  0 1 2                          norm  head
                          \\                        /
    rank 1                 3 4 5 -----------------

One rank computes at a time, and the others wait for its output. The first rank also has
the modules before and after the layers, since it draws the tokens. A rank reads only
the weights of its own layers (see ``models.weights``).

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

from .ranks import Following, Leading, Ranked, drop_head, joined

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Pipeline(Ranked):
    """An HFModel whose ``network`` keeps the layers of one of ``size`` stages.

    Raises BadValue for a network with fewer layers than ranks.
    """

    take_turns = True

    def __init__(self, network: PreTrainedModel, vocab: int, number: int, size: int):
        self._keep_stage(network, number, size)
        super().__init__(network, vocab)

    def _keep_stage(self, network: PreTrainedModel, number: int, size: int) -> None:
        """Removes all layers from the network except those of stage ``number``."""
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
        drop_head(network, number)


class Elsewhere(nn.Module):
    """Replaces a layer that another rank has.

    It caches one number per token, so that all layers' caches have the same length.
    """

    def __init__(self, layer_number: int):
        super().__init__()
        self.layer_number = layer_number

    def forward(
        self, hidden: torch.Tensor, *args: Any, past_key_values: Any = None, **_: Any
    ) -> torch.Tensor:
        """Returns ``hidden`` [1, T, width] unchanged."""
        if past_key_values is not None:
            nothing = hidden.new_zeros(1, 1, hidden.shape[1], 1)
            past_key_values.update(nothing, nothing, self.layer_number)
        return hidden


class HandOn:
    """A hook after a stage's last layer: sends the stage's output to all ranks."""

    def __init__(self, model: Pipeline, stage: int):
        self.model = model
        self.stage = stage

    def __call__(self, module: nn.Module, args: Any, hidden: torch.Tensor) -> Any:
        return self.model.ranks.send(hidden, self.stage)


def load(loading: Loading) -> HFModel | Leading | Following:
    """Builds this rank's part of a model."""
    rank = loading.rank
    assert rank is not None
    weights = open_weights(loading)
    model = Pipeline(weights.network, loading.vocab, rank.number, rank.size)
    fill(weights)
    if loading.packed:
        pack(model.network)
    return joined(model, rank)
