"""Ranks that are threads of one process and exchange tensors at a table.

They send what ranks of torch.distributed send, but several ranks start in milliseconds.
"""

from __future__ import annotations

from threading import Barrier

import torch


class Table:
    """Each of ``size`` ranks puts a tensor here and reads all ranks' tensors."""

    def __init__(self, size: int):
        self.size = size
        self.tensors: list[torch.Tensor | None] = [None] * size
        self.meeting = Barrier(size, timeout=60)


class RankInThread:
    """Rank ``number`` at ``table``."""

    def __init__(self, table: Table, number: int):
        self.table = table
        self.rank = number
        self.size = table.size

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Returns every rank's ``tensor`` in the order of ranks; all have one shape."""
        self.table.tensors[self.rank] = tensor.clone()
        self.table.meeting.wait()
        tensors = list(self.table.tensors)
        self.table.meeting.wait()  # no rank puts its next tensor before all have read
        assert len({part.shape for part in tensors}) == 1
        return tensors

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Changes ``tensor`` to the sum of every rank's, and returns it."""
        tensor.copy_(torch.stack(self.gather(tensor)).sum(0))
        return tensor
