"""One network that serves several requests, each with its own part of one KV cache.

A pass feeds several texts at once. It is *padded* to the longest input, and no token
sees the padding::

    seat 0    t0 t1 t2 t3    t4 t5 t6          fed three tokens
    seat 1    u0 u1          u2 --  --         fed one, and padded
              cached         fed now

So the pass costs as much as if every text were fed three tokens. In the cache, each
seat has its own slots, and the next tokens overwrite the padding.

In bfloat16, a text's logits depend on the shape of the pass. So a model with fixed rows
feeds every seat the same number of tokens, needed or not::

    seat 0    t0 t1 t2 t3    t4 t5  .  .       two tokens in a block of four
    seat 1    u0 u1          .  .  .  .        it needs nothing in this pass
    spare                    .  .  .  .        seat 1's fillers are cached here
              cached         fed now

A request's output then does not depend on the other requests: with the same number of
seats, it is the same even if all others are empty. This holds if the machine's kernels
treat all rows of a block alike; tests/models/test_batched.py checks it. This module
does not depend on any operation or world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil
from typing import Any, NamedTuple

import torch
from transformers import Cache
from transformers.cache_utils import DynamicLayer

from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Row, Rows, Sampler
from speclib.errors import BadValue
from speclib.operations.model import Model, shaped

from .fixed_rows import FixedRows, block_at
from .hf import HFModel, as_rows, check_numbers
from .kv_cache import STEP, enlarged


class Feed(NamedTuple):
    """One seat's input to a pass.

    seat: its number. tokens: the tokens to feed after the first ``kept`` cached tokens.
    wanted: how many of the last tokens need logits.
    """

    seat: int
    kept: int
    tokens: Sequence[int]
    wanted: int


class Places:
    """The slots in which every layer caches the keys and values of a pass.

    seats [fed texts], positions [fed texts, fed tokens]. ``shown``: how many slots of
    each seat the pass sees. ``are_first``: whether the seats are 0, 1, 2, ... without
    gaps.
    """

    seats: torch.Tensor
    positions: torch.Tensor
    shown = 0
    are_first = False


class SeatedLayer(DynamicLayer):
    """One layer's cache for all seats, [seats, heads, slots, channels]."""

    def __init__(self, seats: int, places: Places):
        super().__init__()  # type: ignore[no-untyped-call]  # by transformers
        self._seats = seats
        self._places = places

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Adds keys and values [texts, heads, fed, channels].

        Returns the keys and values that the pass sees.
        """
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self._keys = self._empty(key_states)
            self._values = self._empty(value_states)
        shown = self._places.shown
        if self._keys.shape[-2] < shown:
            slots = ceil(shown / STEP) * STEP
            self._keys = enlarged(self._keys, slots)
            self._values = enlarged(self._values, slots)
        keys = self._write(self._keys, key_states)
        values = self._write(self._values, value_states)
        return keys, values

    def get_seq_length(self) -> int:
        """Zero, since every pass gets explicit positions."""
        return 0

    def _empty(self, states: torch.Tensor) -> torch.Tensor:
        """A cache with no slots yet for ``states`` [texts, heads, fed, channels]."""
        _, heads, _, channels = states.shape
        return states.new_empty(self._seats, heads, 0, channels)

    def _write(self, cached: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        """Writes ``new`` to its slots; returns what the pass sees."""
        places = self._places
        cached[places.seats[:, None], :, places.positions] = new.transpose(1, 2)
        shown = cached[:, :, : places.shown]
        if places.are_first:
            return shown[: len(places.seats)]
        return shown[places.seats]


class SharedNetwork:
    """The network of ``model``, which serves ``seats`` requests in padded passes.

    Raises BadValue if any of its layers sees only a window of the text.
    """

    def __init__(self, model: HFModel, seats: int):
        if any(window is not None for window in model.windows.values()):
            raise BadValue(
                "this model has layers that see only a window of the text: decode its "
                "requests one at a time"
            )
        self.model = model
        self._places = Places()
        layer: Any = partial(SeatedLayer, seats, self._places)
        self._cache = Cache(layer_class_to_replicate=layer)

    def parts(self, feed: Feed) -> Iterator[Feed]:
        """Splits ``feed`` into one part per pass; here, a single part."""
        yield feed

    def logits(self, feeds: Sequence[Feed]) -> list[torch.Tensor]:
        """Computes one pass for all ``feeds``, one per seat, in the order of seats.

        Returns each feed's logits [wanted, vocab].
        """
        fed = max(len(feed.tokens) for feed in feeds)
        shown = max(feed.kept for feed in feeds) + fed
        return self.compute(feeds, fed, shown)

    @torch.inference_mode()
    def compute(
        self, feeds: Sequence[Feed], fed: int, shown: int
    ) -> list[torch.Tensor]:
        """Like ``logits``, with ``fed`` tokens per seat, which see ``shown`` slots."""
        network, device = self.model.network, self.model.network.device
        tokens = torch.zeros(len(feeds), fed, dtype=torch.long)
        for row, feed in enumerate(feeds):
            own = self.model.fed(feed.tokens)
            tokens[row, : len(own)] = torch.tensor(own)

        kept = torch.tensor([feed.kept for feed in feeds])
        positions = kept[:, None] + torch.arange(fed)
        seats = [feed.seat for feed in feeds]
        self._places.seats = torch.tensor(seats, device=device)
        self._places.positions = positions.to(device)
        self._places.shown = shown
        self._places.are_first = seats == list(range(len(seats)))

        output: Any = network(
            input_ids=tokens.to(device),
            past_key_values=self._cache,
            use_cache=True,
            attention_mask=self._mask(positions).to(device),
            position_ids=positions.clamp(max=self.model.context - 1).to(device),
        )
        logits = []
        for row, feed in zip(output.logits, feeds, strict=True):
            end = len(feed.tokens)
            logits.append(self.model.of_pair(row[end - feed.wanted : end]))
        return logits

    def _mask(self, positions: torch.Tensor) -> torch.Tensor:
        """The causal mask in each seat, for transformers: [texts, 1, fed, shown]."""
        slots = torch.arange(self._places.shown)
        is_later = slots > positions[:, :, None]
        dtype = self.model.network.dtype
        mask = torch.zeros(is_later.shape, dtype=dtype)
        mask.masked_fill_(is_later, torch.finfo(dtype).min)
        return mask[:, None]


class SharedFixedRows(SharedNetwork):
    """The network of ``model``, which serves ``seats`` requests in passes of one shape.

    Texts that see different numbers of slots get separate passes. Raises BadValue
    as ``SharedNetwork`` does.
    """

    model: FixedRows

    def __init__(self, model: FixedRows, seats: int):
        super().__init__(model, seats + 1)
        self.seats = seats
        self._nothing = Feed(seat=seats, kept=0, tokens=(), wanted=0)

    def parts(self, feed: Feed) -> Iterator[Feed]:
        """Splits ``feed`` into blocks. Its logits may come from several of them."""
        length = len(feed.tokens)
        first = 0
        while first < length:
            slot = feed.kept + first
            most = block_at(slot, self.model.count, self.model.first_room).most
            end = min(first + most, length)
            first_wanted = max(first, length - feed.wanted)
            wanted = max(0, end - first_wanted)
            yield Feed(feed.seat, slot, feed.tokens[first:end], wanted)
            first = end

    def logits(self, feeds: Sequence[Feed]) -> list[torch.Tensor]:
        """As in ``SharedNetwork``, but with one pass for each number of slots."""
        feeds_by_room: dict[int, dict[int, Feed]] = {}
        for feed in feeds:
            room = block_at(feed.kept, self.model.count, self.model.first_room).room
            feeds_by_room.setdefault(room, {})[feed.seat] = feed

        found = {}
        for room, of_seat in feeds_by_room.items():
            rows = [of_seat.get(seat, self._nothing) for seat in range(self.seats)]
            logits = self.compute(rows, self.model.count, room)
            for feed, own in zip(rows, logits, strict=True):
                found[feed.seat] = own
        return [found[feed.seat] for feed in feeds]


class SeatModel(Model):
    """One seat of a shared network, as a model with its own text and cache.

    ``ask(network, feed)`` returns the logits of a pass that feeds this seat, and
    perhaps others.
    """

    def __init__(
        self,
        network: SharedNetwork,
        seat: int,
        ask: Callable[[SharedNetwork, Feed], torch.Tensor],
    ):
        self.vocab = network.model.vocab
        self.context = network.model.context
        self._network = network
        self._seat = seat
        self._ask = ask
        self.reset()

    def reset(self) -> None:
        """Empties the cache."""
        self.prefix = Prefix()

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens of the cache."""
        self.prefix.cut(length)

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Distributions [last + 1, vocab] (float32) after text[:-last] ... text."""
        kept = self.prefix.keep(text, last)
        feed = Feed(self._seat, kept, tuple(text[kept:]), last + 1)
        logits = [self._ask(self._network, part) for part in self._network.parts(feed)]
        self._logits = as_rows(torch.cat(logits))
        check_numbers(self._logits.max(-1))
        self.prefix.move(text, kept)
        return shaped(self._logits, sampler, text)

    def chances(self) -> Row:
        """The probabilities [vocab] after the last text, at temperature 1."""
        chances: Row = Sampler(1.0)(self._logits[-1:])[0]
        return chances


def over_seats(
    model: HFModel, seats: int, ask: Callable[[SharedNetwork, Feed], torch.Tensor]
) -> list[Model]:
    """Makes a model for each of ``seats`` requests; all share ``model``'s weights."""
    network: SharedNetwork
    if isinstance(model, FixedRows):
        network = SharedFixedRows(model, seats)
    else:
        network = SharedNetwork(model, seats)
    return [SeatModel(network, seat, ask) for seat in range(seats)]
