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
from speclib.models.open_pair import OpenPair, open_pair

from . import kept_draft_sizes, kept_ratios
from .cost_ratio import CostRatio
from .devices import AnyFuture, Servers
from .draft_size import DraftSize, Shape, find_draft_size
from .real_devices import RealDevices
from .stage_locks import StageLocks
from .worker import Array, device, leave_in_memory
from .worker_process import CONTEXT, Worker, dismiss

BUFFERED_ROWS = 128  # distributions that fit a worker's shared memory
BYTES_PER_ENTRY = 8

# While a draft's size is chosen: how narrow c's interval is at each try, as a share of
# c, and how many seconds a try may measure it.
WIDTH = 0.03
MOST_SECONDS_OF_A_TRY = 4.0


class Processes(RealDevices[Worker]):
    """``pair`` on real devices: a draft and ``servers`` targets.

    ``cancel``: see World. Stopped "immediate", an operation still ends its layer, and
    on a GPU everything that the GPU was told. ``timeout``: seconds that an operation
    may take before its device counts as hung; ``start_timeout``: the same for building
    a model. ``emulate``: a latency; then undilated models compute the tokens, and every
    operation lasts as long as it says. ``remeasure``: measure c = t_target / t_draft
    anew, and store that, even where an earlier run has stored it (see ``cost_ratio``).

    The draft of a pair that asks for it (``fitted``) has the shape that was chosen on
    this machine; ``opened.pair`` has it, and ``draft_size`` says why. Choosing it takes
    seconds, the first time; see ``kept_draft_sizes``.

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
        self._last_try: tuple[Shape, CostRatio] | None = None  # of a draft's size
        try:
            given = self.opened
            self.draft_size = self._choose_draft_size()
            self._have_draft_of(self.draft_size, given)
        except BaseException:
            self.close()
            raise

    # -- the size of the draft ---------------------------------------------------------
    def _choose_draft_size(self) -> DraftSize | None:
        """As of ``choose_draft_size``; what must be tried is tried in these workers."""
        if self.emulate is not None:
            return None
        reference = kept_draft_sizes.reference_of(self.opened)
        if reference is self.opened and len(self.targets) == 1:
            return kept_draft_sizes.load_or_find(
                reference, self.dtype, self._find_draft_size
            )
        return choose_draft_size(self.opened, self.dtype)

    def _find_draft_size(
        self, opened: OpenPair, dtype: str, start: Shape
    ) -> DraftSize | None:
        """Tries drafts of several sizes, ``start`` at first, beside the same target."""

        def measure(shape: Shape) -> CostRatio:
            self._build_draft(shape)
            ratio = self._measure_cost_ratio(WIDTH, MOST_SECONDS_OF_A_TRY)
            self._last_try = (shape, ratio)
            return ratio

        return find_draft_size(
            file=Shape(*kept_draft_sizes.shape_of_file(opened.pair)),
            least=Shape(*opened.least_draft_shape),
            wanted=kept_draft_sizes.wanted_c(opened.pair),
            measure=measure,
            start=start,
        )

    def _build_draft(self, shape: Shape) -> None:
        """Replaces the draft by one of this shape; its model is built anew."""
        self._dismiss_draft()
        self.opened = self.opened.with_draft_shape(shape)
        self.pair = self.opened.pair
        self._refuse_what_cannot_be()
        self._start_missing_workers()

    def _dismiss_draft(self) -> None:
        worker = self._workers.pop("draft", None)
        if worker is not None:
            worker.stop(self.timeout / 2)

    def _have_draft_of(self, size: DraftSize | None, given: OpenPair) -> None:
        """Sees that the draft is of the chosen size, or that of the ``given`` pair.

        Where it was the last one that was tried, c is known as well.
        """
        tried = self._last_try
        if size is not None and tried is not None and tried[0] == size.shape:
            kept_ratios.keep(self._key_of_ratio(), tried[1])
            return

        chosen = given if size is None else given.with_draft_shape(size.shape)
        if tried is not None:
            self._dismiss_draft()
        self.opened, self.pair = chosen, chosen.pair
        self._start_missing_workers()

    def _refuse_what_cannot_be(self) -> None:
        """A model that no method can run, a missing GPU, or too little memory."""
        place, servers = self.opened.place, len(self.targets)
        if self.emulate is None:
            preflight.check(self.pair, place, self.dtype, servers)
        else:
            preflight.check_gpus(self.pair, place, servers)

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


def choose_draft_size(pair: Pair | OpenPair, dtype: str) -> DraftSize | None:
    """The size that the draft of a fitted pair has on this machine.

    As an earlier run has stored it, or found now. None where it has its file's shape:
    it is not to be fitted, or the machine is too busy to find a size.
    """
    reference = kept_draft_sizes.reference_of(open_pair(pair))
    if reference is None:
        return None

    def find(opened: OpenPair, dtype: str, start: Shape) -> DraftSize | None:
        with Processes(opened.with_draft_shape(start), dtype=dtype) as world:
            return world._find_draft_size(opened, dtype, start)

    return kept_draft_sizes.load_or_find(reference, dtype, find)
