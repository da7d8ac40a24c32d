"""Shares of DuoDecoding's draftings, by number of sequences and target's choice.

These are what Table 4 and Figure 5 of that paper print. A drafting writes one or
several sequences of tokens, the likeliest first; the target then chooses the one whose
first token it would have written itself. Knows no run and no table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

MOST_SEQUENCES = 8

# What the target chose, as columns of the counts.
FIRST = 0  # the likeliest sequence
OTHER = 1  # another sequence, or none
NEVER = 2  # it never came to choose, since a draft before the sequences failed
ALL_CHOICES = (FIRST, OTHER, NEVER)
DECIDED = (FIRST, OTHER)

# How the paper calls what was needed ("actual") and how many sequences were drafted
# ("pred").
ACTUAL = {"=1": (FIRST,), ">1": (OTHER,), "Total": DECIDED}
PREDICTED = {
    "=1": slice(0, 1),
    ">1": slice(1, MOST_SEQUENCES),
    "Total": slice(0, MOST_SEQUENCES),
}


def count_draftings(draftings: Iterable[tuple[int, int | None]]) -> np.ndarray:
    """The draftings of one request, [number of sequences - 1, what was chosen].

    Each drafting is its number of sequences and which one the target chose: 0 is the
    likeliest, -1 means none, None that it never came to choose.
    """
    counts = np.zeros((MOST_SEQUENCES, len(ALL_CHOICES)), int)
    for sequences, chosen in draftings:
        if chosen is None:
            choice = NEVER
        elif chosen == 0:
            choice = FIRST
        else:
            choice = OTHER
        counts[sequences - 1, choice] += 1
    return counts


class Share(NamedTuple):
    """Draftings of so many ``sequences`` with one of ``choices``, of all ``among``."""

    choices: tuple[int, ...]
    sequences: slice
    among: tuple[int, ...]

    def share_in(self, counts: np.ndarray) -> float:
        """The share in ``counts``, see ``count_draftings``; NaN of no draftings."""
        whole = counts[:, list(self.among)].sum()
        if not whole:
            return float("nan")
        return float(counts[self.sequences, list(self.choices)].sum() / whole)


def _name_shares() -> dict[str, Share]:
    """Every share that a table may ask for, by its name.

    "decided" are shares of the draftings from which the target came to choose. "all"
    are shares of all draftings: those from which it did not come to choose, since a
    draft before them failed, count as rejected.
    """
    shares = {}
    for actual, choices in ACTUAL.items():
        for predicted, sequences in PREDICTED.items():
            name = f"actual {actual}, pred {predicted}"
            shares[f"{name}, decided"] = Share(choices, sequences, DECIDED)
            with_never = (*choices, NEVER) if OTHER in choices else choices
            shares[f"{name}, all"] = Share(with_never, sequences, ALL_CHOICES)
    for row in range(MOST_SEQUENCES):
        only_this = slice(row, row + 1)
        shares[f"sequences {row + 1}"] = Share(ALL_CHOICES, only_this, ALL_CHOICES)
    return shares


SHARES = _name_shares()
