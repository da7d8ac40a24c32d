"""The code that Ray runs on a node: the same worker as on a single machine.

An actor is one process: a whole device, or one rank of a device. Ray starts it,
watches it and calls its methods; this module translates the calls into a worker's
messages. All ranks of a device are on one node. They communicate over connections that
the first rank offers::

    controller ── Ray ── rank 0 ──┬── connection ── rank 1
                                  └── connection ── rank 2

Operations are performed one after the other. The methods that stop an operation or
read the clock can be called during an operation, because they have a separate
concurrency group.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from multiprocessing import Pipe
from multiprocessing.connection import Client, Connection, Listener
from typing import TYPE_CHECKING, Any, NamedTuple

import ray

from speclib.errors import SpeclibError
from speclib.models.loading import THIS_MACHINE, Rank
from speclib.paths import PACKAGE
from speclib.worlds.performer import (
    STOP,
    DeviceSpec,
    Failure,
    Question,
    Reply,
    answer_messages,
    attempt,
    device,
    rows_in_reply,
)

if TYPE_CHECKING:
    from speclib.data.pairs import Pair

ASIDE = "aside"  # the concurrency group of methods that are called during an operation

# The packages whose code decides how long a pass takes.
COMPUTING = ("core", "data", "models", "operations", "worlds")


@cache
def fingerprint_of_code() -> str:
    """Computes a hash of the source code that takes part in a pass.

    Two machines compare their hashes to find out whether they run the same code.
    """
    hasher = hashlib.blake2b(digest_size=16)
    for package in COMPUTING:
        for path in sorted((PACKAGE / package).rglob("*.py")):
            source = path.read_bytes()
            name = path.relative_to(PACKAGE).as_posix()
            hasher.update(f"{name} {len(source)} ".encode() + source)
    return hasher.hexdigest()


class MeetingPoint(NamedTuple):
    """The port on which the first rank of a device accepts the others, and its key."""

    port: int
    key: bytes


@dataclass(frozen=True)
class Assignment:
    """The model that an actor has to build, or its rank's part of it.

    ``pair``: its places are as this actor sees them. ``number``: the actor's rank,
    among ``size`` ranks. ``code``: a hash of the controller's source code.
    ``patience``: the most seconds that ranks wait for each other.
    """

    pair: Pair
    spec: DeviceSpec
    number: int
    size: int
    code: str
    patience: float

    def build(self, pipes: tuple[Connection, ...] = ()) -> Callable[..., Any]:
        """Builds the model; returns a callable that answers (message, pipe).

        ``pipes``: from the first rank to the others. Raises SpeclibError if speclib's
        source code on this node differs.
        """
        if fingerprint_of_code() != self.code:
            raise SpeclibError(
                f"node {socket.gethostname()} has another version of speclib: install "
                "the same version on every node"
            )
        rank = None
        if self.size > 1:
            rank = Rank(self.number, self.size, self.patience, pipes)
        answer: Callable[..., Any] = device(
            self.pair, self.spec, rows_in_reply, rank=rank
        )
        return answer


class Actor:
    """One process of a device."""

    def __init__(self) -> None:
        self._pipe, self._stops = Pipe()  # carries STOP to the worker
        self._lock = threading.Lock()
        self._performed = 0  # the number of the current operation; 0: none
        self._unwanted = 0  # operations up to this number are no longer wanted

    # -- ranks -------------------------------------------------------------------------
    def offer_meeting(self) -> MeetingPoint:
        """Opens the port where the first rank accepts the others."""
        key = secrets.token_bytes(16)
        self._listener = Listener((THIS_MACHINE, 0), authkey=key)
        _, port = self._listener.address
        return MeetingPoint(int(port), key)

    def follow(self, meeting: MeetingPoint, assignment: Assignment) -> None:
        """Serves the first rank until that rank ends."""
        with Client((THIS_MACHINE, meeting.port), authkey=meeting.key) as pipe:
            pipe.send(assignment.number)
            answer_messages(pipe, assignment.build)

    def _accept_followers(self, count: int) -> tuple[Connection, ...]:
        """Accepts the other ranks; returns the connections in the order of ranks."""
        pipe_of_rank = {}
        for _ in range(count):
            pipe = self._listener.accept()
            pipe_of_rank[pipe.recv()] = pipe
        self._listener.close()
        return tuple(pipe_of_rank[number] for number in sorted(pipe_of_rank))

    # -- operations --------------------------------------------------------------------
    def start(self, assignment: Assignment) -> str | Failure:
        """Builds the model of a device's only or first rank.

        Returns the ID that Ray gave its node.
        """
        pipes: tuple[Connection, ...] = ()
        if assignment.size > 1:
            pipes = self._accept_followers(assignment.size - 1)
        answer = attempt(assignment.build, pipes)
        if isinstance(answer, Failure):
            return answer
        self._answer = answer
        return str(ray.get_runtime_context().get_node_id())

    def perform(self, number: int, question: Question) -> Reply | Failure:
        """Performs the operation in ``question``; ``number`` counts them, from 1."""
        with self._lock:
            while self._pipe.poll():  # STOP came too late for the last operation
                self._pipe.recv()
            self._performed = number
            if number <= self._unwanted:  # the call to stop overtook the question
                self._stops.send(STOP)

        reply: Reply | Failure = attempt(self._answer, question, self._pipe)

        with self._lock:
            self._performed = 0
        return reply

    # -- during operations -------------------------------------------------------------
    @ray.method(concurrency_group=ASIDE)
    def stop(self, number: int) -> None:
        """Stops the operation ``number``, which is no longer wanted."""
        with self._lock:
            self._unwanted = number
            if self._performed == number:
                self._stops.send(STOP)

    @ray.method(concurrency_group=ASIDE)
    def pid(self) -> int:
        """The ID of this process on its node."""
        return os.getpid()

    @ray.method(concurrency_group=ASIDE)
    def clock(self) -> float:
        """Reads the monotonic clock of this machine, in seconds."""
        return time.perf_counter()
