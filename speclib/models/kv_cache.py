"""A KV cache in which nothing moves before it is full, and which grows in large steps.

transformers' own cache joins the old keys and values to the new ones in every pass and
every layer, which copies the whole text. Here a layer has free slots behind its last
token, and a pass writes its own tokens there. Taking tokens back moves nothing either:
the next ones are written over them. Where no slot is free, a pass adds 256::

    slots    0                 5        8                              255
             t0 t1 t2 t3 t4    t5 t6 t7 ............ free ............
             cached            fed now

Layers with a sliding window keep every token too, since after a rejection tokens that
the window has left may be within reach again; a pass is shown those that it can reach.
With a window of three tokens, of which t5 and t6 are fed now::

    cached   t0 t1 t2 t3 t4
    shown             t3 t4 t5 t6        t5 sees t3 t4 t5, and t6 sees t4 t5 t6

This module knows no text.
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

STEP = 256  # slots that are added at a time


def empty_cache(config: PretrainedConfig) -> Cache:
    """A cache for the layers of ``config``, that of a model's text part."""
    windows = layer_windows(config)
    if all(window is None for window in windows):
        return Cache(layer_class_to_replicate=BufferedLayer)  # as many as are asked for
    layers: list[Any] = []
    for window in windows:
        layers.append(BufferedLayer() if window is None else WindowLayer(window))
    return Cache(layers=layers)


def first_within_reach(position: int, window: int) -> int:
    """The position of the first token that one at ``position`` sees."""
    return max(0, position - window + 1)


def enlarged(states: torch.Tensor, tokens: int) -> torch.Tensor:
    """``states`` [texts, heads, length, channels] with zeros, for ``tokens``."""
    texts, heads, length, channels = states.shape
    larger = states.new_zeros(texts, heads, tokens, channels)
    larger[:, :, :length] = states
    return larger


class BufferedLayer(DynamicLayer):
    """What one layer caches, with free slots behind it.

    It has at most ``STEP`` slots more than were ever written.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # by transformers

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Adds keys and values [1, heads, fed, channels]; gives those of all tokens."""
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
    """A layer with a sliding window: a pass is shown the tokens within its reach.

    window: how many tokens a token sees, itself included.
    first_position: where the first of the tokens stands that the next pass feeds. In a
        line that is behind all cached tokens; the nodes of a tree stand side by side.
    """

    is_sliding = True  # transformers then asks this layer how large its mask is

    def __init__(self, window: int):
        super().__init__()
        self.window = window
        self.first_position = 0

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As of BufferedLayer; gives those of the tokens that the pass can reach."""
        keys, values = super().update(key_states, value_states)
        start = first_within_reach(self.first_position, self.window)
        return keys[:, :, start:], values[:, :, start:]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many tokens a pass of ``query_length`` is shown, and which is first."""
        start = first_within_reach(self.first_position, self.window)
        return self.get_seq_length() + query_length - start, start
