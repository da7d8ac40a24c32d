"""Passes of one shape: every pass feeds the same number of tokens, into fixed places.

A kernel chooses by the shape of its input in which order it sums. So a token may get
other last bits where it is fed alone than where it is fed among others, and in bfloat16
that is enough for another token to be the likeliest. Here plain decoding and every
method feed a model blocks of one size. A block that is not full is filled up with
tokens that nobody sees, and what does not fit into one block takes several:

    text      t0 t1 t2 t3 | t4 t5  .  .         six tokens in blocks of four
    places     0  1  2  3    4  5  6  7  8 ...  keys and values, which never move

Cutting the cache moves nothing: the next block is written over what was cut. The place
of a block stands in a tensor, as a CUDA graph needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

from speclib.core.kv_prefix import Prefix
from speclib.errors import BadValue

from . import hf
from .hf import HFModel, TreeView

if TYPE_CHECKING:
    from speclib.data.pairs import ModelSpec

FIRST_ROOM = 256  # places of a new cache; it is doubled where they do not suffice
FILLER = 0  # a token that every vocabulary has


class FixedLayer(CacheLayerMixin):
    """Keys and values of one layer: [1, heads, places, width of a head].

    ``places``: where the tokens of the next pass are written; shared by all layers.
    ``room``: how many places, from the first on, that pass looks at.
    """

    is_sliding = False

    def __init__(self, places: torch.Tensor, room: int):
        super().__init__()
        self.places = places
        self.room = room

    def lazy_initialization(
        self, key_states: torch.Tensor, value_states: torch.Tensor
    ) -> None:
        """Makes room, for heads as the first tokens have them."""
        self.keys = _with_room(key_states[:, :, :0], self.room)
        self.values = _with_room(value_states[:, :, :0], self.room)
        self.is_initialized = True

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        *args: object,
        **kwargs: object,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Writes the tokens of a pass to their places; gives the first ``room``."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.keys is not None and self.values is not None
        if self.keys.shape[2] < self.room:
            self.keys = _with_room(self.keys, self.room)
            self.values = _with_room(self.values, self.room)
        self.keys.index_copy_(2, self.places, key_states)
        self.values.index_copy_(2, self.places, value_states)
        return self.keys[:, :, : self.room], self.values[:, :, : self.room]

    def get_seq_length(self) -> int:
        """Where the next pass begins."""
        return int(self.places[0])

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many places a token may look at, and the first of them."""
        return self.room, 0

    def get_max_length(self) -> int:
        """How many tokens fit."""
        return self.room


def _with_room(states: torch.Tensor, room: int) -> torch.Tensor:
    """``states`` [1, heads, tokens, width] and zeros behind them, ``room`` in all."""
    _, heads, tokens, width = states.shape
    larger = states.new_zeros(1, heads, room, width)
    larger[:, :, :tokens] = states
    return larger


