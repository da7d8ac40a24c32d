"""Which layers share one input in a layer-parallel pass. Knows no network and no torch."""

from __future__ import annotations

from itertools import pairwise


def grouped(layers: int, size: int) -> tuple[range, ...]:
    """The groups, in order, of a network of ``layers`` when up to ``size`` of them share an input.

    The first layer alone, since embeddings say little about what it makes of them; a first group of
    min(size, 3); then groups of ``size``, and what is left of one; the last layer alone.
    Source: EasySpec, Table 6, of which all five rows follow this rule.
    """
    inner = range(1 + min(size, 3), layers - 1, size)
    ends = sorted({0, 1, *inner, max(1, layers - 1), layers})
    return tuple(range(*pair) for pair in pairwise(ends))
