"""A recorder for the CPU that replays operations as a CUDA graph does.

It keeps every torch operation with the tensors that it read and wrote. A replay repeats
the operations in the same memory, with the numbers that Python passed while recording.
So a result that depends on anything except those tensors' contents is wrong in a
replay, as on a GPU. Reading a tensor's value while recording is an error, as on a GPU.
Unlike a CUDA graph, a tape keeps all memory that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# With autograd off, operations arrive under the names by which they were called.
READS_A_VALUE = {
    torch.ops.aten._local_scalar_dense,
    torch.ops.aten.equal,
    torch.ops.aten.is_nonzero,
    torch.ops.aten.item,
    torch.ops.aten.masked_select,
    torch.ops.aten.nonzero,
}


def reads_a_value(func: Any, args: tuple) -> bool:
    """Whether an operation has to read a tensor's value on the host."""
    if func.overloadpacket is torch.ops.aten.index:
        indices = [index for index in args[1] if index is not None]
        return any(index.dtype == torch.bool for index in indices)
    return func.overloadpacket in READS_A_VALUE


class Tape(TorchDispatchMode):
    """The operations that were recorded, with their arguments and results."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[tuple[Any, tuple, dict, list[Any]]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert not reads_a_value(func, args), "a value is read while recording"
        result = func(*args, **(kwargs or {}))
        self.done.append((func, args, kwargs or {}, tree_leaves(result)))
        return result

    def play(self) -> None:
        """Repeats the operations; results go to the recorded tensors."""
        for func, args, kwargs, recorded in self.done:
            repeated = tree_leaves(func(*args, **kwargs))
            for place, result in zip(recorded, repeated, strict=True):
                is_tensor = isinstance(place, torch.Tensor)
                if is_tensor and place.data_ptr() != result.data_ptr():
                    place.copy_(result)


class TapePiece:
    """A piece of a recorded pass."""

    def __init__(self, log: list[str]):
        self.tape = Tape()
        self.log = log

    def begin(self) -> None:
        self.tape.__enter__()

    def end(self) -> None:
        self.tape.__exit__(None, None, None)

    @torch.inference_mode()
    def replay(self) -> None:
        self.log.append("replay")
        self.tape.play()

    def wait(self) -> None:
        self.log.append("wait")


class TapeRecorder:
    """``pieces``: all recorded pieces; ``log``: their replays and waits."""

    def __init__(self) -> None:
        self.pieces: list[TapePiece] = []
        self.log: list[str] = []

    def new_piece(self) -> TapePiece:
        self.pieces.append(TapePiece(self.log))
        return self.pieces[-1]

    @contextmanager
    def setting(self) -> Iterator[None]:
        yield
