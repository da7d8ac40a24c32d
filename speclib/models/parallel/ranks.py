"""Ranks: the processes that compute one model together, and how their tensors meet.

``Alone`` is the one rank of a model in one process; ``Ranks`` are those of
torch.distributed. The first rank leads. It performs the operations, and says to the
others what happens to its cache; they do the same to theirs. So the followers know no
operation and draw no token::

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

No wait is endless. A rank whose process ended is noticed at once, one that hangs after
the ranks' ``patience``. A follower that waits for its leader's word ends with the
leader's pipe. This module knows nothing of how a model is cut.
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
    # Public as torch.distributed.TCPStore, which mypy cannot tell: hence the ignores.
    from torch._C._distributed_c10d import TCPStore
    from transformers import PreTrainedModel

GRACE = 1.0  # seconds, at most, for ranks that miss another to say so
APART = "the ranks lost each other"  # how the error of such a rank begins


class RanksApart(SpeclibError):
    """A collective operation failed: some rank is gone, or hangs."""


# -- how tensors meet ------------------------------------------------------------------
class Alone:
    """The only rank of a model: it has all there is."""

    rank = 0
    size = 1
    wait_on_device = False

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The tensors of all ranks: this one's."""
        return [tensor]

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum of every rank's ``tensor``: this one's."""
        return tensor

    def send(self, tensor: torch.Tensor, source: int) -> torch.Tensor:
        """The ``tensor`` of rank ``source``: this one's."""
        return tensor


ALONE = Alone()


class Ranks:
    """One of several ranks, connected with the others.

    rank: which of them this is.
    store: where the ranks find each other.
    device: where this one's tensors are.
    take_turns: one rank computes at a time, and the others wait for what it hands on.

    They have met once, by a sum of nothing, when this returns. To connect takes NCCL
    seconds, which no request should have to wait for.
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
        """Whether GPUs wait for each other, and the processes go on meanwhile."""
        return self.backend == "nccl"

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Every rank's ``tensor``, all of one shape, in the order of the ranks."""
        own = self._where_they_meet(tensor)
        tensors = [torch.empty_like(own) for _ in range(self.size)]
        _meet(distributed.all_gather, tensors, own)
        return [each.to(tensor.device) for each in tensors]

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Changes ``tensor`` to the sum of every rank's, and returns it."""
        own = self._where_they_meet(tensor)
        _meet(distributed.all_reduce, own)
        return _taken_back(own, tensor)

    def send(self, tensor: torch.Tensor, source: int) -> torch.Tensor:
        """Changes ``tensor`` to that of rank ``source``, and returns it.

        On every rank it has that one's shape.
        """
        if self.rank == source or self.wait_on_device:
            own = self._where_they_meet(tensor)
        else:
            own = torch.empty_like(tensor, device="cpu")  # the GPU is not asked
        _meet(distributed.broadcast, own, source)
        return _taken_back(own, tensor)

    def _where_they_meet(self, tensor: torch.Tensor) -> torch.Tensor:
        """``tensor`` where the backend can read it.

        gloo does so in the machine's memory: a rank that waits there leaves its GPU to
        others. Of gloo's collectives between GPUs torch documents only some.
        """
        return tensor if self.wait_on_device else tensor.cpu()


def end_of_work_on(device: torch.device) -> Callable[[], bool]:
    """Says, whenever it is asked, whether a GPU has done what it was told by now."""
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    return event.query


def _name_of(device: torch.device) -> str:
    """What tells a GPU from all others, also those of other processes and machines."""
    if device.type != "cuda":
        return device.type
    return str(torch.cuda.get_device_properties(device).uuid)


def backend_between(devices: Sequence[str], take_turns: bool = False) -> str:
    """What of torch.distributed carries tensors between ranks on ``devices``.

    NCCL where each has a GPU of its own. It refuses two ranks on one GPU, and knows no
    CPU: there it is gloo. It is gloo also for ranks that ``take_turns``. With NCCL a
    rank waits by a kernel that spins on its GPU, as long as the others' turns last; and
    somebody else is meant to compute there meanwhile.
    """
    has_own_gpu = "cpu" not in devices and len(set(devices)) == len(devices)
    return "nccl" if has_own_gpu and not take_turns else "gloo"


