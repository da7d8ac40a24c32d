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


class Buffer:
    """Keys or values of tokens that follow one another, with free slots behind them.

    It has at most ``STEP`` slots more than were ever written.
    """

    def __init__(self) -> None:
        self._states: torch.Tensor | None = None  # [1, heads, tokens, channels]

    def write(self, new: torch.Tensor, length: int) -> torch.Tensor:
        """Puts ``new`` [1, heads, fed, channels] behind the first ``length`` tokens.

        Returns these and the new ones [1, heads, length + fed, channels].
        """
        new_length = length + new.shape[-2]
        states = self._states
        if states is None or states.shape[-2] < new_length:
            old = new[:, :, :0] if states is None else states[:, :, :length]
            states = enlarged(old, ceil(new_length / STEP) * STEP)
            self._states = states
        states[:, :, length:new_length] = new
        return states[:, :, :new_length]


def enlarged(states: torch.Tensor, tokens: int) -> torch.Tensor:
    """``states`` [texts, heads, length, channels] with zeros, for ``tokens``."""
    texts, heads, length, channels = states.shape
    larger = states.new_zeros(texts, heads, tokens, channels)
    larger[:, :, :length] = states
    return larger


class BufferedLayer(DynamicLayer):
    """What one layer caches, with free slots behind it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # by transformers
        self._key_buffer = Buffer()
        self._value_buffer = Buffer()

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Adds keys and values [1, heads, fed, channels]; gives those of all tokens."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        length = self.get_seq_length()
        keys = self._key_buffer.write(key_states, length)
        values = self._value_buffer.write(value_states, length)
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