class FixedRows(HFModel):
    """A transformers model of which every pass feeds ``count`` tokens.

    Its rows are those of an HFModel but for the last bits. A text's row has the same
    bits however the text was fed in a line, as far as this machine's kernels treat all
    rows of a block alike; tests/models/test_fixed_rows.py looks at that. A tree's nodes
    stand at other places than in a line, and nothing is promised of their last bits.
    """

    def __init__(self, network: PreTrainedModel, vocab: int, count: int):
        self.count = count
        self.places = torch.arange(count, device=network.device)
        self._order = torch.arange(count, device=network.device)
        super().__init__(network, vocab)
        if any(window is not None for window in self.windows.values()):
            raise BadValue(
                f"fixed_rows beside a {type(network).__name__} with a sliding window: "
                "its passes can only have as many rows as are new; leave fixed_rows out"
            )

    def reset(self) -> None:
        """Empties the cache."""
        self.prefix = Prefix()
        self.cached = 0  # places that hold what was fed, those of a tree's nodes too
        self.room = FIRST_ROOM
        self.layers: list[FixedLayer] = []
        for _ in range(self.config.num_hidden_layers):
            self.layers.append(FixedLayer(self.places, self.room))
        self.cache = Cache(layers=[*self.layers])

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens; no data are moved."""
        self.cached = min(self.cached, length)
        self.prefix.cut(length)

    def _forward(
        self, tokens: Sequence[int], wanted: int, view: TreeView | None
    ) -> torch.Tensor:
        """Feeds ``tokens`` block by block; the logits [wanted, vocab] of the last."""
        first_wanted = len(tokens) - wanted
        rows, features = [], []
        first = 0
        while first < len(tokens):
            room = self._room_at(self.cached)
            last_place = room - self.count  # fillers behind a later token would not fit
            most = min(self.count, last_place + 1 - self.cached)
            self._look_at(room)

            block = tokens[first : first + most]
            end = first + len(block)
            is_wanted = end > first_wanted
            logits = self._feed(block, first, view, with_logits=is_wanted)
            features.append(self.hidden[:, : len(block)])
            if is_wanted:
                rows.append(logits[max(0, first_wanted - first) : len(block)])
            first = end
        self.hidden = torch.cat(features, dim=1)
        return torch.cat(rows)

    def _feed(
        self,
        block: Sequence[int],
        first: int,
        view: TreeView | None,
        with_logits: bool,
    ) -> torch.Tensor:
        """One pass over ``block``, filled up; the logits [count, vocab] of its tokens.

        ``first``: the block's first row in ``view``. Without logits only its keys and
        values are wanted.
        """
        self.places.copy_(self._order + self.cached)
        fillers = [FILLER] * (self.count - len(block))
        mask, positions = self._causal_view()
        if view is not None:
            _lay_over(mask, positions, view, first, len(block))

        output = self.network(
            input_ids=torch.tensor([[*block, *fillers]], device=self.network.device),
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=self.count if with_logits else 1,
            attention_mask=mask,
            position_ids=positions,
        )
        self.cached += len(block)
        return output.logits[0, :, : self.vocab]

    def _room_at(self, place: int) -> int:
        """How many places a pass looks at in which the token at ``place`` is fed.

        That is part of a pass's shape, so it hangs on the token's place alone. In
        blocks of four, with eight places at first::

            places   0 1 2 3 4 | 5 6 7 8 9 10 11 12 | 13 ...
            room         8     |         16         | 32

        A block that begins at 4 reaches to 7 with its fillers, and fits into eight; one
        that begins at 5 does not. So a block ends where another room begins.
        """
        room = FIRST_ROOM
        while place + self.count > room:
            room *= 2
        return room

    def _look_at(self, room: int) -> None:
        """From now on passes look at the first ``room`` places."""
        self.room = room
        for layer in self.layers:
            layer.room = room

    def _causal_view(self) -> tuple[torch.Tensor, torch.Tensor]:
        """A block's mask [1, 1, count, room] and positions [1, count] in a plain text.

        Fillers see what is before them, as tokens do: then no row is without a number.
        Those beyond the longest text stand at its last position.
        """
        all_places = torch.arange(self.room, device=self.network.device)
        is_hidden = all_places[None, :] > self.places[:, None]
        dtype = self.network.dtype
        mask = torch.zeros(1, 1, self.count, self.room, dtype=dtype)
        mask = mask.to(self.network.device)
        mask.masked_fill_(is_hidden, torch.finfo(dtype).min)
        positions = self.places.clamp(max=self.context - 1)
        return mask, positions[None].clone()


def _lay_over(
    mask: torch.Tensor, positions: torch.Tensor, view: TreeView, first: int, rows: int
) -> None:
    """Writes the ``rows`` of ``view`` from ``first`` on into those of a block."""
    assert isinstance(view.attention_mask, torch.Tensor)  # one kind of attention
    room = mask.shape[-1]  # what is beyond it is fed later, and seen by none of these
    visible = view.attention_mask[:, :, first : first + rows, :room]
    mask[:, :, :rows] = torch.finfo(mask.dtype).min
    mask[:, :, :rows, : visible.shape[-1]] = visible
    positions[:, :rows] = view.position_ids[:, first : first + rows]


def load(
    spec: ModelSpec, dtype: str, devices: tuple[str, ...], vocab: int, packed: bool
) -> FixedRows:
    """Builds the model of ``spec``; arguments and errors as of ``hf.network``."""
    assert spec.fixed_rows is not None
    network = hf.network(spec, dtype, devices, packed)
    return FixedRows(network, vocab, spec.fixed_rows)
