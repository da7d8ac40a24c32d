"""Passes of one shape: every pass feeds the same number of tokens, into fixed slots.

A kernel's summation order depends on the shape of its input. The last bits of a token's
logits may therefore change if the token is fed together with others, and in bfloat16
that can change which token is likeliest. Here, plain decoding and every method feed a
model blocks of one size. Filler tokens, which no other token sees, complete a partial
block, and longer inputs take several blocks:

    text      t0 t1 t2 t3 | t4 t5  .  .         six tokens in blocks of four
    slots      0  1  2  3    4  5  6  7  8 ...  keys and values, which never move

Cutting the cache copies nothing: the next block overwrites what was cut. The slots of a
block are stored in a tensor, so a pass can be recorded once and then replayed by a GPU
alone (see ``recorded_pass``).
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

FIRST_ROOM = 256  # slots of a new cache, unless the pair specifies a number
FILLER = hf.FIRST_TOKEN


class Block(NamedTuple):
    """The shape of a pass: it reads ``room`` slots, and feeds up to ``most`` tokens."""

    room: int
    most: int


def block_at(slot: int, count: int, first_room: int) -> Block:
    """The shape of a pass of ``count`` tokens whose first one goes into ``slot``.

    The number of slots that a pass reads is part of its shape, and depends only on
    where its tokens go. In blocks of four, with eight slots at first::

        slots    0 1 2 3 4 | 5 6 7 8 9 10 11 12 | 13 ...
        room         8     |         16         | 32

    A block that begins at 4 ends at 7, fillers included, and fits into eight slots; one
    that begins at 5 does not. So a block ends where the next room begins.
    """
    room = first_room
    while slot + count > room:
        room *= 2
    last_slot = room - count  # a block that begins later would not fit
    return Block(room, most=min(count, last_slot + 1 - slot))


class FixedLayer(CacheLayerMixin):
    """Keys and values of one layer: [1, heads, slots, head width].

    A pass of ``model`` writes its tokens to ``model.slots`` and reads the first
    ``model.room`` slots. There is memory for ``model.capacity`` slots.
    """

    is_sliding = False

    def __init__(self, model: FixedRows):
        super().__init__()  # type: ignore[no-untyped-call]  # by transformers
        self._model = model

    def lazy_initialization(
        self, key_states: torch.Tensor, value_states: torch.Tensor
    ) -> None:
        """Allocates memory for the heads and channels that the first tokens have."""
        self.keys = enlarged(key_states[:, :, :0], self._model.capacity)
        self.values = enlarged(value_states[:, :, :0], self._model.capacity)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Writes a pass's tokens to their slots; returns the first ``room`` slots."""
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
        """The number of cached tokens; does not read from the device."""
        return self._model.cached

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The number of slots that a token may attend to, and the first of them."""
        return self._model.room, 0

    def get_max_length(self) -> int:
        """The number of tokens that fit."""
        return self._model.room


class Recording(NamedTuple):
    """A recorded pass, with the tensors of its inputs and outputs."""

    ids: torch.Tensor
    view: TreeView
    recorded_pass: RecordedPass
    logits: torch.Tensor
    hidden: torch.Tensor


class FixedRows(HFModel):
    """A transformers model that feeds ``count`` tokens in every pass.

    Its distributions equal an HFModel's, except for their last bits. A text without
    branches always gets the same bits, however it is split into passes, if this
    machine's kernels treat all rows of a block alike; tests/models/test_fixed_rows.py
    checks that. There is no guarantee for a tree's nodes, whose slots differ from those
    of a text without branches, nor for a mixture of experts, which divides the tokens
    of a pass among its experts.

    ``recorder``: records a pass that returns logits, and replays it for later passes
    that read the same number of slots. None: every pass is launched kernel by kernel.

    ``first_room``: how many slots a pass reads at first. When they no longer suffice,
    their number doubles, and passes are recorded again.
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
        self._recordings: dict[int, Recording] = {}  # by the pass's room
        self.capacity = first_room  # the most slots that any pass has read
        self.layers: list[FixedLayer] = []
        self.slots = torch.arange(count, device=network.device)
        self._order = torch.arange(count, device=network.device)
        super().__init__(network, vocab)

    @torch.inference_mode()
    def reset(self) -> None:
        """Empties the cache without moving it, since recordings use its addresses."""
        self.prefix = Prefix()
        self.cached = 0  # slots that hold fed tokens, including a tree's nodes
        if not self.layers:
            for _ in range(self.config.num_hidden_layers):
                self.layers.append(FixedLayer(self))
            self.cache = Cache(layers=[*self.layers])
        self._set_room(self.first_room)
        for layer in self.layers:
            layer.reset()  # otherwise a NaN would stay

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens; copies nothing."""
        self.cached = min(self.cached, length)
        self.prefix.cut(length)

    def _forward(
        self, tokens: Sequence[int], wanted: int, view: TreeView | None
    ) -> torch.Tensor:
        """Feeds ``tokens`` block by block; returns the last logits [wanted, vocab]."""
        if view is not None:
            view = _with_all_columns(view, self.cached + len(tokens))
        first_wanted = len(tokens) - wanted
        rows, features = [], []
        first = 0
        while first < len(tokens):
            room, most = block_at(self.cached, self.count, self.first_room)
            self._set_room(room)

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
        """Feeds ``block`` and fillers in one pass; returns the logits [count, vocab].

        ``first``: the block's first row in ``view``. ``with_logits``: False if only
        its keys and values are needed.
        """
        self.slots.copy_(self._order + self.cached)
        fillers = [FILLER] * (self.count - len(block))
        fed = [*self.fed(block), *fillers]
        ids = torch.tensor([fed], device=self.network.device)
        causal = self._causal_view()
        if view is not None:
            _copy_rows(causal, view, first, len(block))

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
        """Warms up with one pass, so that no request pays for it.

        With a recorder, that pass is recorded. One is enough, since all passes have the
        same shape.
        """
        if self.recorder is not None or self.warms_up:
            self.rows([FILLER], 0, Sampler())
            self.reset()
            self.wait_for_device()

    def _replay(self, ids: torch.Tensor, view: TreeView) -> torch.Tensor:
        """Computes a whole block by replaying this room's recording."""
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
        """Records a pass that reads this room, unless one has been recorded.

        Raises BadValue if a pass must read a number from the device to continue, for
        example with dynamic RoPE, which depends on the length of the text.
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
    def _set_room(self, room: int) -> None:
        """Sets how many slots a pass reads."""
        self.room = room
        if room > self.capacity:
            self.capacity = room
            self._recordings.clear()  # the cache will move to new memory

    def _causal_view(self) -> TreeView:
        """The masks [1, 1, count, room] and positions [1, count] of a block of text.

        Like tokens, fillers see whatever precedes them, so no row of a mask is empty.
        Fillers beyond the longest text get its last position. Layers with a sliding
        window also read the whole room; their masks hide tokens outside the window.
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
    """Extends the masks of ``view`` to ``tokens`` columns.

    In ``view``, masks for layers with a sliding window lack the first columns.
    """
    masks = {}
    for kind, mask in view.masks.items():
        left_out = tokens - mask.shape[-1]
        hidden = torch.finfo(mask.dtype).min
        masks[kind] = torch.nn.functional.pad(mask, (left_out, 0), value=hidden)
    return view._replace(masks=masks)


