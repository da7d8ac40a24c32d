"""Layer-parallel drafting: a draft computes several layers' attentions at once.

A forward pass is a chain of layers, and the chain's length makes a small draft slow. In
a *fuzzy* pass, the layers of a group share the first layer's input. All their
attentions read h_1 at once, one per rank. Then the MLPs follow in order:

    h'_i    = h_i + attn_i(h_1)
    h_(i+1) = h'_i + mlp_i(h'_i)

A group of three layers::

    h_1 ---+------------+------------+
           |            |            |
         attn_1       attn_2       attn_3          at once, each on one rank
           |            |            |
           |   h_2      |   h_3      |
    h_1 -> + -> mlp_1 - + -> mlp_2 - + -> mlp_3 -> h_4     in order, on every rank

Only the attentions' inputs are stale. Given the attentions, the residual stream and the
MLPs are exact. An *exact* pass is transformers' own. Every rank computes the MLPs and
all layers outside groups, so only attention outputs are sent. After a fuzzy pass, a
rank's cache lacks the keys of the other ranks' layers.

``fuzzy`` makes a network's passes fuzzy. ``Layered`` decides which passes are exact,
and which keys stay cached. ``ranks`` coordinates several ranks. This module does not
depend on any method.

Source: EasySpec, Algorithm 2, and section 3.2 (bonus calibration).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any

import torch

from speclib.core.sampling import Rows, Sampler
from speclib.data.layer_groups import group_layers
from speclib.errors import BadValue
from speclib.models.dilate import FAMILIES
from speclib.models.hf import HFModel, TreeView, decoder_layers, named, network
from speclib.models.loading import Loading
from speclib.models.weights import empty_network
from speclib.operations.model import Stopped

from .ranks import ALONE, Alone, Following, Leading, Ranked, Ranks, drop_head, joined

if TYPE_CHECKING:
    from transformers import PreTrainedModel


# -- fuzzy passes ----------------------------------------------------------------------
def can_share_inputs(network: PreTrainedModel) -> bool:
    """Whether layers of ``network`` can share an input.

    They can if its architecture is supported and has only one kind of attention.
    """
    kinds = getattr(network.config, "layer_types", None) or ()
    return type(network).__name__ in FAMILIES and len(set(kinds)) < 2


def check(network: PreTrainedModel) -> None:
    """Raises BadValue for a network whose layers cannot share an input."""
    if not can_share_inputs(network):
        raise BadValue(
            f"{named(network)} cannot run several of its layers at once (spread is "
            f"'layers'): use one of {', '.join(FAMILIES)} with one kind of attention, "
            "or leave spread out"
        )


@contextmanager
def fuzzy(
    network: PreTrainedModel, lp: int, ranks: Ranks | Alone = ALONE
) -> Iterator[None]:
    """Makes ``network`` compute its layers in groups of up to ``lp``.

    ``data.layer_groups.group_layers`` forms the groups.
    """
    layers = decoder_layers(network)
    changed = []
    try:
        for numbers in group_layers(len(layers), lp):
            if len(numbers) == 1:
                continue  # a single layer computes as usual
            group = LayerGroup([layers[number] for number in numbers], ranks)
            for index, layer in enumerate(group.layers):
                layer.forward = group.forward_of(index)
                changed.append(layer)
        yield
    finally:
        for layer in changed:
            del layer.forward  # the class's own is visible again


class LayerGroup:
    """Consecutive layers whose attentions all read the first layer's input."""

    def __init__(self, layers: Sequence[Any], ranks: Ranks | Alone):
        self.layers = layers
        self.ranks = ranks
        self.attention_outputs: list[torch.Tensor] = []  # of the current pass

    def forward_of(self, index: int) -> Callable[..., torch.Tensor]:
        """The forward method for the layer at ``index`` in this group."""
        layer = self.layers[index]

        def forward(hidden: torch.Tensor, **options: Any) -> torch.Tensor:
            if index == 0:
                self.attention_outputs = self.attend(hidden, options)
            hidden = hidden + self.attention_outputs[index]
            normed = layer.post_attention_layernorm(hidden)
            mlp_output: torch.Tensor = layer.mlp(normed)
            return hidden + mlp_output

        return forward

    def attend(
        self, hidden: torch.Tensor, options: dict[str, Any]
    ) -> list[torch.Tensor]:
        """Computes each layer's attention output for ``hidden`` [1, T, D], in order.

        Rank i % size computes layer i. Five layers on two ranks::

            rank 0:  layer 0,  layer 2,  layer 4
            rank 1:  layer 1,  layer 3,  zeros

        The zeros give all ranks' tensors the same shape.

        options: the other arguments that transformers gives a layer.
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
        for index in range(len(self.layers)):
            outputs.append(outputs_of_ranks[index % size][index // size])
        return outputs


# -- a draft whose passes are fuzzy ----------------------------------------------------
class Layered(Ranked):
    """An HFModel that can draft with groups of its layers sharing an input.

    ``data.layer_groups.group_layers`` forms the groups. Outside ``drafting``, every
    pass is exact.

    exact: how many of the first cached tokens have exact keys and values.
    lp: the most layers that share an input in a fuzzy pass.
    """

    def __init__(
        self, network: PreTrainedModel, vocab: int, ranks: Ranks | Alone = ALONE
    ):
        check(network)
        self.ranks = ranks
        super().__init__(network, vocab)

    def reset(self) -> None:
        """Empties the cache."""
        super().reset()
        self.exact = 0
        self.lp = 1
        self._is_drafting = False
        self._calibrates = False  # the next pass is exact, even while drafting

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens of the cache."""
        super().cut(length)
        self.exact = min(self.exact, length)

    @contextmanager
    def drafting(self, lp: int, calibrate: bool) -> Iterator[None]:
        """The context of one drafting operation, with up to ``lp`` layers in a group.

        With ``calibrate``, the first pass is exact and feeds every token without exact
        keys. Later passes are fuzzy, and the cache drops their keys at the end, even
        for tokens that will be accepted.

        Otherwise, all passes are fuzzy, except over a text with nothing cached, and
        their keys stay for the next uncalibrated operation.

        With ``lp`` = 1, all passes are exact. The cache of the text and of two drafted
        tokens (E: exact, F: fuzzy, t: a token of the text that is not cached)::

                            at the start  first pass  later passes   at the end
            calibrated      E E t t t     E E E E E   E E E E E F F  E E E E E
            not calibrated  E E F F t     E E F F F   E E F F F F F  E E F F F F F
        """
        self.begin(lp, calibrate)
        try:
            yield
        finally:
            self.end(calibrate)

    def begin(self, lp: int, calibrate: bool) -> None:
        """Begins a drafting operation."""
        # What a rank has cached depends on lp; with another lp, it must not be read.
        if calibrate or lp != self.lp:
            self.cut(self.exact)
        self.lp = lp
        self._is_drafting = True
        self._calibrates = calibrate

    def end(self, calibrate: bool) -> None:
        """Ends a drafting operation."""
        self._is_drafting = False
        self._calibrates = False
        if calibrate:
            self.cut(self.exact)

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """As in HFModel."""
        self._forget_fuzzy_keys()
        return super().rows(text, last, sampler)

    def tree(
        self, text: Sequence[int], parents: Sequence[int], sampler: Sampler
    ) -> Rows:
        """As in HFModel."""
        self._forget_fuzzy_keys()
        return super().tree(text, parents, sampler)

    def _forget_fuzzy_keys(self) -> None:
        """Cuts fuzzy keys, unless ``drafting``: other passes read exact keys only."""
        if not self._is_drafting and len(self.prefix.fed) > self.exact:
            self.cut(self.exact)

    def _pass(
        self,
        text: Sequence[int],
        last: int,
        sampler: Sampler,
        kept: int | None = None,
        view: TreeView | None = None,
    ) -> Rows:
        if kept is None:
            kept = self.prefix.keep(text, last)
        may_be_fuzzy = self._is_drafting and not self._calibrates
        if may_be_fuzzy and kept > 0 and self.lp > 1:
            with fuzzy(self.network, self.lp, self.ranks):
                return super()._pass(text, last, sampler, kept, view)

        rows = super()._pass(text, last, sampler, kept, view)
        self.exact = len(text)
        self._calibrates = False
        return rows


