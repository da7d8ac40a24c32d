"""One network for several requests whose passes all have one shape.

In bfloat16 a text has other logits where it is fed in a pass of another shape. Here
every pass feeds the same number of tokens of every seat, whoever wants them::

    seat 0    t0 t1 t2 t3    t4 t5  .  .       two tokens in a block of four
    seat 1    u0 u1          .  .  .  .        it wants nothing in this pass
    nobody's                 .  .  .  .        what seat 1 is fed goes there
              cached         fed now

So what a request writes does not hang on the others, nor on how many seats are taken:
it is what it writes alone in a world of as many seats. That holds as far as the
machine's kernels treat all rows of a block alike; tests/models/test_one_shape.py looks
at that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from .fixed_rows import FixedRows, block_at
from .side_by_side import Feed, SideBySide


class OneShape(SideBySide):
    """The network of ``model``, for so many ``seats``, in passes of one shape.

    Texts that look at different numbers of slots have passes of their own. Raises
    BadValue as ``SideBySide`` does.
    """

    def __init__(self, model: FixedRows, seats: int):
        super().__init__(model, seats + 1)
        self.seats = seats
        self.count = model.count
        self.first_room = model.first_room
        self._nothing = Feed(seat=seats, kept=0, tokens=(), wanted=0)

    def parts(self, feed: Feed) -> Iterator[Feed]:
        """Its blocks. The logits of its last tokens may come from several of them."""
        length = len(feed.tokens)
        first = 0
        while first < length:
            slot = feed.kept + first
            most = block_at(slot, self.count, self.first_room).most
            end = min(first + most, length)
            first_wanted = max(first, length - feed.wanted)
            yield Feed(
                feed.seat, slot, feed.tokens[first:end], max(0, end - first_wanted)
            )
            first = end

    def logits(self, feeds: Sequence[Feed]) -> list[torch.Tensor]:
        """As of ``SideBySide``, in one pass for each number of slots."""
        feeds_by_room: dict[int, dict[int, Feed]] = {}
        for feed in feeds:
            room = block_at(feed.kept, self.count, self.first_room).room
            feeds_by_room.setdefault(room, {})[feed.seat] = feed

        found = {}
        for room, of_seat in feeds_by_room.items():
            rows = [of_seat.get(seat, self._nothing) for seat in range(self.seats)]
            logits = self.compute(rows, self.count, room)
            for feed, own in zip(rows, logits, strict=True):
                found[feed.seat] = own
        return [found[feed.seat] for feed in feeds]
