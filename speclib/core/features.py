"""The target's hidden states, for drafters that read them.

A *feature* is the input of the target's LM head after a token: the hidden state after
the last norm. A target pass returns the features of the tokens that it is fed. A
drafter reads each feature together with the next token::

    position in the text  0      1      2      3
    token                 t0     t1     t2     t3
    feature before it     zeros  f0     f1     f2      what a drafter reads at each

This module uses no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from speclib.errors import SpeclibError


class Features(NamedTuple):
    """The features of consecutive tokens.

    ``start``: the position of the first token. ``values``: [tokens, width].
    """

    start: int
    values: np.ndarray

    @property
    def end(self) -> int:
        """The position after the last token."""
        return self.start + len(self.values)

    def of_path(self, length: int, nodes: Sequence[int]) -> Features:
        """The features of a text's last tokens and of one path down the tree after it.

        ``length``: the text's length. ``self`` has the features of the text's last
        tokens and of all nodes of the tree.
        """
        positions = list(range(self.start, length))
        positions += [length + node for node in nodes]
        return Features(self.start, self.values[[p - self.start for p in positions]])

    def before(self, kept: int, length: int) -> np.ndarray:
        """The features [positions, width] that a drafter reads.

        It reads one at each position from ``kept`` to ``length`` - 1, and zeros at
        position 0. Raises SpeclibError if a feature is missing.
        """
        first = max(kept, 1)
        if first <= self.start or length - 1 > self.end:
            raise SpeclibError(
                f"the draft needs the features of tokens {first - 1} to {length - 2}, "
                f"but got only {self.start} to {self.end - 1}: let it draft after "
                "every target pass, or give it more features"
            )
        values = self.values[first - 1 - self.start : length - 1 - self.start]
        if kept > 0:
            return values
        zeros = np.zeros((1, self.values.shape[1]), self.values.dtype)
        return np.concatenate((zeros, values))
