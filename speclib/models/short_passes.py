"""Passes of small networks, with little around the products of matrices.

A pass of a network of some million weights takes one or two milliseconds. More than
half of them go to what transformers does around the products: calls of modules within
modules, hooks, masks, records of what each layer gave. Here the layers of a Llama or a
Qwen 2 are computed by torch's operations alone, with copies of the network's weights,
into its own cache. Its logits are those of the network up to their last digits.

A layer, as everywhere in this family::

    hidden -+- norm - queries, keys, values - turn - attend - out -(+)-+- ...
            +------------------------------------------------------+   |
    ... ----+- norm - silu(gate) * up - down -(+)- hidden of the next layer
            +----------------------------------+

It is for passes that cost next to nothing and are many, as in replays. ``stopped()`` is
not asked within such a pass: it is over before anybody could wish it were.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn import functional as F
from transformers.modeling_outputs import BaseModelOutputWithPast
from transformers.models.llama.modeling_llama import LlamaModel
from transformers.models.qwen2.modeling_qwen2 import Qwen2Model

from speclib.theory.layer_groups import group_layers

from .configuration import layer_windows
from .packed_linear import can_pack, packed_product, packed_weight

MOST_WEIGHTS = 50_000_000  # in a larger network the products take the time
Network = TypeVar("Network", bound=nn.Module)


def shorten(network: Network) -> Network:
    """Has ``network`` compute the passes of a single text so, in place; returns it.

    A network of another architecture, on a GPU, or of more than MOST_WEIGHTS stays as
    it is. So do passes of several texts at a time, and those in which a layer has been
    given another ``forward``. EasySpec's fuzzy passes find ``decoder.short_layers``.
    """
    decoder = network.get_decoder()  # type: ignore[operator]  # of transformers' models
    if not _is_known(decoder):
        return network
    layers, whole_forward = ShortLayers(decoder), decoder.forward
    decoder.short_layers = layers

    def forward(
        input_ids: torch.Tensor | None = None,
        attention_mask: Any = None,
        position_ids: torch.Tensor | None = None,
        past_key_values: Any = None,
        **others: Any,
    ) -> Any:
        is_padded = attention_mask is not None and attention_mask.dim() != 4
        has_cache = past_key_values is not None
        is_known = layers.is_sharing or not _is_changed(decoder)
        is_usual = has_cache and not is_padded and is_known
        if input_ids is None or len(input_ids) != 1 or not is_usual:
            return whole_forward(
                input_ids=input_ids,
                attention_mask=attention_mask,
                position_ids=position_ids,
                past_key_values=past_key_values,
                **others,
            )
        hidden = layers(input_ids, attention_mask, position_ids, past_key_values)
        return BaseModelOutputWithPast(
            last_hidden_state=hidden, past_key_values=past_key_values
        )

    decoder.forward = forward
    return network


def _is_known(decoder: Any) -> bool:
    """Whether it is built as ``ShortLayers`` computes it, and in this memory."""
    if type(decoder) not in (LlamaModel, Qwen2Model):
        return False
    config: Any = decoder.config
    has_windows = any(window is not None for window in layer_windows(config))
    is_usual = config.hidden_act == "silu" and not has_windows
    has_plain_turns = config.rope_parameters["rope_type"] == "default"
    weights = sum(weight.numel() for weight in decoder.parameters())
    is_small = weights <= MOST_WEIGHTS and decoder.device.type == "cpu"
    return is_usual and has_plain_turns and is_small and _has_plain_products(decoder)


def _has_plain_products(decoder: Any) -> bool:
    """Whether its products are torch's own, and not those of quantised weights."""
    for layer in decoder.layers:
        for module in (*layer.self_attn.children(), *layer.mlp.children()):
            has_weights = len(list(module.parameters())) > 0
            if has_weights and type(module) is not nn.Linear:
                return False
    return True


def _is_changed(decoder: Any) -> bool:
    """Whether a layer was given another ``forward`` than its class's."""
    return any("forward" in vars(layer) for layer in decoder.layers)


