"""Which layers of a draft model share one input in a layer-parallel pass.

Knows no network and no torch.
"""

from __future__ import annotations

from itertools import pairwise

LayerGroup = range  # numbers of consecutive layers, the first of which is layer 0


def group_layers(layers: int, size: int) -> tuple[LayerGroup, ...]:
    """The groups, in order, of ``layers`` layers if up to ``size`` share an input.

    The first layer stands alone, since embeddings say little about what it makes of
    them. A first group of min(size, 3) follows, then groups of ``size``, and what is
    left of one. The last layer stands alone::

        group_layers(10, 4)     0 | 1 2 3 | 4 5 6 7 | 8 | 9

    Source: EasySpec, Table 6, of which all five rows follow this rule.
    """
    starts = range(1 + min(size, 3), layers - 1, size)  # of the groups after the first
    ends = sorted({0, 1, *starts, max(1, layers - 1), layers})
    return tuple(range(start, end) for start, end in pairwise(ends))
