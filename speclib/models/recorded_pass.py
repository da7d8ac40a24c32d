"""A pass that is recorded once, and then replayed by the device alone.

A GPU computes a small pass faster than a CPU can launch its thousand kernels one by
one. A CUDA graph stores these launches, so that one call repeats them all. This works
for passes of one shape whose inputs and outputs stay at the same addresses. CUDA calls
recording *capturing*.

A launched piece cannot be stopped, so a pass is recorded in pieces of at least four
layers. Each piece is launched while the previous one is computed, so that the device
never waits for the CPU. A cancelled pass ends after the pieces already launched, at
most two. With 16 layers::

    layers     0 ... 3 | 4 ... 7 | 8 ... 11 | 12 ... 15, logits
    computed   piece 0   piece 1   piece 2    piece 3
    launched   0, 1      2         3                       stopped? before each

On an H100 and an H200, recorded passes gave the same bits as launched ones
(reports/gpu). The tests record on a CPU; those that need a GPU are skipped without one.
This module does not depend on any model.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any, TypeVar

import torch

from speclib.operations.model import Stopped

MOST_PIECES = 8
LAYERS_OF_A_PIECE = 4  # at least, unless the network has fewer layers

Output = TypeVar("Output")


class CudaPiece:
    """A CUDA graph of all launches on ``device`` between ``begin`` and ``end``.

    ``pool``: memory that the pieces of a pass share.
    """

    def __init__(self, device: torch.device, pool: Any):
        self._device = device
        self._pool = pool
        self._graph = torch.cuda.CUDAGraph()
        self._is_computed = torch.cuda.Event()

    def begin(self) -> None:
        """Begins to record launches instead of computing them."""
        self._graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")

    def end(self) -> None:
        """Ends the recording."""
        self._graph.capture_end()

    def replay(self) -> None:
        """Launches the whole piece again."""
        self._graph.replay()
        self._is_computed.record(torch.cuda.current_stream(self._device))

    def wait(self) -> None:
        """Returns when the device has computed the last replay."""
        self._is_computed.synchronize()


class CudaRecorder:
    """Records passes of the GPU ``device``, in a separate stream."""

    def __init__(self, device: torch.device):
        self._device = device
        self._stream = torch.cuda.Stream(device)
        self._pool: Any = None

    def new_piece(self) -> CudaPiece:
        """An empty piece of the pass that is being recorded within ``setting``."""
        return CudaPiece(self._device, self._pool)

    @contextmanager
    def setting(self) -> Iterator[None]:
        """The context in which a pass is computed and then recorded.

        Each pass gets a new pool, since torch does not let a pool be reused. Garbage is
        collected first, since freeing a tensor during a recording may end it.
        """
        gc.collect()
        self._pool = torch.cuda.graph_pool_handle()
        torch.cuda.synchronize(self._device)
        with torch.cuda.stream(self._stream):
            yield
        torch.cuda.synchronize(self._device)


class RecordedPass:
    """A pass in pieces, to be replayed in order."""

    def __init__(self, pieces: Sequence[CudaPiece]):
        self.pieces = pieces

    def replay(self, stopped: Callable[[], bool]) -> None:
        """Has the device compute the pass again.

        Calls ``stopped()`` before each piece; raises Stopped if it returns true.
        """
        if stopped():
            raise Stopped
        self.pieces[0].replay()
        for computed, following in pairwise(self.pieces):
            if stopped():
                raise Stopped
            following.replay()
            computed.wait()


def record(
    compute: Callable[[], Output],
    layers: Sequence[torch.nn.Module],
    recorder: CudaRecorder,
) -> tuple[RecordedPass, Output]:
    """Records ``compute``, a pass that calls ``layers`` in this order.

    Also returns its output: a replay writes to the same tensors. The pass is computed
    once before it is recorded, because a first pass chooses kernels and allocates
    memory that stays in use. Errors in ``compute`` are raised unchanged.
    """
    pieces: list[CudaPiece] = []

    def begin_piece(*_: object) -> None:
        if pieces:
            pieces[-1].end()
        piece = recorder.new_piece()
        piece.begin()
        pieces.append(piece)

    with recorder.setting():
        compute()
        hooks = []
        for first in first_layers(len(layers))[1:]:
            hooks.append(layers[first].register_forward_pre_hook(begin_piece))
        begin_piece()
        try:
            output = compute()
        except BaseException:
            with suppress(Exception):  # it may have ended already
                pieces[-1].end()
            raise
        finally:
            for hook in hooks:
                hook.remove()
        pieces[-1].end()
    return RecordedPass(pieces), output


def first_layers(layers: int) -> list[int]:
    """The number of each piece's first layer, from 0, in a network of ``layers``."""
    pieces = max(1, min(MOST_PIECES, layers // LAYERS_OF_A_PIECE))
    return [layers * piece // pieces for piece in range(pieces)]
