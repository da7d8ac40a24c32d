"""Ranks that are threads of one process and exchange tensors at a table.

They send what ranks of torch.distributed send, so that tests can try several ranks in
milliseconds.
"""

from __future__ import annotations

from threading import Barrier

import torch


class Table:
    """Where each of ``size`` ranks leaves a tensor and reads the tensors of all."""

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
        """Every rank's ``tensor``, all of one shape, in the order of the ranks."""
        self.table.tensors[self.rank] = tensor.clone()
        self.table.meeting.wait()
        tensors = list(self.table.tensors)
        self.table.meeting.wait()  # no rank leaves its next tensor before all have read
        assert len({part.shape for part in tensors}) == 1
        return tensors

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Changes ``tensor`` to the sum of every rank's, and returns it."""
        tensor.copy_(torch.stack(self.gather(tensor)).sum(0))
        return tensor