def _copy_rows(causal: TreeView, view: TreeView, first: int, rows: int) -> None:
    """Copies ``rows`` rows of ``view``, starting at ``first``, into ``causal``."""
    for kind, mask in causal.masks.items():
        room = mask.shape[-1]  # tokens beyond it are fed in later passes
        visible = view.masks[kind][:, :, first : first + rows, :room]
        mask[:, :, :rows] = torch.finfo(mask.dtype).min
        mask[:, :, :rows, : visible.shape[-1]] = visible
    causal.position_ids[:, :rows] = view.position_ids[:, first : first + rows]


def load(loading: Loading) -> FixedRows:
    """Builds a model; raises the same errors as ``hf.network``."""
    spec = loading.checkpoint.spec
    assert spec.fixed_rows is not None
    network = hf.network(loading)
    if len({weight.device for weight in network.parameters()}) > 1:
        raise BadValue(
            f"fixed_rows with {spec.model!r} on several GPUs: the whole cache must be "
            "on one GPU; leave fixed_rows out, or give it one GPU"
        )
    recorder = None
    if spec.recorded:
        if network.device.type != "cuda":
            raise BadValue(
                f"recorded with {spec.model!r} on the CPU: only a GPU can record "
                "passes; leave recorded out, or give the model a place such as cuda:0"
            )
        recorder = CudaRecorder(network.device)
    first_room = spec.first_room or FIRST_ROOM
    model = FixedRows(network, loading.vocab, spec.fixed_rows, recorder, first_room)
    model.prepare()
    return model
