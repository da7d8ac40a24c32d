"""A KV cache that copies nothing until it is full, and grows in large steps.

transformers' own cache concatenates old and new keys and values in every layer of every
pass, which copies the whole text. Here, a layer has free slots after its last token,
and a pass writes its tokens there. Rolling back copies nothing either: the next tokens
overwrite the old ones. If no slot is free, a pass adds 256::

    slots    0                 5        8                              255
             t0 t1 t2 t3 t4    t5 t6 t7 ............ free ............
             cached            fed now

Layers with a sliding window keep every token too: after a rejection, tokens that had
left the window may be within reach again. A pass is shown only the tokens that it can
reach. With a window of three tokens, if t5 and t6 are fed now::

    cached   t0 t1 t2 t3 t4
    shown             t3 t4 t5 t6        t5 sees t3 t4 t5, and t6 sees t4 t5 t6

This module never sees the text.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

import torch
from transformers import Cache
from transformers.cache_utils import DynamicLayer

from .configuration import layer_windows

if TYPE_CHECKING:
    from transformers import PretrainedConfig

STEP = 256  # slots added at a time


def empty_cache(config: PretrainedConfig) -> Cache:
    """An empty cache for the layers of ``config``, a text part's configuration."""
    windows = layer_windows(config)
    if all(window is None for window in windows):
        return Cache(layer_class_to_replicate=BufferedLayer)  # adds layers on demand
    layers: list[Any] = []
    for window in windows:
        layers.append(BufferedLayer() if window is None else WindowLayer(window))
    return Cache(layers=layers)


def first_within_reach(position: int, window: int) -> int:
    """The position of the first token that the token at ``position`` sees."""
    return max(0, position - window + 1)


def enlarged(states: torch.Tensor, tokens: int) -> torch.Tensor:
    """Pads ``states`` [texts, heads, length, channels] with zeros to ``tokens``."""
    texts, heads, length, channels = states.shape
    larger = states.new_zeros(texts, heads, tokens, channels)
    larger[:, :, :length] = states
    return larger


class BufferedLayer(DynamicLayer):
    """One layer's keys and values, with free slots after them.

    At most ``STEP`` of its slots have never been written to.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # by transformers

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Adds keys and values [1, heads, fed, channels]; returns all cached ones."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self._key_slots = key_states[:, :, :0]
            self._value_slots = value_states[:, :, :0]
        length = self.get_seq_length()
        new_length = length + key_states.shape[-2]
        if self._key_slots.shape[-2] < new_length:
            slots = ceil(new_length / STEP) * STEP
            self._key_slots = enlarged(self._key_slots[:, :, :length], slots)
            self._value_slots = enlarged(self._value_slots[:, :, :length], slots)
        self._key_slots[:, :, length:new_length] = key_states
        self._value_slots[:, :, length:new_length] = value_states
        keys = self._key_slots[:, :, :new_length]
        values = self._value_slots[:, :, :new_length]
        self.keys, self.values = keys, values
        return keys, values


class WindowLayer(BufferedLayer):
    """A layer with a sliding window: a pass is shown only the tokens within reach.

    window: how many tokens a token sees, itself included.
    first_position: the lowest position of a token that the next pass feeds. It may be
        less than the number of cached tokens, since nodes of a tree share positions.
    """

    is_sliding = True  # transformers then asks this layer how large its mask is

    def __init__(self, window: int):
        super().__init__()
        self.window = window
        self.first_position = 0

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As in BufferedLayer, but returns only what the pass can reach."""
        keys, values = super().update(key_states, value_states)
        start = first_within_reach(self.first_position, self.window)
        return keys[:, :, start:], values[:, :, start:]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The number of tokens that a pass sees, and the first of them."""
        start = first_within_reach(self.first_position, self.window)
        return self.get_seq_length() + query_length - start, start
