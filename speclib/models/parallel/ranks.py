"""Ranks: the processes that compute one model together, and how their tensors meet.

``Alone`` is the one rank of a model in one process; ``Ranks`` are those of torch.distributed. The
first one leads: it performs the operations and says what happens to its cache to the others, which
do the same to theirs. So followers know no operation and draw no token. Knows no model's inside.

No wait is endless: a rank whose process ended is noticed at once, one that hangs after the ranks'
``patience``; a follower that waits for its leader's word ends with the leader's pipe.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

import torch
from torch import distributed

from speclib.errors import SpeclibError
from speclib.operations.operation import Stopped

GRACE = 1.0  # seconds, at most, until ranks that miss another have left their word
HOST = "127.0.0.1"
ENDED, FAILED, HUNG, LEFT = range(4)  # what may be wrong with a rank, the worst first


class Apart(SpeclibError):
    """A collective failed: some rank is gone, or hangs."""


class Left(NamedTuple):
    """The answer of a rank that missed another one."""

    cause: str


class Alone:
    """The only rank: it has all there is."""

    rank, size = 0, 1

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        return [tensor]


ALONE = Alone()


class Ranks:
    """Rank ``rank`` of ``size``, which find each other in ``store``; their tensors are on
    ``device``. They wait ``patience`` seconds for one that is late."""

    def __init__(
        self, rank: int, size: int, store, device: torch.device, patience: float
    ):
        self.rank, self.size = rank, size
        backend = "nccl" if device.type == "cuda" else "gloo"
        distributed.init_process_group(
            backend,
            store=store,
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=patience),
        )

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Every rank's ``tensor``, all of one shape, in the order of the ranks."""
        found = [torch.empty_like(tensor) for _ in range(self.size)]
        _meet(distributed.all_gather, found, tensor)
        return found

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """``tensor``, changed to the sum of every rank's."""
        _meet(distributed.all_reduce, tensor)
        return tensor


def _meet(collective, *tensors) -> None:
    try:
        collective(*tensors)
    except RuntimeError as error:
        raise Apart(f"the ranks lost each other: {error}") from error


def joined(model, rank, leading=None):
    """``model`` as ``rank`` (a worker.Rank; None: the only one) of its device has it; the first as
    ``leading``, a kind of Leading."""
    if rank is None:
        return model
    return Following(model, rank) if rank.number else (leading or Leading)(model, rank)


class Following:
    """``model`` on a ``rank`` but the first: does what its leader says, and answers None."""

    def __init__(self, model, rank):
        self.model, self.rank = model, rank

    def __call__(self, message, pipe) -> Left | None:
        name, *args = message
        try:
            getattr(self if name == "join" else self.model, name)(*args)
        except Exception as error:
            with suppress(ValueError, AssertionError):  # there may be none yet
                distributed.destroy_process_group()  # or the others would wait for this one
            if isinstance(error, Apart):
                return Left(str(error))
            raise

    def join(self, port: int) -> None:
        store = distributed.TCPStore(HOST, port, is_master=False)
        self.model.ranks = Ranks(
            self.rank.number,
            self.rank.size,
            store,
            self.model.network.device,
            self.rank.patience,
        )


class Leading:
    """``model`` on several ranks, this one and those behind ``rank.pipes``, in its own interface.

    ``stopped()`` is asked before each pass, not before each layer, for all ranks must compute the
    same ones. After an error they may be at different places, and are of no use any more.
    """

    def __init__(self, model, rank):
        self.model, self.rank, self.stopped = model, rank, bool
        store = distributed.TCPStore(HOST, 0, is_master=True, wait_for_workers=False)
        self._say("join", store.port, patience=None)  # they may still be loading
        model.ranks = Ranks(0, rank.size, store, model.network.device, rank.patience)

    def __getattr__(self, name: str):
        return getattr(self.model, name)

    def rows(self, *args):
        return self._pass("rows", *args)

    def tree(self, *args):
        return self._pass("tree", *args)

    def level(self, *args):
        return self._pass("level", *args)

    def cut(self, length: int) -> None:
        self.everywhere("cut", length)

    def reset(self) -> None:
        self.everywhere("reset")

    def _pass(self, name: str, *args):
        if self.stopped():
            raise Stopped
        return self.everywhere(name, *args)

    def everywhere(self, name: str, *args):
        """Calls the method ``name`` of every rank's model; returns what this one's does."""
        self._say(name, *args, patience=self.rank.patience)
        try:
            return getattr(self.model, name)(*args)
        except Apart as error:
            raise self._blamed(error) from error

    def _say(self, *order, patience: float | None) -> None:
        """Sends an order to all, once they have done what they were told before."""
        for number, pipe in enumerate(self.rank.pipes, 1):
            if word := self._word(number, patience):
                raise SpeclibError(word[1])
            with suppress(ConnectionError):  # noticed when its answer is due
                pipe.send(order)

    def _word(self, number: int, patience: float | None) -> tuple[int, str] | None:
        """What is wrong with a rank, by its answer; None if it has done what it was told."""
        pipe, name = self.rank.pipes[number - 1], f"rank {number} of {self.rank.size}"
        try:
            if not pipe.poll(patience):
                return HUNG, (
                    f"{name} hung: it is {self.rank.patience:g} s late. Slow hardware: "
                    "Processes(timeout=...), of which this is half"
                )
            answer = pipe.recv()
        except (EOFError, ConnectionError):
            return ENDED, f"{name} ended"
        kind = LEFT if isinstance(answer, Left) else FAILED
        return (kind, f"{name} failed: {answer.cause}") if answer else None

    def _blamed(self, error: Apart) -> SpeclibError:
        """``error``, with the name of the rank to blame for it."""
        until = time.monotonic() + min(GRACE, self.rank.patience / 2)
        words = [
            self._word(number, max(0.0, until - time.monotonic()))
            for number in range(1, self.rank.size)
        ]
        return SpeclibError(min(filter(None, words), default=(LEFT, str(error)))[1])