class ShortLayers:
    """The layers of ``decoder``, a LlamaModel or a Qwen2Model."""

    def __init__(self, decoder: Any):
        self._embedding = decoder.embed_tokens.weight
        self._norm = decoder.norm
        self._layers = [_ShortLayer(layer) for layer in decoder.layers]
        self._groups = group_layers(len(self._layers), 1)
        positions = torch.arange(decoder.config.max_position_embeddings)[None]
        self._cos, sin = decoder.rotary_emb(self._embedding, positions)
        first, second = sin.chunk(2, dim=-1)
        self._sin = torch.cat((-first, second), dim=-1)

    @property
    def is_sharing(self) -> bool:
        """Whether some layers share an input now."""
        return any(len(group) > 1 for group in self._groups)

    @contextmanager
    def sharing(self, lp: int) -> Iterator[None]:
        """In here up to ``lp`` layers share an input, as in ``parallel.fuzzy_pass``."""
        self._groups = group_layers(len(self._layers), lp)
        try:
            yield
        finally:
            self._groups = group_layers(len(self._layers), 1)

    def __call__(
        self,
        tokens: torch.Tensor,
        mask: torch.Tensor | None,
        positions: torch.Tensor | None,
        cache: Any,
    ) -> torch.Tensor:
        """What the LM head reads of ``tokens`` [1, fed]: [1, fed, width].

        mask: [1, 1, fed, all tokens] to be added; None: a token sees what is before it.
        positions: [1, fed]; None: they follow what is cached.
        """
        cached, fed = cache.get_seq_length(), tokens.shape[1]
        if positions is None:
            positions = torch.arange(cached, cached + fed)[None]
        cos, sin = self._cos[:, positions[0]], self._sin[:, positions[0]]
        if mask is None and fed > 1:
            mask = torch.ones(fed, cached + fed, dtype=torch.bool).tril(cached)

        hidden = F.embedding(tokens, self._embedding)
        for group in self._groups:
            attended = [
                self._layers[index].attend(hidden, mask, cos, sin, cache, index)
                for index in group
            ]
            for index, output in zip(group, attended, strict=True):
                hidden = self._layers[index].follow(hidden + output)
        return _normed(hidden, self._norm)


class _ShortLayer:
    """One of them; products of the same input are computed as one."""

    def __init__(self, layer: Any):
        attention, mlp = layer.self_attn, layer.mlp
        self._before_attention = layer.input_layernorm
        self._before_mlp = layer.post_attention_layernorm
        self._queries_keys_values = _Product(
            attention.q_proj, attention.k_proj, attention.v_proj
        )
        self._out = _Product(attention.o_proj)
        self._gate_and_up = _Product(mlp.gate_proj, mlp.up_proj)
        self._down = _Product(mlp.down_proj)
        self._width_of_head = attention.head_dim
        self._keys = attention.k_proj.out_features // attention.head_dim
        self._queries = attention.q_proj.out_features // attention.head_dim

    def attend(
        self,
        hidden: torch.Tensor,
        mask: torch.Tensor | None,
        cos: torch.Tensor,
        sin: torch.Tensor,
        cache: Any,
        index: int,
    ) -> torch.Tensor:
        """What the attention adds to ``hidden`` [1, fed, width]."""
        fed = hidden.shape[1]
        states = self._queries_keys_values(_normed(hidden, self._before_attention))
        heads = states.view(1, fed, -1, self._width_of_head).transpose(1, 2)
        turning = heads[:, : self._queries + self._keys]
        half = self._width_of_head // 2
        turned = turning * cos + torch.roll(turning, half, -1) * sin

        keys, values = cache.update(
            turned[:, self._queries :], heads[:, self._queries + self._keys :], index
        )
        seen = F.scaled_dot_product_attention(
            turned[:, : self._queries],
            keys,
            values,
            attn_mask=mask,
            enable_gqa=self._queries != self._keys,
        )
        return self._out(seen.transpose(1, 2).reshape(1, fed, -1))

    def follow(self, hidden: torch.Tensor) -> torch.Tensor:
        """The output of the layer, where ``hidden`` has the attention's already."""
        both = self._gate_and_up(_normed(hidden, self._before_mlp))
        gate, up = both.chunk(2, dim=-1)
        return hidden + self._down(F.silu(gate) * up)


def _normed(hidden: torch.Tensor, norm: Any) -> torch.Tensor:
    weight = norm.weight
    return F.rms_norm(hidden, weight.shape, weight, norm.variance_epsilon)


class _Product:
    """The product with linear layers of the same input, their outputs side by side."""

    def __init__(self, *layers: nn.Linear):
        self._weight = torch.cat([layer.weight.detach() for layer in layers])
        self._bias = None
        if layers[0].bias is not None:
            self._bias = torch.cat([layer.bias.detach() for layer in layers])
        self._packed: Any = None
        if can_pack() and self._weight.dtype == torch.float32:
            self._packed = packed_weight(self._weight)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        is_one_token = x.shape[1] == 1
        if is_one_token or self._packed is None:
            return F.linear(x, self._weight, self._bias)
        return packed_product(x, self._packed, self._bias)
