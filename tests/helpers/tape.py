"""A recorder on a CPU: what it records is repeated as a CUDA graph would be.

Every operation of torch is kept with the tensors that it read and wrote. To replay is
to do them again, in the same memory, with the numbers that Python gave them then. So
what hangs on anything but the contents of those tensors is wrong in a replay, as it
would be on a GPU. To read a tensor's value while recording is an error, as it is there.
Unlike a CUDA graph, a tape keeps all memory that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# Where autograd is off, they arrive as they were called.
READS_A_VALUE = {
    torch.ops.aten._local_scalar_dense,
    torch.ops.aten.equal,
    torch.ops.aten.is_nonzero,
    torch.ops.aten.item,
    torch.ops.aten.masked_select,
    torch.ops.aten.nonzero,
}


def reads_a_value(func: Any, args: tuple) -> bool:
    """Whether an operation needs to know what is in a tensor before it can be done."""
    if func.overloadpacket is torch.ops.aten.index:
        indices = [index for index in args[1] if index is not None]
        return any(index.dtype == torch.bool for index in indices)
    return func.overloadpacket in READS_A_VALUE


class Tape(TorchDispatchMode):
    """What was done while it ran: operation, arguments, results."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[tuple[Any, tuple, dict, list[Any]]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert not reads_a_value(func, args), "a value is read while recording"
        result = func(*args, **(kwargs or {}))
        self.done.append((func, args, kwargs or {}, tree_leaves(result)))
        return result

    def play(self) -> None:
        """Does it again; results go where they went then."""
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
    """``pieces``: all that were recorded; ``log``: what was done with them since."""

    def __init__(self) -> None:
        self.pieces: list[TapePiece] = []
        self.log: list[str] = []

    def new_piece(self) -> TapePiece:
        self.pieces.append(TapePiece(self.log))
        return self.pieces[-1]

    @contextmanager
    def setting(self) -> Iterator[None]:
        yield
