"""Real devices on this machine, each with a worker process.

Workers start from a fork server with the heavy imports preloaded. Small messages go
through pipes. Distributions go through shared memory without a name, so nothing is left
behind however a process ends. A worker holds one operation at a time, so each result is
read before its buffer is overwritten.
"""

from __future__ import annotations

from functools import partial
from multiprocessing.connection import wait
from typing import Any

from speclib.core.sampling import Rows
from speclib.models import preflight

from .performer import Array, DeviceSpec, device, leave_in_memory
from .real_devices import RealDevices
from .stage_locks import StageLocks
from .worker import CONTEXT, Worker

BUFFERED_ROWS = 128  # distributions that fit into a worker's shared memory
BYTES_PER_ENTRY = 8


class Processes(RealDevices[Worker]):
    """``pair`` on real devices of this machine; see RealDevices for the arguments."""

    seats = 0  # in a batch: how many requests a device serves at once

    def _prepare(self) -> None:
        """Raises BadValue for a missing GPU, or models that do not fit into memory."""
        self._refuse_what_does_not_fit()
        shares_devices = self.emulate is not None and self.emulate.shared is not None
        # They decide which worker computes on a device that draft and target share.
        self.stage_locks = StageLocks() if shares_devices else None
        self._shared: dict[str, Any] = {}  # where each worker leaves its rows

    def _refuse_what_does_not_fit(self) -> None:
        if self.emulate is None:
            preflight.check(self.opened, self.dtype, len(self.targets))
        else:
            preflight.check_gpus(self.opened, len(self.targets))

    def _start_worker(self, name: str) -> Worker:
        role, index = self.devices[name].role, self.devices[name].index
        ranks = 1 if self.emulate else self.opened.ranks(role, index)
        shared = CONTEXT.RawArray("b", BUFFERED_ROWS * self.vocab * BYTES_PER_ENTRY)
        self._shared[name] = shared
        return Worker(
            name,
            self.pair,
            device,
            DeviceSpec(name, role, index, self.dtype, self.emulate, self.seats),
            partial(leave_in_memory, shared),
            self.stage_locks,
            ranks=ranks,
            patience=max(1.0, self.timeout / 2),
        )

    @staticmethod
    def _wait(signs: list[Any], patience: float) -> list[Any]:
        return wait(signs, patience)

    def _find_rows(self, left: Array, device: str) -> Rows:
        return left.read(self._shared[device])
