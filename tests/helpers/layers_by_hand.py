"""EasySpec's Algorithm 2, written without any module of transformers.

It gives the expected values of fuzzy passes, and of exact passes, in which each layer
is its own group. Needs torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt

import torch

from .checkpoints import LAYERS

HEADS = 4  # two heads share a key
HEAD_DIM = 8

# The layers that share an input, by the largest number allowed to.
APART = [[layer] for layer in range(LAYERS)]
GROUPS = {
    2: [[0], [1, 2], [3, 4], [5, 6], [7], [8]],
    3: [[0], [1, 2, 3], [4, 5, 6], [7], [8]],
    4: [[0], [1, 2, 3], [4, 5, 6, 7], [8]],
}


class ByHand:
    """Passes over a network's weights in float64, with each layer's keys and values.

    read: the last input of each layer's attention, [T, width].
    keys, values: for each layer, one [2, HEAD_DIM] per token.
    """

    def __init__(self, network: torch.nn.Module):
        self.config = network.config
        self.weights = {}
        for name, weight in network.named_parameters():
            self.weights[name] = weight.detach().double()
        embedding = self.weights["model.embed_tokens.weight"]
        self.weights.setdefault("lm_head.weight", embedding)

        self.keys: list[list[torch.Tensor]] = [[] for _ in range(LAYERS)]
        self.values: list[list[torch.Tensor]] = [[] for _ in range(LAYERS)]
        self.read: list[torch.Tensor | None] = [None] * LAYERS

    def feed(self, ids: Sequence[int], groups: Iterable[Sequence[int]]) -> torch.Tensor:
        """Feeds ``ids``; returns the logits after each, [T, vocab]."""
        hidden = self.weights["model.embed_tokens.weight"][list(ids)]
        for group in groups:
            # All attentions of a group read the same input; the MLPs follow in order.
            outputs = [self.attention(layer, hidden) for layer in group]
            for layer, output in zip(group, outputs, strict=True):
                hidden = hidden + output
                hidden = hidden + self.mlp(layer, hidden)
        return self.linear(self.normed(hidden, "model.norm"), "lm_head")

    def normed(self, x: torch.Tensor, name: str) -> torch.Tensor:
        mean_square = (x * x).mean(-1, keepdim=True)
        rms = torch.sqrt(mean_square + self.config.rms_norm_eps)
        return x / rms * self.weights[f"{name}.weight"]

    def linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        bias = self.weights.get(f"{name}.bias", 0.0)
        return x @ self.weights[f"{name}.weight"].T + bias

    def mlp(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        name = f"model.layers.{layer}"
        x = self.normed(hidden, f"{name}.post_attention_layernorm")
        gate = self.linear(x, f"{name}.mlp.gate_proj")
        x = gate * torch.sigmoid(gate) * self.linear(x, f"{name}.mlp.up_proj")
        return self.linear(x, f"{name}.mlp.down_proj")

    def attention(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """Computes the attention of ``layer`` over the rows of ``hidden``, one by one.

        Each row attends to the cached rows and to itself.
        """
        name = f"model.layers.{layer}"
        self.read[layer] = hidden
        outputs = []
        for x in self.normed(hidden, f"{name}.input_layernorm"):
            outputs.append(self.attend(layer, x, f"{name}.self_attn"))
        return torch.stack(outputs)

    def attend(self, layer: int, x: torch.Tensor, name: str) -> torch.Tensor:
        query = self.linear(x, f"{name}.q_proj").view(-1, HEAD_DIM)
        key = self.linear(x, f"{name}.k_proj").view(-1, HEAD_DIM)
        value = self.linear(x, f"{name}.v_proj").view(-1, HEAD_DIM)
        if self.config.model_type == "qwen3":
            query = self.normed(query, f"{name}.q_norm")
            key = self.normed(key, f"{name}.k_norm")

        position = len(self.keys[layer])
        query = self.turned(query, position)
        self.keys[layer].append(self.turned(key, position))
        self.values[layer].append(value)

        heads = []
        for head in range(HEADS):
            keys = torch.stack(self.keys[layer])[:, head // 2]
            values = torch.stack(self.values[layer])[:, head // 2]
            chances = torch.softmax(keys @ query[head] / sqrt(HEAD_DIM), 0)
            heads.append(chances @ values)
        return self.linear(torch.cat(heads), f"{name}.o_proj")

    def turned(self, x: torch.Tensor, position: int) -> torch.Tensor:
        """Rotates heads x [n, 8]: channels j and j + 4 together, at theta^(-2j/8)."""
        theta = self.config.rope_parameters["rope_theta"]
        rates = theta ** (-torch.arange(4.0).double() / 4)
        cos, sin = torch.cos(position * rates), torch.sin(position * rates)
        a, b = x[:, :4], x[:, 4:]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), 1)
