"""A KV cache whose layers with a sliding window can be taken back to any token.

transformers' own cache drops what the window of a layer has left. After a rejection,
tokens may be within reach again. So here every token stays, and a pass is shown those
that it can reach. With a window of three tokens, of which t5 and t6 are fed now::

    cached   t0 t1 t2 t3 t4
    shown             t3 t4 t5 t6        t5 sees t3 t4 t5, and t6 sees t4 t5 t6

Layers without a window are transformers' own. This module knows no text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from .configuration import layer_windows

if TYPE_CHECKING:
    from transformers import PretrainedConfig

LEAST_ROOM = 64  # tokens


def empty_cache(config: PretrainedConfig) -> DynamicCache:
    """A cache for the layers of ``config``, that of a model's text part."""
    cache = DynamicCache()
    windows = layer_windows(config)
    if any(window is not None for window in windows):
        cache.layers = [
            DynamicLayer() if window is None else WindowLayer(window)
            for window in windows
        ]
    return cache


def first_within_reach(position: int, window: int) -> int:
    """The position of the first token that one at ``position`` sees."""
    return max(0, position - window + 1)


class Room:
    """Keys or values of tokens in a row, with room behind them for more.

    Where that does not suffice it is doubled, so that a pass copies its own tokens
    alone.
    """

    def __init__(self) -> None:
        self._room: torch.Tensor | None = None  # [1, heads, tokens, channels]

    def write(self, new: torch.Tensor, length: int) -> torch.Tensor:
        """Puts ``new`` [1, heads, fed, channels] behind the first ``length`` tokens.

        Returns these and the new ones [1, heads, length + fed, channels].
        """
        new_length = length + new.shape[-2]
        room = self._room
        if room is None or room.shape[-2] < new_length:
            batch, heads, _, channels = new.shape
            tokens = max(LEAST_ROOM, 2 * new_length)
            larger = new.new_empty(batch, heads, tokens, channels)
            if room is not None:
                larger[:, :, :length] = room[:, :, :length]
            self._room = room = larger
        room[:, :, length:new_length] = new
        return room[:, :, :new_length]


class WindowLayer(DynamicLayer):
    """What one layer caches: all tokens, of which a pass is shown those within reach.

    window: how many tokens a token sees, itself included.
    first_position: where the first of the tokens stands that the next pass feeds. In a
        line that is behind all cached tokens; the nodes of a tree stand side by side.
    """

    is_sliding = True  # transformers then asks this layer how large its mask is

    def __init__(self, window: int):
        super().__init__()
        self.window = window
        self.first_position = 0
        self._key_room = Room()
        self._value_room = Room()

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Adds keys and values [1, heads, fed, channels]; those that the pass reads."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        length = self.get_seq_length()
        keys = self._key_room.write(key_states, length)
        values = self._value_room.write(value_states, length)
        self.keys, self.values = keys, values

        start = first_within_reach(self.first_position, self.window)
        return keys[:, :, start:], values[:, :, start:]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many tokens a pass of ``query_length`` is shown, and which is first."""
        start = first_within_reach(self.first_position, self.window)
        return self.get_seq_length() + query_length - start, start
