"""Passes of one shape: every pass feeds the same number of tokens, into fixed slots.

A kernel chooses by the shape of its input in which order it sums. So a token may get
other last bits where it is fed alone than where it is fed among others, and in bfloat16
that is enough for another token to be the likeliest. Here plain decoding and every
method feed a model blocks of one size. A block that is not full is filled up with
tokens that nobody sees, and what does not fit into one block takes several:

    text      t0 t1 t2 t3 | t4 t5  .  .         six tokens in blocks of four
    slots      0  1  2  3    4  5  6  7  8 ...  keys and values, which never move

Cutting the cache moves nothing: the next block is written over what was cut. The slots
of a block stand in a tensor, so that a pass can be recorded once and then repeated by
a GPU alone (see ``recorded_pass``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Sampler
from speclib.errors import BadValue

from . import hf
from .hf import HFModel, TreeView, decoder_layers
from .kv_cache import enlarged
from .loading import Loading
from .recorded_pass import CudaRecorder, RecordedPass, record

FIRST_ROOM = 256  # slots of a new cache, unless a pair says how many
FILLER = hf.FIRST_TOKEN


class Block(NamedTuple):
    """The shape of a pass: it looks at ``room`` slots, and feeds ``most`` tokens."""

    room: int
    most: int


def block_at(slot: int, count: int, first_room: int) -> Block:
    """The pass of ``count`` tokens that feeds its first one into ``slot``.

    How many slots it looks at is part of its shape, so it hangs on the tokens' slots
    alone. In blocks of four, with eight slots at first::

        slots    0 1 2 3 4 | 5 6 7 8 9 10 11 12 | 13 ...
        room         8     |         16         | 32

    A block that begins at 4 reaches to 7 with its fillers, and fits into eight; one
    that begins at 5 does not. So a block ends where another room begins.
    """
    room = first_room
    while slot + count > room:
        room *= 2
    last_slot = room - count  # fillers behind a later token would not fit
    return Block(room, most=min(count, last_slot + 1 - slot))


class FixedLayer(CacheLayerMixin):
    """Keys and values of one layer: [1, heads, slots, width of a head].

    A pass of ``model`` writes its tokens to ``model.slots`` and looks at the first
    ``model.room``. After it there is memory for ``model.capacity`` slots.
    """

    is_sliding = False

    def __init__(self, model: FixedRows):
        super().__init__()  # type: ignore[no-untyped-call]  # by transformers
        self._model = model

    def lazy_initialization(
        self, key_states: torch.Tensor, value_states: torch.Tensor
    ) -> None:
        """Takes memory, for heads as the first tokens have them."""
        self.keys = enlarged(key_states[:, :, :0], self._model.capacity)
        self.values = enlarged(value_states[:, :, :0], self._model.capacity)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Writes the tokens of a pass to their slots; gives the first ``room``."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.keys is not None
        assert self.values is not None
        if self.keys.shape[2] < self._model.capacity:
            self.keys = enlarged(self.keys, self._model.capacity)
            self.values = enlarged(self.values, self._model.capacity)
        self.keys.index_copy_(2, self._model.slots, key_states)
        self.values.index_copy_(2, self._model.slots, value_states)
        room = self._model.room
        return self.keys[:, :, :room], self.values[:, :, :room]

    def get_seq_length(self) -> int:
        """How many tokens are before the next pass; the device is not asked."""
        return self._model.cached

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many slots a token may look at, and the first of them."""
        return self._model.room, 0

    def get_max_length(self) -> int:
        """How many tokens fit."""
        return self._model.room


class Recording(NamedTuple):
    """A recorded pass, where it finds its inputs, and where it leaves its outputs."""

    ids: torch.Tensor
    view: TreeView
    recorded_pass: RecordedPass
    logits: torch.Tensor
    hidden: torch.Tensor


