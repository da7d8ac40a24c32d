"""How often drafts pass, place by place in their window, of a pair's real models.

Counts alone: no duration is in them, so the models run undilated on the virtual clock.
Knows no paper and no cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from speclib.data.pairs import Pair
from speclib.decoding.decode import decode
from speclib.trace.acceptance import acceptance


class PlaceCounts(NamedTuple):
    """Of one text, for each place of a window: how many drafts were tested there, and
    how many passed."""

    tested: list[int]
    accepted: list[int]


def place_counts(pair: Pair, text: Any, gamma: int, tokens: int) -> PlaceCounts:
    """The counts of speculative decoding with windows of ``gamma``, greedy.

    Up to ``tokens`` tokens follow ``text``, a prompt as ``decode`` takes it. ``pair``
    names a latency, for the clock. Raises BadValue where no draft of it was tested.
    """
    run = decode(
        text,
        pair=pair,
        method="speculative",
        gamma=gamma,
        max_new_tokens=tokens,
        world="virtual",
    )
    counts = acceptance(run)
    rest = [0] * (gamma - len(counts.tested))  # places that no window had
    return PlaceCounts([*counts.tested, *rest], [*counts.accepted, *rest])
