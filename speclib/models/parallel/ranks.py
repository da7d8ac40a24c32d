"""Ranks: the processes that together run one model, and how they exchange tensors.

``Alone`` is the only rank of a model in one process; ``Ranks`` use torch.distributed.
The first rank leads. It performs the operations, and tells the others which of the
model's methods to call. So the followers see no operation and draw no token::

              the world
                  |   an operation; its result
                  v
        rank 0, Leading --------------------+      over pipes: ("rows", text, ...),
           |                                |      ("cut", 7), ("reset",), ...;
           v                                v      each answers None when it is done
        rank 1, Following              rank 2, Following
           ^                                ^
           |  during a pass: gather, sum    |      over torch.distributed, among all
           +---------- rank 0 --------------+

No rank waits forever. A process that has ended is detected at once; one that hangs is
detected after the ranks' ``patience``. A follower that waits for an order exits when
the leader's pipe closes. This module does not depend on how a model is cut.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import distributed, nn

from speclib.core.sampling import Row, Rows
from speclib.errors import SpeclibError
from speclib.models.hf import HFModel
from speclib.models.loading import THIS_MACHINE, Rank, RankLost
from speclib.operations.model import Model, Stopped

if TYPE_CHECKING:
    # Public as torch.distributed.TCPStore, which mypy does not see: hence the ignores.
    from torch._C._distributed_c10d import TCPStore
    from transformers import PreTrainedModel

GRACE = 1.0  # the most seconds that ranks take to report that they lost another
APART = "the ranks lost each other"  # the start of such a report


class RanksApart(SpeclibError):
    """A collective operation failed: some rank has ended, or hangs."""


# -- how ranks exchange tensors --------------------------------------------------------
class Alone:
    """The only rank of a model."""

    rank = 0
    size = 1
    wait_on_device = False

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Returns the tensors of all ranks: only this one's."""
        return [tensor]

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the sum over all ranks: this one's ``tensor``."""
        return tensor

    def send(self, tensor: torch.Tensor, source: int) -> torch.Tensor:
        """Returns the tensor of rank ``source``: this one's ``tensor``."""
        return tensor


ALONE = Alone()


class Ranks:
    """One of several ranks, connected to the others.

    rank: the rank of this process.
    store: the store through which the ranks find each other.
    device: the device that this rank's tensors are on.
    take_turns: whether one rank computes at a time, while the others wait for it.

    The constructor ends with a first collective, a sum of zeros: NCCL takes seconds to
    connect, and no request should wait for that.
    """

    def __init__(
        self,
        rank: Rank,
        store: TCPStore,
        device: torch.device,
        take_turns: bool = False,
    ):
        self.rank = rank.number
        self.size = rank.size
        timeout = timedelta(seconds=rank.patience)
        store.set_timeout(timeout)
        store.set(f"device of {self.rank}", _name_of(device))
        devices = []
        for other in range(self.size):
            devices.append(store.get(f"device of {other}").decode())
        self.backend = backend_between(devices, take_turns)
        distributed.init_process_group(
            self.backend,
            store=store,
            rank=self.rank,
            world_size=self.size,
            timeout=timeout,
        )
        self.sum(torch.zeros(1, device=device)).tolist()

    @property
    def wait_on_device(self) -> bool:
        """Whether the GPUs wait for each other while the processes continue."""
        return self.backend == "nccl"

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Returns all ranks' tensors, which have the same shape, in rank order."""
        own = self._for_backend(tensor)
        tensors = [torch.empty_like(own) for _ in range(self.size)]
        _run(distributed.all_gather, tensors, own)
        return [each.to(tensor.device) for each in tensors]

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Changes ``tensor`` to the sum over all ranks, and returns it."""
        own = self._for_backend(tensor)
        _run(distributed.all_reduce, own)
        return _copied_back(own, tensor)

    def send(self, tensor: torch.Tensor, source: int) -> torch.Tensor:
        """Copies rank ``source``'s tensor into ``tensor``, and returns it.

        Its shape is the same on every rank.
        """
        if self.rank == source or self.wait_on_device:
            own = self._for_backend(tensor)
        else:
            own = torch.empty_like(tensor, device="cpu")  # does not wait for the GPU
        _run(distributed.broadcast, own, source)
        return _copied_back(own, tensor)

    def _for_backend(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copies ``tensor`` to memory that the backend can read, if necessary.

        With gloo, that is the CPU's memory: a waiting rank then leaves its GPU to
        others, and torch documents only some of gloo's collectives between GPUs.
        """
        return tensor if self.wait_on_device else tensor.cpu()


def end_of_work_on(device: torch.device) -> Callable[[], bool]:
    """Makes a function that tells whether the GPU has done all work launched so far."""
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    return event.query