class FixedRows(HFModel):
    """A transformers model of which every pass feeds ``count`` tokens.

    Its rows are those of an HFModel but for the last bits. A text's row has the same
    bits however the text was fed in a line, as far as this machine's kernels treat all
    rows of a block alike; tests/models/test_fixed_rows.py looks at that. A tree's nodes
    stand in other slots than in a line, and nothing is promised of their last bits.
    Nor is it where experts share the tokens of a pass among them.

    ``recorder``: with it a pass that gives rows is recorded, and then replayed wherever
    a pass looks at as many slots. None: every pass is launched kernel by kernel.

    ``first_room``: how many slots passes look at, at first. They are doubled where
    they do not suffice, and then recordings are made anew.
    """

    def __init__(
        self,
        network: PreTrainedModel,
        vocab: int,
        count: int,
        recorder: CudaRecorder | None = None,
        first_room: int = FIRST_ROOM,
    ):
        self.count = count
        self.first_room = first_room
        self.recorder = recorder
        self._recordings: dict[int, Recording] = {}  # by the room of the pass
        self.capacity = first_room  # the most slots that any pass has looked at
        self.layers: list[FixedLayer] = []
        self.slots = torch.arange(count, device=network.device)
        self._order = torch.arange(count, device=network.device)
        super().__init__(network, vocab)

    @torch.inference_mode()
    def reset(self) -> None:
        """Empties the cache. Its slots stay where they are, as recordings need it."""
        self.prefix = Prefix()
        self.cached = 0  # slots that hold what was fed, those of a tree's nodes too
        if not self.layers:
            for _ in range(self.config.num_hidden_layers):
                self.layers.append(FixedLayer(self))
            self.cache = Cache(layers=[*self.layers])
        self._look_at(self.first_room)
        for layer in self.layers:
            layer.reset()  # or a NaN would stay there

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens; no data are moved."""
        self.cached = min(self.cached, length)
        self.prefix.cut(length)

    def _forward(
        self, tokens: Sequence[int], wanted: int, view: TreeView | None
    ) -> torch.Tensor:
        """Feeds ``tokens`` block by block; the logits [wanted, vocab] of the last."""
        if view is not None:
            view = _with_all_columns(view, self.cached + len(tokens))
        first_wanted = len(tokens) - wanted
        rows, features = [], []
        first = 0
        while first < len(tokens):
            room, most = block_at(self.cached, self.count, self.first_room)
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
        self.slots.copy_(self._order + self.cached)
        fillers = [FILLER] * (self.count - len(block))
        fed = [*self.fed(block), *fillers]
        ids = torch.tensor([fed], device=self.network.device)
        causal = self._causal_view()
        if view is not None:
            _lay_over(causal, view, first, len(block))

        if self.recorder is not None and with_logits:
            self._record_once(ids, causal, self.recorder)
        if self.room in self._recordings:
            logits = self._replay(ids, causal)
        else:
            wanted = self.count if with_logits else 1
            logits = self._compute(wanted, causal, input_ids=ids)
        self.cached += len(block)
        return self.of_pair(logits)

    # -- recorded passes ---------------------------------------------------------------
    @property
    def is_recorded(self) -> bool:
        """Whether passes are replayed."""
        return bool(self._recordings)

    def prepare(self) -> None:
        """Computes a pass in the first room, so that no request has to wait for that.

        It is recorded where passes are. As all have one shape, one is enough.
        """
        if self.recorder is not None or self.warms_up:
            self.rows([FILLER], 0, Sampler())
            self.reset()
            self.wait_for_device()

    def _replay(self, ids: torch.Tensor, view: TreeView) -> torch.Tensor:
        """As ``_compute`` of a whole block, by the recording of this room."""
        recording = self._recordings[self.room]
        recording.ids.copy_(ids)
        recording.view.position_ids.copy_(view.position_ids)
        for kind, mask in view.masks.items():
            recording.view.masks[kind].copy_(mask)
        recording.recorded_pass.replay(self.stopped)
        self.hidden = recording.hidden.clone()
        return recording.logits.clone()

    def _record_once(
        self, ids: torch.Tensor, view: TreeView, recorder: CudaRecorder
    ) -> None:
        """Sees to it that there is a recording of passes in this room.

        Raises BadValue where a pass reads a number before it can go on, as with dynamic
        RoPE, which looks at the length of the text.
        """
        if self.room in self._recordings:
            return
        stopped = self.stopped
        self.stopped = bool  # only whole passes are recorded
        layers = decoder_layers(self.network)
        try:
            recorded_pass, logits = record(
                lambda: self._compute(self.count, view, input_ids=ids),
                layers,
                recorder,
            )
        except Exception as error:
            raise BadValue(
                f"the passes of {hf.named(self.network)} cannot be recorded: {error}. "
                "Leave recorded out"
            ) from error
        finally:
            self.stopped = stopped
        self._recordings[self.room] = Recording(
            ids, view, recorded_pass, logits, self.hidden
        )

    # -- the shape of a pass -----------------------------------------------------------
    def _look_at(self, room: int) -> None:
        """From now on passes look at the first ``room`` slots."""
        self.room = room
        if room > self.capacity:
            self.capacity = room
            self._recordings.clear()  # the cache will move into more memory

    def _causal_view(self) -> TreeView:
        """A block's masks [1, 1, count, room] and positions [1, count] in a plain text.

        Fillers see what is before them, as tokens do: then no row is without a number.
        Those beyond the longest text stand at its last position. Layers with a sliding
        window look at all of the room too; what the window has left is hidden.
        """
        all_slots = torch.arange(self.room, device=self.network.device)
        distances = self.slots[:, None] - all_slots[None, :]
        masks = {}
        for kind, window in self.windows.items():
            is_hidden = distances < 0
            if window is not None:
                is_hidden |= distances >= window
            mask = torch.zeros_like(is_hidden, dtype=self.network.dtype)
            mask.masked_fill_(is_hidden, torch.finfo(mask.dtype).min)
            masks[kind] = mask[None, None]
        positions = self.slots.clamp(max=self.context - 1)
        return TreeView(masks, positions[None].clone(), self.cached)


def _with_all_columns(view: TreeView, tokens: int) -> TreeView:
    """``view`` with a column for each of all ``tokens``.

    A mask of layers with a sliding window leaves out the first ones.
    """
    masks = {}
    for kind, mask in view.masks.items():
        left_out = tokens - mask.shape[-1]
        hidden = torch.finfo(mask.dtype).min
        masks[kind] = torch.nn.functional.pad(mask, (left_out, 0), value=hidden)
    return view._replace(masks=masks)


def _lay_over(causal: TreeView, view: TreeView, first: int, rows: int) -> None:
    """Writes the ``rows`` of ``view`` from ``first`` on into those of a block."""
    for kind, mask in causal.masks.items():
        room = mask.shape[-1]  # what is beyond is fed later, and seen by none of these
        visible = view.masks[kind][:, :, first : first + rows, :room]
        mask[:, :, :rows] = torch.finfo(mask.dtype).min
        mask[:, :, :rows, : visible.shape[-1]] = visible
    causal.position_ids[:, :rows] = view.position_ids[:, first : first + rows]


def load(loading: Loading) -> FixedRows:
    """Builds a model; errors as of ``hf.network``."""
    spec = loading.checkpoint.spec
    assert spec.fixed_rows is not None
    network = hf.network(loading)
    if len({weight.device for weight in network.parameters()}) > 1:
        raise BadValue(
            f"fixed_rows beside {spec.model!r} on several GPUs: all slots of the cache "
            "are on one; leave fixed_rows out, or give it one GPU"
        )
    recorder = None
    if spec.recorded:
        if network.device.type != "cuda":
            raise BadValue(
                f"recorded beside {spec.model!r} on the CPU: only a GPU records its "
                "passes; leave recorded out, or give the model a place such as cuda:0"
            )
        recorder = CudaRecorder(network.device)
    first_room = spec.first_room or FIRST_ROOM
    model = FixedRows(network, loading.vocab, spec.fixed_rows, recorder, first_room)
    model.prepare()
    return model