def _taken_back(result: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """``tensor``, with the ``result`` in it, which may be elsewhere."""
    if result is not tensor:
        tensor.copy_(result)
    return tensor


def _meet(collective: Callable[..., Any], *tensors: Any) -> None:
    """Calls a collective of torch.distributed; raises RanksApart if it fails."""
    try:
        collective(*tensors)
    except RuntimeError as error:
        raise RanksApart(f"{APART}: {error}") from error


# -- who leads and who follows ---------------------------------------------------------
class Ranked(HFModel):
    """A model that several ranks can compute, such as Layered or Tensors.

    ``ranks``: those that it has met. ``take_turns``: see Ranks.
    """

    ranks: Ranks | Alone = ALONE
    take_turns = False

    def meet(self, rank: Rank, store: TCPStore) -> None:
        """Meets the other ranks in ``store``."""
        self.ranks = Ranks(rank, store, self.network.device, self.take_turns)


def leave_head(network: PreTrainedModel, number: int) -> None:
    """Leaves the head to the first rank: a follower draws no token."""
    if number != 0:
        network.set_output_embeddings(nn.Identity())


AnyRanked = TypeVar("AnyRanked", bound=Ranked)


def joined(
    model: AnyRanked, rank: Rank | None, leading: type[Leading] | None = None
) -> AnyRanked | Leading | Following:
    """``model`` as a process of its device has it.

    rank: this process among those of the device; None: it is the only one.
    leading: a kind of Leading, for the first rank.
    """
    if rank is None:
        return model
    if rank.number == 0:
        leader = (leading or Leading)(model, rank)
        leader.meet()
        return leader
    return Following(model, rank)


class Following:
    """``model`` on any rank but the first: it does what its leader says."""

    def __init__(self, model: Ranked, rank: Rank):
        self.model = model
        self.rank = rank

    def __call__(self, message: tuple[Any, ...], pipe: Connection) -> None:
        """Obeys an order, a method's name and its arguments."""
        name, *arguments = message
        owner = self if name == "join" else self.model
        try:
            getattr(owner, name)(*arguments)
        except Exception as error:
            # Also where one who was aborted with all others cannot say it any more.
            print(f"{self.rank.name} failed: {error}", file=sys.stderr, flush=True)
            self._leave_group()
            raise

    def _leave_group(self) -> None:
        """Leaves the process group, or the others would go on waiting for this rank.

        A group of NCCL's is not left, for that may wait for the others in turn. There
        the leader looks for this rank's answer while it waits for its GPU.
        """
        if self.model.ranks.wait_on_device:
            return
        with suppress(ValueError, AssertionError):  # there may be none yet
            distributed.destroy_process_group()

    def join(self, port: int) -> None:
        """Meets the other ranks in the store that the leader has opened at ``port``."""
        store: TCPStore = distributed.TCPStore(  # type: ignore[attr-defined]
            THIS_MACHINE, port, is_master=False
        )
        self.model.meet(self.rank, store)


class Leading(Model):
    """``model`` on several ranks, in the interface of a model on one.

    They are this rank and those behind ``rank.pipes``. ``stopped()`` is asked before
    each pass, not before each layer, for all ranks must compute the same layers. After
    an error they may be at different points, and are of no use any more.
    """

    def __init__(self, model: Ranked, rank: Rank):
        self.model = model
        self.rank = rank
        self.vocab = model.vocab
        self.context = model.context
        self.prefix = model.prefix  # all ranks' caches hold the same tokens
        self._awaited = set(range(1, rank.size))  # ranks that have not answered yet

    def meet(self) -> None:
        """Opens the store where the ranks find each other, and waits for them there.

        It must be done before the first pass.
        """
        store: TCPStore = distributed.TCPStore(  # type: ignore[attr-defined]
            THIS_MACHINE, 0, is_master=True, wait_for_workers=False
        )
        self._send("join", store.port, patience=None)  # they may still be loading
        self.model.meet(self.rank, store)
        if self.model.ranks.wait_on_device:
            device = self.model.network.device
            self.model.when_launched = lambda: self.wait_beside_ranks(
                end_of_work_on(device)
            )

    def rows(self, *arguments: Any) -> Rows:
        """As of the model."""
        return self._pass("rows", *arguments)

    def tree(self, *arguments: Any) -> Rows:
        """As of the model."""
        return self._pass("tree", *arguments)

    def level(self, *arguments: Any) -> Rows:
        """As of the model."""
        return self._pass("level", *arguments)

    def chances(self) -> Row:
        """As of the model: this rank has the logits."""
        return self.model.chances()

    def features_fed(self) -> np.ndarray:
        """As of the model: this rank has what its LM head reads."""
        return self.model.features_fed()

    def wait_for_device(self) -> None:
        """As of the model, on this rank's device."""
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
        """Calls the method ``name`` on every rank; returns what this rank's does."""
        self._send(name, *arguments, patience=self.rank.patience)
        try:
            return getattr(self.model, name)(*arguments)
        except RanksApart as error:
            raise self._explained(error) from error

    def wait_beside_ranks(self, is_done: Callable[[], bool]) -> None:
        """Waits until the device has computed a pass, and looks at the ranks meanwhile.

        Where a rank fails, NCCL has the others' GPUs wait without an end, and raises
        nothing here. ``is_done()`` says whether the device is.

        Raises SpeclibError with the cause of a rank that failed, and RankLost where one
        ended, or after the ranks' patience.
        """
        until = time.monotonic() + self.rank.patience
        while not is_done():
            for number in sorted(self._awaited):
                if self.rank.pipes[number - 1].poll():
                    self._read_answer(number)
            if time.monotonic() > until:
                raise RankLost(
                    f"the ranks' pass is {self.rank.patience:g} s late: one of them "
                    "hangs in a collective operation, and none says why. Slow "
                    "hardware: Processes(timeout=...), of which this is half"
                )

    def _send(self, *order: Any, patience: float | None) -> None:
        """Sends an order to all followers, once they have obeyed the one before.

        Raises SpeclibError with the cause if one of them has failed, and RankLost if
        one ended, or has not obeyed in ``patience`` seconds.
        """
        for number, pipe in enumerate(self.rank.pipes, 1):
            if number in self._awaited:
                if not pipe.poll(patience):
                    raise self._hung(number)
                self._read_answer(number)
            with suppress(ConnectionError):  # noticed when its answer is due
                pipe.send(order)
            self._awaited.add(number)

    def _read_answer(self, number: int) -> None:
        """Reads a follower's answer, which is there; raises why it did not obey."""
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
        """The error that names the rank which is to blame for ``error``.

        All ranks that missed another one say so; the one that did not has the reason.
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
            f"{self._name_of(number)} hung: it is {self.rank.patience:g} s late. Slow "
            "hardware: Processes(timeout=...), of which this is half"
        )

    def _name_of(self, number: int) -> str:
        return self.rank._replace(number=number).name
