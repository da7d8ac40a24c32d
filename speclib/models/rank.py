"""Which of several processes of one device a process is. Knows no torch."""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import NamedTuple

from speclib.errors import SpeclibError

THIS_MACHINE = "127.0.0.1"  # the one that all ranks of a device are on


class RankLost(SpeclibError):
    """One of a device's processes ended, or hangs; its message names the rank.

    What else goes wrong on a rank is an error of what it computes.
    """


class Rank(NamedTuple):
    """One of the ``size`` processes that compute a device's model together.

    The first has ``pipes`` to the others. All wait ``patience`` seconds for one that is
    late.
    """

    number: int
    size: int
    patience: float
    pipes: tuple[Connection, ...] = ()

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"rank {self.number} of {self.size}"