class LeadingDrafter(Leading):
    """A Layered model on several ranks (see Leading)."""

    @contextmanager
    def drafting(self, lp: int, calibrate: bool) -> Iterator[None]:
        """As in Layered. After an error, the ranks are unusable, so no end is sent."""
        self.everywhere("begin", lp, calibrate)
        try:
            yield
        except Stopped:
            self.everywhere("end", calibrate)
            raise
        self.everywhere("end", calibrate)


def load(loading: Loading) -> HFModel | Leading | Following:
    """Builds this rank's part of a draft; without a rank, all of it on the first place.

    A draft without ``spread`` uses all its places, and is a plain HFModel if its layers
    cannot share an input there. Any other draft with such layers raises BadValue before
    its weights are read.
    """
    if loading.checkpoint.spec.spread == "blocks":
        built = network(loading)
        is_on_several_gpus = hasattr(built, "hf_device_map")
        can_share = can_share_inputs(built) and not is_on_several_gpus
        model = (Layered if can_share else HFModel)(built, loading.vocab)
        model.prepare()
        return model

    check(empty_network(loading.checkpoint.config, loading.torch_dtype))
    number = 0
    if loading.rank is None:
        loading = replace(loading, places=loading.places[:1])
    else:
        number = loading.rank.number
    built = network(loading)
    drop_head(built, number)
    return joined(Layered(built, loading.vocab), loading.rank, LeadingDrafter)
