"""Passes of one shape: every pass feeds the same number of tokens, into fixed slots.

A kernel's order of summation depends on the shape of its input. So the last bits of a
token's logits may differ between feeding it alone and feeding it with others; in
bfloat16 that is enough to change which token is likeliest. Here plain decoding and
every method feed a model blocks of one size. Fillers that no token sees complete a
block that is not full, and longer inputs take several blocks:

    text      t0 t1 t2 t3 | t4 t5  .  .         six tokens in blocks of four
    slots      0  1  2  3    4  5  6  7  8 ...  keys and values, which never move

Cutting the cache copies nothing: the next block overwrites what was cut. A tensor holds
the slots of a block, so that a pass can be recorded once and then replayed by a GPU
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

FIRST_ROOM = 256  # slots of a new cache, unless the pair states a number
FILLER = hf.FIRST_TOKEN


class Block(NamedTuple):
    """The shape of a pass: it looks at ``room`` slots, and feeds ``most`` tokens."""

    room: int
    most: int


def block_at(slot: int, count: int, first_room: int) -> Block:
    """The shape of a pass of ``count`` tokens whose first one goes into ``slot``.

    How many slots a pass looks at is part of its shape, so it depends only on the
    tokens' slots. In blocks of four, with eight slots at first::

        slots    0 1 2 3 4 | 5 6 7 8 9 10 11 12 | 13 ...
        room         8     |         16         | 32

    A block that begins at 4 ends at 7, fillers included, and fits into eight slots; one
    that begins at 5 does not. So a block ends where the next room begins.
    """
    room = first_room
    while slot + count > room:
        room *= 2
    last_slot = room - count  # fillers behind a later token would not fit
    return Block(room, most=min(count, last_slot + 1 - slot))


class FixedLayer(CacheLayerMixin):
    """Keys and values of one layer: [1, heads, slots, width of a head].

    A pass of ``model`` writes its tokens to ``model.slots`` and looks at the first
    ``model.room`` slots. The memory holds ``model.capacity`` slots.
    """

    is_sliding = False

    def __init__(self, model: FixedRows):
        super().__init__()  # type: ignore[no-untyped-call]  # by transformers
        self._model = model

    def lazy_initialization(
        self, key_states: torch.Tensor, value_states: torch.Tensor
    ) -> None:
        """Allocates memory, with the first tokens' heads and channels."""
        self.keys = enlarged(key_states[:, :, :0], self._model.capacity)
        self.values = enlarged(value_states[:, :, :0], self._model.capacity)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Writes the tokens of a pass to their slots; returns the first ``room``."""
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
        """How many tokens precede the next pass; does not read from the device."""
        return self._model.cached

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many slots a token may look at, and the first of them."""
        return self._model.room, 0

    def get_max_length(self) -> int:
        """How many tokens fit."""
        return self._model.room


class Recording(NamedTuple):
    """A recorded pass, with the tensors of its inputs and outputs."""

    ids: torch.Tensor
    view: TreeView
    recorded_pass: RecordedPass
    logits: torch.Tensor
    hidden: torch.Tensor


class FixedRows(HFModel):
    """A transformers model whose every pass feeds ``count`` tokens.

    Its rows equal an HFModel's, but for the last bits. A text fed in a line always gets
    the same bits, however it is split into passes, as far as this machine's kernels
    treat all rows of a block alike; tests/models/test_fixed_rows.py checks it. This is
    not guaranteed for a tree's nodes, whose slots differ from those in a line, nor for
    experts that share the tokens of a pass.

    ``recorder``: records a pass that gives rows, and replays it whenever a pass looks
    at the same number of slots. None: every pass is launched kernel by kernel.

    ``first_room``: how many slots passes look at, at first. When they do not suffice,
    their number doubles and passes are recorded again.
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
        self.capacity = first_room  # the most slots that any pass has looked at
        self.layers: list[FixedLayer] = []
        self.slots = torch.arange(count, device=network.device)
        self._order = torch.arange(count, device=network.device)
        super().__init__(network, vocab)

    @torch.inference_mode()
    def reset(self) -> None:
        """Empties the cache. Recordings need its slots to stay at their addresses."""
        self.prefix = Prefix()
        self.cached = 0  # slots that hold fed tokens, including a tree's nodes
        if not self.layers:
            for _ in range(self.config.num_hidden_layers):
                self.layers.append(FixedLayer(self))
            self.cache = Cache(layers=[*self.layers])
        self._look_at(self.first_room)
        for layer in self.layers:
            layer.reset()  # or a NaN would stay

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
        """One pass over ``block`` and fillers; returns the logits [count, vocab].

        ``first``: the block's first row in ``view``. Without logits, only its keys and
        values are needed.
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
        """Warms up with one pass in the first room, so that no request pays for it.

        With a recorder the pass is recorded. One is enough, since all have one shape.
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
        """Records a pass in this room, unless there is a recording.

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
    def _look_at(self, room: int) -> None:
        """Sets how many slots passes look at."""
        self.room = room
        if room > self.capacity:
            self.capacity = room
            self._recordings.clear()  # the cache will move to new memory

    def _causal_view(self) -> TreeView:
        """A block's masks [1, 1, count, room] and positions [1, count] in a plain text.

        Fillers see what is before them, as tokens do, so no row of a mask is empty.
        Fillers beyond the longest text get its last position. Layers with a sliding
        window also look at the whole room; their masks hide what the window has left.
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
    """``view`` with a column for every one of ``tokens``.

    Masks for layers with a sliding window lack the first columns.
    """
    masks = {}
    for kind, mask in view.masks.items():
        left_out = tokens - mask.shape[-1]
        hidden = torch.finfo(mask.dtype).min
        masks[kind] = torch.nn.functional.pad(mask, (left_out, 0), value=hidden)
    return view._replace(masks=masks)


def _lay_over(causal: TreeView, view: TreeView, first: int, rows: int) -> None:
    """Copies ``rows`` rows of ``view``, from ``first`` on, into ``causal``."""
    for kind, mask in causal.masks.items():
        room = mask.shape[-1]  # tokens beyond are fed later, and not seen by these
        visible = view.masks[kind][:, :, first : first + rows, :room]
        mask[:, :, :rows] = torch.finfo(mask.dtype).min
        mask[:, :, :rows, : visible.shape[-1]] = visible
    causal.position_ids[:, :rows] = view.position_ids[:, first : first + rows]


def load(loading: Loading) -> FixedRows:
    """Builds a model; raises what ``hf.network`` does."""
    spec = loading.checkpoint.spec
    assert spec.fixed_rows is not None
    network = hf.network(loading)
    if len({weight.device for weight in network.parameters()}) > 1:
        raise BadValue(
            f"fixed_rows with {spec.model!r} on several GPUs: the whole cache must be "
            "on one; leave fixed_rows out, or give it one GPU"
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
