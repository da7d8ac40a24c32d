"""How distributions travel from a device to the controller: whole, or as few tokens.

Where ``top_k`` or ``top_p`` leave few tokens, nearly all numbers of a row are 0. Then
only the others are sent, and where they stand. The controller makes whole rows of them
again, so that nobody else has to know.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from speclib.core.sampling import Rows


class FewNumbers(NamedTuple):
    """Rows [n, V] of which only few numbers are not 0.

    ``indices``: where these ``numbers`` stand when the rows are laid one after another.
    """

    shape: tuple[int, ...]
    indices: np.ndarray
    numbers: np.ndarray


def pack(rows: Rows) -> Rows | FewNumbers:
    """What is sent of ``rows``: whichever is shorter."""
    flat = rows.ravel()
    indices = np.flatnonzero(flat)
    if flat.size <= np.iinfo(np.int32).max:
        indices = indices.astype(np.int32)  # as many bytes as a number, or half
    numbers = flat[indices]
    if indices.nbytes + numbers.nbytes >= rows.nbytes:
        return rows
    return FewNumbers(rows.shape, indices, numbers)


def unpack(packed: FewNumbers) -> Rows:
    """The rows that were packed."""
    rows = np.zeros(packed.shape, packed.numbers.dtype)
    rows.ravel()[packed.indices] = packed.numbers
    return rows
