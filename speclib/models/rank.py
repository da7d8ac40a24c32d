"""Which of several processes of one device a process is. Knows no torch."""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import NamedTuple


class Rank(NamedTuple):
    """One of the ``size`` processes that compute a device's model together.

    The first has ``pipes`` to the others. All wait ``patience`` seconds for one that is
    late.
    """

    number: int
    size: int
    patience: float
    pipes: tuple[Connection, ...] = ()
