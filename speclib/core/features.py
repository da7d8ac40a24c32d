"""What a target model says of tokens beyond their rows, for drafters that read it.

A *feature* is what the target's LM head reads after a token: the hidden state after the
last norm. A pass of the target gives those of the tokens that it feeds. A drafter reads
each together with the token that follows it::

    position in the text  0      1      2      3
    token                 t0     t1     t2     t3
    feature before it     zeros  f0     f1     f2      what a drafter reads at each

Knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from speclib.errors import SpeclibError


class Features(NamedTuple):
    """The features of tokens that follow one another.

    ``start``: the position of the first of them. ``values``: [tokens, width].
    """

    start: int
    values: np.ndarray

    @property
    def end(self) -> int:
        """The position after the last of them."""
        return self.start + len(self.values)

    def of_path(self, length: int, nodes: Sequence[int]) -> Features:
        """Those of a text of ``length`` tokens, and of a path down the tree after it.

        These features are of the text's last tokens and then of all nodes of the tree.
        """
        positions = list(range(self.start, length))
        positions += [length + node for node in nodes]
        return Features(self.start, self.values[[p - self.start for p in positions]])

    def before(self, kept: int, length: int) -> np.ndarray:
        """What is read at positions ``kept`` ... ``length`` - 1: [positions, width].

        At position 0 these are zeros. Raises SpeclibError where one is missing.
        """
        first = max(kept, 1)
        if first <= self.start or length - 1 > self.end:
            raise SpeclibError(
                f"the draft needs the features of tokens {first - 1} to {length - 2}, "
                f"but was given those of {self.start} to {self.end - 1}: it must be "
                "asked after every pass of the target, or be given more of them"
            )
        values = self.values[first - 1 - self.start : length - 1 - self.start]
        if kept > 0:
            return values
        zeros = np.zeros((1, self.values.shape[1]), self.values.dtype)
        return np.concatenate((zeros, values))
