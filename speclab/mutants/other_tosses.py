"""Replaces coins with other coins, to plant repeated coins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from speclib.core.sampling import CoinTosser, Row


@dataclass(frozen=True)
class Toss:
    """The coin that a method requests; see ``Coins.choose``."""

    position: int
    role: str
    index: int


class OtherTosses:
    """``coins`` that use a different toss from the one requested."""

    def __init__(self, coins: CoinTosser, other: Callable[[Toss], Toss]):
        self._coins = coins
        self._other = other

    def choose(self, dist: Row, position: int, role: str, index: int = 0) -> int:
        """An outcome of ``dist``, as in ``Coins.choose``."""
        toss = self._other(Toss(position, role, index))
        return self._coins.choose(dist, toss.position, toss.role, toss.index)
