"""Ranks: the processes that compute one model together, and how their tensors meet.

``Alone`` is the one rank of a model in one process; ``Ranks`` are those of torch.distributed. The
first one leads: it performs the operations and says what happens to its cache to the others, which
do the same to theirs. So followers know no operation and draw no token. Knows no model's inside.

No wait is endless: a rank whose process ended is noticed at once, one that hangs after PATIENCE; a
follower that waits for its leader's word ends with the leader's pipe.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import torch
from torch import distributed

from ..errors import SpeclibError
from ..operations import Stopped

PATIENCE = 30.0             # seconds that a rank may be behind another
GRACE = 1.0                 # seconds until a rank that was lost has left its last word
HOST = "127.0.0.1"


class Apart(SpeclibError):
    """A collective failed: some rank is gone, or hangs."""


class Alone:
    """The only rank: it has all there is."""

    rank, size = 0, 1

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        return [tensor]


ALONE = Alone()


class Ranks:
    """Rank ``rank`` of ``size``, which meet in ``store``; their tensors are on ``device``."""

    def __init__(self, rank: int, size: int, store, device: torch.device):
        self.rank, self.size = rank, size
        backend = "nccl" if device.type == "cuda" else "gloo"
        distributed.init_process_group(backend, store=store, rank=rank, world_size=size,
                                       timeout=timedelta(seconds=PATIENCE))

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Every rank's ``tensor``, all of one shape, in the order of the ranks."""
        found = [torch.empty_like(tensor) for _ in range(self.size)]
        try:
            distributed.all_gather(found, tensor)
        except RuntimeError as error:
            raise Apart(f"the ranks lost each other: {error}") from error
        return found


class Following:
    """Rank ``rank`` of ``size``, of ``model``: does what its leader says, and answers None."""

    def __init__(self, model, rank: int, size: int):
        self.model, self.rank, self.size = model, rank, size

    def __call__(self, message, pipe) -> None:
        name, *args = message
        try:
            getattr(self if name == "join" else self.model, name)(*args)
        except Exception:
            with suppress(ValueError, AssertionError):      # there may be none yet
                distributed.destroy_process_group()         # or the others would wait for this one
            raise

    def join(self, port: int) -> None:
        store = distributed.TCPStore(HOST, port, is_master=False)
        self.model.ranks = Ranks(self.rank, self.size, store, self.model.network.device)


class Leading:
    """``model`` on several ranks, this one and those behind ``pipes``, in its own interface.

    ``stopped()`` is asked before each pass, not before each layer, for all ranks must compute the
    same ones. After an error they may be at different places, and are of no use any more.
    """

    def __init__(self, model, pipes):
        self.model, self.pipes, self.size, self.stopped = model, pipes, len(pipes) + 1, bool
        store = distributed.TCPStore(HOST, 0, is_master=True, wait_for_workers=False)
        self._say("join", store.port, patience=None)        # they may still be loading
        model.ranks = Ranks(0, self.size, store, model.network.device)

    def __getattr__(self, name: str):
        return getattr(self.model, name)

    def rows(self, *args):
        return self._pass("rows", *args)

    def tree(self, *args):
        return self._pass("tree", *args)

    def level(self, *args):
        return self._pass("level", *args)

    def begin(self, *args) -> None:
        self._everywhere("begin", *args)

    def cut(self, *args) -> None:
        self._everywhere("cut", *args)

    def reset(self) -> None:
        self._everywhere("reset")

    def _pass(self, name: str, *args):
        if self.stopped():
            raise Stopped
        return self._everywhere(name, *args)

    def _everywhere(self, name: str, *args):
        self._say(name, *args)
        try:
            return getattr(self.model, name)(*args)
        except Apart as error:
            raise self._blamed(error) from error

    def _say(self, name: str, *args, patience: float | None = PATIENCE) -> None:
        """Sends an order to all, once they have done what they were told before."""
        for rank, pipe in enumerate(self.pipes, 1):
            if word := self._word(rank, patience):
                raise SpeclibError(word)
            with suppress(ConnectionError):                 # noticed when its answer is due
                pipe.send((name, *args))

    def _word(self, rank: int, patience: float | None) -> str:
        """What is wrong with ``rank``, by its answer; "" if it has done what it was told."""
        pipe, name = self.pipes[rank - 1], f"rank {rank} of {self.size}"
        try:
            if not pipe.poll(patience):
                return f"{name} hung: no answer in {patience:g} s"
            answer = pipe.recv()
        except (EOFError, ConnectionError):
            return f"{name} ended"
        return f"{name} failed: {answer.cause}" if answer else ""

    def _blamed(self, error: Apart) -> SpeclibError:
        """``error``, with the name of the rank to blame: one that ended before one that noticed."""
        words = [self._word(rank, GRACE) for rank in range(1, self.size)]
        ended = [word for word in words if word.endswith("ended")]
        return SpeclibError((ended or [word for word in words if word] or [str(error)])[0])

