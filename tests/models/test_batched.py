"""Requests that share passes of one shape don't affect each other's logits."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")

from helpers.checkpoints import VOCAB, network  # noqa: E402

from speclib.models.batched import Feed, SharedFixedRows  # noqa: E402
from speclib.models.fixed_rows import FixedRows  # noqa: E402

SEATS = 3
COUNT = 4
FIRST_ROOM = 16  # small, so that 60 tokens outgrow it twice
LENGTHS = (60, 9, 33)


def shared(net) -> SharedFixedRows:
    return SharedFixedRows(FixedRows(net, VOCAB, COUNT, first_room=FIRST_ROOM), SEATS)


def texts() -> list[list[int]]:
    dice = random.Random(4)
    return [[dice.randrange(VOCAB) for _ in range(length)] for length in LENGTHS]


def feed_together(world: SharedFixedRows, feeds: list[Feed]) -> dict[int, torch.Tensor]:
    """Feeds all seats in shared passes; returns each seat's wanted logits."""
    blocks = {feed.seat: list(world.parts(feed)) for feed in feeds}
    found: dict[int, list[torch.Tensor]] = {feed.seat: [] for feed in feeds}
    while any(blocks.values()):
        now = [of_seat.pop(0) for of_seat in blocks.values() if of_seat]
        for feed, logits in zip(now, world.logits(now), strict=True):
            found[feed.seat].append(logits)
    return {seat: torch.cat(logits) for seat, logits in found.items()}


def test_each_request_gets_the_logits_of_its_text_alone():
    net = network(layers=2)
    feeds = [Feed(seat, 0, tuple(text), 6) for seat, text in enumerate(texts())]
    found = feed_together(shared(net), feeds)
    for seat, text in enumerate(texts()):
        expected = net(torch.tensor([text])).logits[0, -6:]
        torch.testing.assert_close(found[seat], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("seed", range(2))
def test_logits_have_the_same_bits_alone_and_in_a_batch(dtype, seed):
    """Neither the feeding order, nor the seat, nor the other requests matter."""
    net = network(dtype=dtype, layers=2)
    dice = random.Random(seed)
    world, kept = shared(net), [0] * SEATS
    written = texts()
    while kept != list(LENGTHS):
        feeds = []
        for seat, text in enumerate(written):
            fed = dice.randint(0, min(6, len(text) - kept[seat]))
            if fed:
                tokens = tuple(text[kept[seat] : kept[seat] + fed])
                feeds.append(Feed(seat, kept[seat], tokens, dice.randint(1, fed)))
        if not feeds:
            continue
        found = feed_together(world, feeds)
        for feed in feeds:
            kept[feed.seat] += len(feed.tokens)
            text = tuple(written[feed.seat][: kept[feed.seat]])
            alone = Feed(dice.randrange(SEATS), 0, text, feed.wanted)
            (expected,) = feed_together(shared(net), [alone]).values()
            assert torch.equal(found[feed.seat], expected)


def test_a_seat_that_wants_nothing_keeps_its_cache():
    net = network(layers=2)
    world = shared(net)
    first, *_, third = texts()
    world.logits([Feed(0, 0, tuple(first[:4]), 1), Feed(2, 0, tuple(third[:4]), 1)])
    world.logits([Feed(0, 4, tuple(first[4:8]), 1)])
    (found,) = world.logits([Feed(2, 4, tuple(third[4:6]), 1)])
    expected = net(torch.tensor([third[:6]])).logits[0, -1:]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
