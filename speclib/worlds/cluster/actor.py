"""What Ray runs on a node: the worker that a process of one machine runs, unchanged.

An actor is one process. It is a whole device, or one rank of several. Ray starts it,
watches it and calls its methods; this module translates the calls into the messages
that a worker knows. The ranks of a device speak with each other as they do on one
machine, over connections that the first of them offers::

    controller ── Ray ── rank 0 ──┬── connection ── rank 1
                                  └── connection ── rank 2

Operations are performed one after the other. To stop one, and to read the clock, an
actor is called beside them: these methods are of a concurrency group of their own.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Client, Connection, Listener
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import psutil
import ray

from speclib.core.sampling import Rows
from speclib.errors import SpeclibError
from speclib.models.loading import Rank
from speclib.worlds.worker import (
    STOP,
    Failure,
    LeaveRows,
    Question,
    Reply,
    answer_messages,
    attempt,
    device,
)

from . import fingerprint

if TYPE_CHECKING:
    from speclib.core.settings import Role
    from speclib.data.latency import Durations
    from speclib.data.pairs import Pair

ASIDE = "aside"  # the concurrency group of what is called beside an operation

# How torch's two libraries are told through which interface the ranks meet.
INTERFACE_SETTINGS = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


class MeetingPoint(NamedTuple):
    """Where the first rank of a device waits for the others."""

    host: str
    port: int
    key: bytes


@dataclass(frozen=True)
class Part:
    """What an actor has to build: one device's model, or its part of it.

    ``pair``: its places are as this actor sees them. ``number``, ``size``: its rank,
    of that many. ``code``: a hash of the source that asks. ``patience``: seconds that
    ranks wait for each other.
    """

    pair: Pair
    name: str
    role: Role
    index: int
    dtype: str
    emulate: Durations | None
    number: int
    size: int
    code: str
    patience: float

    def rank(self, host: str, pipes: tuple[Connection, ...] = ()) -> Rank | None:
        """This actor among the ranks of its device; None where it is the only one."""
        if self.size == 1:
            return None
        return Rank(self.number, self.size, self.patience, pipes, host)

    def start(self, rank: Rank | None, leave_rows: LeaveRows) -> Callable[..., Any]:
        """Builds the model; returns what answers (message, pipe)."""
        answer: Callable[..., Any] = device(
            self.pair,
            self.name,
            self.role,
            self.index,
            leave_rows=leave_rows,
            dtype=self.dtype,
            latency=self.emulate,
            rank=rank,
        )
        return answer


class FewNumbers(NamedTuple):
    """Rows [n, V] with few numbers other than 0, as ``top_k`` and ``top_p`` leave them.

    ``indices``: where these ``numbers`` are when the rows are laid one after another.
    """

    shape: tuple[int, ...]
    indices: np.ndarray
    numbers: np.ndarray

    def read(self) -> Rows:
        """The rows themselves."""
        rows = np.zeros(self.shape, self.numbers.dtype)
        rows.ravel()[self.indices] = self.numbers
        return rows


def pack(rows: Rows) -> Rows | FewNumbers:
    """What is sent of ``rows``: whichever is shorter."""
    flat = rows.ravel()
    indices = np.flatnonzero(flat)
    if flat.size <= np.iinfo(np.int32).max:
        indices = indices.astype(np.int32)  # as many bytes as a number, or half
    numbers = flat[indices]
    if indices.nbytes + numbers.nbytes >= rows.nbytes:
        return rows
    return FewNumbers(rows.shape, indices, numbers)


class Actor:
    """One process of a device."""

    def __init__(self) -> None:
        self._pipe, self._stops = Pipe()  # how a worker is told that it is to stop
        self._lock = threading.Lock()
        self._performed = 0  # the number of the operation under way; 0: none
        self._unwanted = 0  # operations up to this number are not wanted

    # -- ranks -------------------------------------------------------------------------
    def offer_meeting(self) -> MeetingPoint:
        """Opens the first rank's door to the others."""
        host = own_address()
        key = secrets.token_bytes(16)
        self._listener = Listener((host, 0), authkey=key)
        _, port = self._listener.address
        return MeetingPoint(host, int(port), key)

    def follow(self, meeting: MeetingPoint, part: Part) -> None:
        """Serves the first rank, until that ends."""
        _check_version(part)
        _meet_through(own_address())
        with Client((meeting.host, meeting.port), authkey=meeting.key) as pipe:
            pipe.send(part.number)
            answer_messages(pipe, part.start, part.rank(meeting.host), pack)

    def _accept_followers(self, count: int) -> tuple[Connection, ...]:
        """The connections to the other ranks, in the order of their numbers."""
        pipe_of_rank = {}
        for _ in range(count):
            pipe = self._listener.accept()
            pipe_of_rank[pipe.recv()] = pipe
        self._listener.close()
        return tuple(pipe_of_rank[number] for number in sorted(pipe_of_rank))

    # -- operations --------------------------------------------------------------------
    def start(self, part: Part) -> str | Failure:
        """Builds the model of a device's only or first rank.

        Returns the number that Ray gave its node.
        """
        pipes: tuple[Connection, ...] = ()
        host = own_address()
        if part.size > 1:
            _meet_through(host)
            pipes = self._accept_followers(part.size - 1)

        answer = attempt(_start, part, part.rank(host, pipes))
        if isinstance(answer, Failure):
            return answer
        self._answer = answer
        return str(ray.get_runtime_context().get_node_id())

    def perform(self, number: int, question: Question) -> Reply | Failure:
        """The reply to a question; they are numbered from 1 on."""
        with self._lock:
            while self._pipe.poll():  # it came too late for the operation before
                self._pipe.recv()
            self._performed = number
            if number <= self._unwanted:  # it overtook the question
                self._stops.send(STOP)

        reply: Reply | Failure = attempt(self._answer, question, self._pipe)

        with self._lock:
            self._performed = 0
        return reply

    # -- beside operations -------------------------------------------------------------
    @ray.method(concurrency_group=ASIDE)
    def stop(self, number: int) -> None:
        """Says that the operation ``number`` is not wanted any more."""
        with self._lock:
            self._unwanted = number
            if self._performed == number:
                self._stops.send(STOP)

    @ray.method(concurrency_group=ASIDE)
    def pid(self) -> int:
        """The number of this process on its node."""
        return os.getpid()

    @ray.method(concurrency_group=ASIDE)
    def clock(self) -> float:
        """What this machine's monotonic clock reads, seconds."""
        return time.perf_counter()


def _start(part: Part, rank: Rank | None) -> Callable[..., Any]:
    _check_version(part)
    return part.start(rank, pack)


def _check_version(part: Part) -> None:
    """Raises SpeclibError if this node computes with another source of speclib."""
    if fingerprint.of_code() != part.code:
        raise SpeclibError(
            f"node {own_address()} has another version of speclib: install the same on "
            "every node"
        )


def own_address() -> str:
    """The address of this node, by which the others reach it."""
    address: str = ray.util.get_node_ip_address()
    return address


def _meet_through(host: str) -> None:
    """Has torch's ranks meet through the network interface that has this address.

    Left alone, torch looks up the machine's own name, which often stands for an address
    that no other machine can reach.
    """
    for interface, addresses in psutil.net_if_addrs().items():
        for address in addresses:
            if address.family == socket.AF_INET and address.address == host:
                for setting in INTERFACE_SETTINGS:
                    os.environ.setdefault(setting, interface)
