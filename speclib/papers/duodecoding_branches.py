"""Shares of draftings by their number of sequences, and by which one the target chose.

What DuoDecoding's Table 4 and Figure 5 print. Knows branches (see ``rounds``), no run and no table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

import numpy as np

MOST = 8  # sequences
FIRST, OTHER, NEVER = range(
    3
)  # chosen: the likeliest; another or none; it never came to
ACTUAL = {"=1": [FIRST], ">1": [OTHER], "Total": [FIRST, OTHER]}
PRED = {"=1": slice(0, 1), ">1": slice(1, MOST), "Total": slice(0, MOST)}


def counts(branches: Iterable[tuple[int, int | None]]) -> np.ndarray:
    """[sequences - 1, what was chosen]: draftings of one request."""
    found = np.zeros((MOST, 3), int)
    for sequences, chosen in branches:
        found[
            sequences - 1, NEVER if chosen is None else FIRST if chosen == 0 else OTHER
        ] += 1
    return found


def _share(
    actual: list[int], pred: slice, among: list[int]
) -> Callable[[np.ndarray], float]:
    """Draftings with such a choice and such a number of sequences, of those ``among``."""

    def of(found: np.ndarray) -> float:
        whole = found[:, among].sum()
        return float(found[pred, actual].sum() / whole) if whole else float("nan")

    return of


# By name. "decided": of the draftings from which the target came to choose; "all": of all, and
# those from which it did not, since a draft before them failed, count as rejected.
SHARES = {
    f"actual {a}, pred {p}, decided": _share(ACTUAL[a], PRED[p], ACTUAL["Total"])
    for a, p in product(ACTUAL, PRED)
}
SHARES |= {
    f"actual {a}, pred {p}, all": _share(
        ACTUAL[a] + [NEVER] * (OTHER in ACTUAL[a]), PRED[p], [FIRST, OTHER, NEVER]
    )
    for a, p in product(ACTUAL, PRED)
}
SHARES |= {
    f"sequences {n + 1}": _share(
        [FIRST, OTHER, NEVER], slice(n, n + 1), [FIRST, OTHER, NEVER]
    )
    for n in range(MOST)
}
