"""Which layers of a draft model share one input in a layer-parallel pass.

This module uses no network and no torch.
"""

from __future__ import annotations

from itertools import pairwise

LayerGroup = range  # consecutive layers by number, counted from 0


def group_layers(layers: int, size: int) -> tuple[LayerGroup, ...]:
    """Groups consecutive layers, up to ``size`` per group.

    The layers of a group share an input. The first layer is alone, since its output
    differs a lot from the embeddings that it reads. A group of min(size, 3) follows,
    then groups of ``size``; the last of them may be smaller. The last layer is alone::

        group_layers(10, 4)     0 | 1 2 3 | 4 5 6 7 | 8 | 9

    Source: EasySpec, Table 6; all five of its rows follow this rule.
    """
    starts = range(1 + min(size, 3), layers - 1, size)  # after the first group
    ends = sorted({0, 1, *starts, max(1, layers - 1), layers})
    return tuple(range(start, end) for start, end in pairwise(ends))
