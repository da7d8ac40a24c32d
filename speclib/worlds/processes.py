"""Real devices of this machine: one worker process for each.

Workers start from a fork server that has the heavy imports preloaded. Small messages go
through pipes. Distributions go through shared memory that has no name, so nothing is
left behind however a process ends. A worker holds one operation at a time, so a result
is read before its buffer is written again.
"""

from __future__ import annotations

from functools import partial
from multiprocessing.connection import wait
from typing import Any

from speclib.arguments import Patience, checked
from speclib.core.sampling import Rows
from speclib.data.latency import Durations, Latency
from speclib.data.pairs import Pair
from speclib.models import preflight
from speclib.models.dtypes import check_dtype
from speclib.models.open_pair import OpenPair

from . import kept_ratios
from .devices import AnyFuture, Servers
from .real_devices import RealDevices
from .stage_locks import StageLocks
from .worker import Array, device, leave_in_memory
from .worker_process import CONTEXT, Worker, dismiss

BUFFERED_ROWS = 128  # distributions that fit a worker's shared memory
BYTES_PER_ENTRY = 8


class Processes(RealDevices[Worker]):
    """``pair`` on real devices: a draft and ``servers`` targets.

    ``cancel``: see World. Stopped "immediate", an operation still ends its layer, and
    on a GPU everything that the GPU was told. ``timeout``: seconds that an operation
    may take before its device counts as hung; ``start_timeout``: the same for building
    a model. ``emulate``: a latency; then undilated models compute the tokens, and every
    operation lasts as long as it says. ``remeasure``: measure c = t_target / t_draft
    anew, and store that, even where an earlier run has stored it (see ``cost_ratio``).

    Raises DeviceLost naming the device and the cause. A lost worker is replaced when
    the next request begins, and so is one whose message an interrupt cut. Use it as a
    context manager, or ``close()`` it.
    """

    @checked
    def __init__(
        self,
        pair: Pair | OpenPair,
        *,
        servers: Servers = 1,
        cancel: str = "after-op",
        dtype: str = "auto",
        emulate: Latency | Durations | None = None,
        timeout: Patience = 60.0,
        start_timeout: Patience = 300.0,
        remeasure: bool = False,
    ):
        check_dtype(dtype)
        super().__init__(
            pair, servers, cancel, dtype, emulate, timeout, start_timeout, remeasure
        )
        shares_devices = isinstance(emulate, Latency) and emulate.shared is not None
        # Where draft and target share devices: who computes on each.
        self.stage_locks = StageLocks() if shares_devices else None
        self._shared: dict[str, Any] = {}  # where each worker leaves its rows
        try:
            self._start_missing_workers()
        except BaseException:
            self.close()
            raise

    def _refuse_what_cannot_be(self) -> None:
        """A model that no method can run, a missing GPU, or too little memory."""
        if self.emulate is None:
            preflight.check(self.opened, self.dtype, len(self.targets))
        else:
            preflight.check_gpus(self.opened, len(self.targets))

    @staticmethod
    def _dismiss(workers: dict[str, Worker]) -> None:
        dismiss(workers)

    def _start_worker(self, name: str) -> Worker:
        role, index = self.devices[name].role, self.devices[name].index
        ranks = 1 if self.emulate else self.opened.ranks(role, index)
        shared = CONTEXT.RawArray("b", BUFFERED_ROWS * self.vocab * BYTES_PER_ENTRY)
        self._shared[name] = shared
        return Worker(
            name,
            self.pair,
            device,
            name,
            role,
            index,
            partial(leave_in_memory, shared),
            self.dtype,
            self.emulate,
            self.stage_locks,
            ranks=ranks,
            patience=max(1.0, self.timeout / 2),
        )

    def _wait_for_one(self, busy: list[AnyFuture], patience: float) -> AnyFuture | None:
        future_of_source: dict[Any, AnyFuture] = {}
        for future in busy:
            worker = self._workers[future.device]
            for source in (worker.pipe, *worker.sentinels):
                future_of_source[source] = future

        ready = wait(list(future_of_source), patience)
        return future_of_source[ready[0]] if ready else None

    def _find_rows(self, left: Array, device: str) -> Rows:
        return left.read(self._shared[device])

    def _key_of_ratio(self) -> str | None:
        return kept_ratios.key_of(self.opened, self.dtype, len(self.targets))
