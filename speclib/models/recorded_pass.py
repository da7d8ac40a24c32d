"""A pass that is recorded once, and then repeated by the device alone.

A GPU computes a small pass faster than a CPU can launch its thousand kernels one by
one. A CUDA graph keeps them, so that one call launches all. That works for passes of
one shape, whose inputs and outputs stay at the same addresses. To record them is
what CUDA calls capturing.

Such a pass is recorded in pieces of at least four layers, since a piece that was
launched cannot be stopped. The next one is launched while a piece is computed, so that
the device does not wait for us. A pass that is cancelled ends with the pieces that were
launched by then, at most two. With 16 layers::

    layers     0 ... 3 | 4 ... 7 | 8 ... 11 | 12 ... 15, logits
    computed   piece 0   piece 1   piece 2    piece 3
    launched   0, 1      2         3                       stopped? before each

This module knows no model. On an H100 and an H200 recorded passes had the bits of
launched ones (reports/gpu). The tests record on a CPU, and skip what needs a GPU where
there is none.
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
LAYERS_OF_A_PIECE = 4  # at least, where a network has so many

Output = TypeVar("Output")


class CudaPiece:
    """A CUDA graph of what was launched on ``device`` between ``begin`` and ``end``.

    ``pool``: memory that the pieces of a pass share.
    """

    def __init__(self, device: torch.device, pool: Any):
        self._device = device
        self._pool = pool
        self._graph = torch.cuda.CUDAGraph()
        self._is_computed = torch.cuda.Event()

    def begin(self) -> None:
        """From now on launches are recorded, and not computed."""
        self._graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")

    def end(self) -> None:
        """Ends the recording."""
        self._graph.capture_end()

    def replay(self) -> None:
        """Launches all of it again."""
        self._graph.replay()
        self._is_computed.record(torch.cuda.current_stream(self._device))

    def wait(self) -> None:
        """Returns when the device has computed the last replay."""
        self._is_computed.synchronize()


class CudaRecorder:
    """Records the GPU ``device``, in a stream of its own."""

    def __init__(self, device: torch.device):
        self._device = device
        self._stream = torch.cuda.Stream(device)
        self._pool: Any = None

    def new_piece(self) -> CudaPiece:
        """An empty recording, of the pass for which ``setting`` was entered."""
        return CudaPiece(self._device, self._pool)

    @contextmanager
    def setting(self) -> Iterator[None]:
        """Within it a pass is recorded, after one that is not.

        Each pass has another pool: torch gives none up for use twice. Garbage is
        collected before: a tensor that is freed while a pass is recorded may end the
        recording.
        """
        gc.collect()
        self._pool = torch.cuda.graph_pool_handle()
        torch.cuda.synchronize(self._device)
        with torch.cuda.stream(self._stream):
            yield
        torch.cuda.synchronize(self._device)


class RecordedPass:
    """A pass in pieces, to be replayed in their order."""

    def __init__(self, pieces: Sequence[CudaPiece]):
        self.pieces = pieces

    def replay(self, stopped: Callable[[], bool]) -> None:
        """Has the device compute the pass once more.

        ``stopped()`` is asked before each piece; when it says yes, this raises Stopped.
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
    """Records ``compute``, a pass through ``layers``, which are called in this order.

    Returns also what it gave: a replay writes its output there. It is computed once
    before that, for a device chooses its kernels in a first pass, and takes memory for
    what it keeps. An error of ``compute`` is raised as it is.
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
    """With which of so many layers a piece begins; the first begins with layer 0."""
    pieces = max(1, min(MOST_PIECES, layers // LAYERS_OF_A_PIECE))
    return [layers * piece // pieces for piece in range(pieces)]