def _name_of(device: torch.device) -> str:
    """A name that identifies a GPU across processes and machines."""
    if device.type != "cuda":
        return device.type
    return str(torch.cuda.get_device_properties(device).uuid)


def backend_between(devices: Sequence[str], take_turns: bool = False) -> str:
    """The torch.distributed backend for tensors between ranks on ``devices``.

    It is NCCL if each rank has its own GPU: NCCL refuses two ranks on one GPU, and does
    not support CPUs. Otherwise it is gloo. It is also gloo if ranks ``take_turns``:
    during the others' turns, another model is meant to compute on a waiting rank's GPU,
    which NCCL would occupy with a spinning kernel.
    """
    has_own_gpu = "cpu" not in devices and len(set(devices)) == len(devices)
    return "nccl" if has_own_gpu and not take_turns else "gloo"


def _copied_back(result: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Copies ``result``, which may be on another device, into ``tensor``."""
    if result is not tensor:
        tensor.copy_(result)
    return tensor


def _run(collective: Callable[..., Any], *tensors: Any) -> None:
    """Calls a torch.distributed collective; raises RanksApart if it fails."""
    try:
        collective(*tensors)
    except RuntimeError as error:
        raise RanksApart(f"{APART}: {error}") from error


# -- who leads and who follows ---------------------------------------------------------
class Ranked(HFModel):
    """A model that several ranks can run, such as Layered or Tensors.

    ``ranks``: the ranks that it is connected to. ``take_turns``: see Ranks.
    """

    ranks: Ranks | Alone = ALONE
    take_turns = False

    def meet(self, rank: Rank, store: TCPStore) -> None:
        """Connects to the other ranks through ``store``."""
        self.ranks = Ranks(rank, store, self.network.device, self.take_turns)


def drop_head(network: PreTrainedModel, number: int) -> None:
    """Removes the LM head from all ranks but the first: followers draw no tokens."""
    if number != 0:
        network.set_output_embeddings(nn.Identity())


AnyRanked = TypeVar("AnyRanked", bound=Ranked)


def joined(
    model: AnyRanked, rank: Rank | None, leading: type[Leading] | None = None
) -> AnyRanked | Leading | Following:
    """Wraps ``model`` as a leader or a follower, according to ``rank``.

    rank: this process's rank in its device; None: it is the only process.
    leading: a subclass of Leading, for the first rank.
    """
    if rank is None:
        return model
    if rank.number == 0:
        leader = (leading or Leading)(model, rank)
        leader.meet()
        return leader
    return Following(model, rank)


class Following:
    """``model`` on any rank but the first; it obeys the leader."""

    def __init__(self, model: Ranked, rank: Rank):
        self.model = model
        self.rank = rank

    def __call__(self, message: tuple[Any, ...], pipe: Connection) -> None:
        """Obeys an order: a method's name and its arguments."""
        name, *arguments = message
        owner = self if name == "join" else self.model
        try:
            getattr(owner, name)(*arguments)
        except Exception as error:
            # Printed here too: a rank that is aborted with all others cannot answer.
            print(f"{self.rank.name} failed: {error}", file=sys.stderr, flush=True)
            self._leave_group()
            raise

    def _leave_group(self) -> None:
        """Leaves the process group, so that the others stop waiting for this rank.

        It stays in an NCCL group, because leaving one may itself wait for the others.
        With NCCL, the leader polls this rank's answer while it waits for its own GPU.
        """
        if self.model.ranks.wait_on_device:
            return
        with suppress(ValueError, AssertionError):  # there may be no group yet
            distributed.destroy_process_group()

    def join(self, port: int) -> None:
        """Connects to the other ranks through the leader's store at ``port``."""
        store: TCPStore = distributed.TCPStore(  # type: ignore[attr-defined]
            THIS_MACHINE, port, is_master=False
        )
        self.model.meet(self.rank, store)


class Leading(Model):
    """``model`` on several ranks, with the interface of a model on one.

    The followers are at the other ends of ``rank.pipes``. ``stopped()`` is called
    before each pass, not before each layer, because all ranks must compute the same
    layers. After an error, the ranks may be in different states, and are unusable.
    """

    def __init__(self, model: Ranked, rank: Rank):
        self.model = model
        self.rank = rank
        self.vocab = model.vocab
        self.context = model.context
        self.prefix = model.prefix  # all ranks cache the same tokens
        self._awaited = set(range(1, rank.size))  # ranks that have not answered yet

    def meet(self) -> None:
        """Opens the store in which the ranks find each other, and waits for them.

        Must be called before the first pass.
        """
        store: TCPStore = distributed.TCPStore(  # type: ignore[attr-defined]
            THIS_MACHINE, 0, is_master=True, wait_for_workers=False
        )
        self._send("join", store.port, patience=None)  # they may still be loading
        self.model.meet(self.rank, store)
        if self.model.ranks.wait_on_device:
            device = self.model.network.device
            self.model.when_launched = lambda: self.watch_ranks_until(
                end_of_work_on(device)
            )

    def rows(self, *arguments: Any) -> Rows:
        """As in the model."""
        return self._pass("rows", *arguments)

    def tree(self, *arguments: Any) -> Rows:
        """As in the model."""
        return self._pass("tree", *arguments)

    def level(self, *arguments: Any) -> Rows:
        """As in the model."""
        return self._pass("level", *arguments)

    def chances(self) -> Row:
        """As in the model: this rank has the logits."""
        return self.model.chances()

    def features_fed(self) -> np.ndarray:
        """As in the model: this rank has the input of the LM head."""
        return self.model.features_fed()

    def wait_for_device(self) -> None:
        """As in the model, on this rank's device."""
        self.model.wait_for_device()

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens of every rank's cache."""
        self.everywhere("cut", length)

    def reset(self) -> None:
        """Empties every rank's cache."""
        self.everywhere("reset")
        self.prefix = self.model.prefix

    def _pass(self, name: str, *arguments: Any) -> Rows:
        if self.stopped():
            raise Stopped
        rows: Rows = self.everywhere(name, *arguments)
        return rows

    def everywhere(self, name: str, *arguments: Any) -> Any:
        """Calls the method ``name`` on every rank; returns this rank's result."""
        self._send(name, *arguments, patience=self.rank.patience)
        try:
            return getattr(self.model, name)(*arguments)
        except RanksApart as error:
            raise self._explained(error) from error

    def watch_ranks_until(self, is_done: Callable[[], bool]) -> None:
        """Waits until the device has computed a pass, and watches the ranks meanwhile.

        If a rank fails, NCCL lets the others' GPUs wait forever, and raises no error
        here. ``is_done()``: whether the device has finished.

        Raises SpeclibError with the cause if a rank failed; RankLost if one ended, or
        the ranks' patience has run out.
        """
        until = time.monotonic() + self.rank.patience
        while not is_done():
            for number in sorted(self._awaited):
                if self.rank.pipes[number - 1].poll():
                    self._read_answer(number)
            if time.monotonic() > until:
                raise RankLost(
                    f"the ranks' pass is {self.rank.patience:g} s late: one of them "
                    "hangs in a collective operation, without an error. If the "
                    "hardware is slow, increase Processes(timeout=...); ranks wait "
                    "half as long"
                )

    def _send(self, *order: Any, patience: float | None) -> None:
        """Sends an order to all followers, once they have obeyed the last one.

        Raises SpeclibError with the cause if a follower failed; RankLost if one ended,
        or has not obeyed within ``patience`` seconds.
        """
        for number, pipe in enumerate(self.rank.pipes, 1):
            if number in self._awaited:
                if not pipe.poll(patience):
                    raise self._hung(number)
                self._read_answer(number)
            with suppress(ConnectionError):  # detected when the answer is due
                pipe.send(order)
            self._awaited.add(number)

    def _read_answer(self, number: int) -> None:
        """Reads a follower's waiting answer; raises its error if it did not obey."""
        self._awaited.discard(number)
        name = self._name_of(number)
        try:
            failure = self.rank.pipes[number - 1].recv()
        except (EOFError, ConnectionError) as error:
            raise RankLost(f"{name} ended") from error
        if failure:
            kind = RanksApart if failure.cause.startswith(APART) else SpeclibError
            raise kind(f"{name} failed: {failure.cause}")

    def _explained(self, error: RanksApart) -> SpeclibError:
        """Finds the rank that caused ``error``, and returns its error.

        Every rank that lost another reports only that; the rank to blame reports why.
        """
        until = time.monotonic() + min(GRACE, self.rank.patience / 2)
        reasons: list[SpeclibError] = []
        hung: list[SpeclibError] = []
        for number in sorted(self._awaited):
            time_left = max(0.0, until - time.monotonic())
            if not self.rank.pipes[number - 1].poll(time_left):
                hung.append(self._hung(number))
                continue
            try:
                self._read_answer(number)
            except RanksApart:
                continue
            except SpeclibError as reason:
                reasons.append(reason)
        return [*reasons, *hung, error][0]

    def _hung(self, number: int) -> RankLost:
        return RankLost(
            f"{self._name_of(number)} hung: it is {self.rank.patience:g} s late. On "
            "slow hardware, increase Processes(timeout=...); ranks wait half as long"
        )

    def _name_of(self, number: int) -> str:
        return self.rank._replace(number=number).name
