"""Measures other libraries' decoding on the same pair, to compare with our methods.

    with External("transformers-assisted", pair) as peer:
        answer = peer.decode("def fib(n):", max_new_tokens=64)  # .text, .tokens, .stats

A peer decodes greedily in its own process, where target and draft take turns. It is not
a method: it has no World and no trace. So its ``Stats`` contain the counts, the commit
times and the passes; the devices' busy seconds and steps are 0.

This module does not import torch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from speclab.peers.known_peers import EXTERNAL, Peer
from speclib.arguments import Count, Seconds, checked
from speclib.core.settings import Role
from speclib.data.pairs import Pair
from speclib.decoding.text_request import encode
from speclib.errors import BadValue, unknown_name
from speclib.models import preflight
from speclib.models.loading import check_dtype
from speclib.models.open_pair import OpenPair, open_pair
from speclib.trace.metrics import Stats
from speclib.worlds.devices import DeviceLost
from speclib.worlds.owner import Owner
from speclib.worlds.performer import Failure, pin
from speclib.worlds.worker import Worker

# The target's own settings that transformers applies without sampling.
RULES = {"repetition_penalty", "min_new_tokens", "min_length", "suppress_tokens"}


class Answer(NamedTuple):
    """A peer's new tokens and their text, with counts and seconds."""

    text: str
    tokens: tuple[int, ...]
    stats: Stats


class PeerSetup(NamedTuple):
    """What a peer's process needs in addition to the pair."""

    dtype: str
    threads: int
    packed: bool
    drafts: bool
    end_tokens: frozenset[int]
    settings: dict[str, Any]
    rules: dict[str, Any]


class External:
    """A peer on ``pair``, open until ``close()``.

    name        one of EXTERNAL
    threads     threads of its process; by default, the number in the pair's placement;
                a single thread is pinned to the target's core
    packed      whether to use our packed linear layers instead of torch's own, which
                users of transformers have
    timeout     seconds that a request may take; ``start_timeout``: seconds that
                building the models may take
    settings    the peer's own settings, see EXTERNAL

    Raises SpeclibError for an unknown peer or setting, or an unsuitable pair, and
    DeviceLost with the cause if the process dies or does not answer in time. The next
    request then starts a new process, as it does after an interrupt.
    """

    kind = "measured"

    @checked
    def __init__(
        self,
        name: str,
        pair: Pair,
        *,
        dtype: str = "auto",
        threads: Count | None = None,
        packed: bool = True,
        timeout: Seconds = 600.0,
        start_timeout: Seconds = 300.0,
        **settings: Any,
    ):
        peer = _find_peer(name, settings)
        self._opened = open_pair(pair)
        _check_pair(name, peer, self._opened)
        self._opened.generation_settings.check(pair.target.model, sampling=False)
        _check_memory(peer, self._opened, dtype)
        self.name, self.pair = name, pair
        self.timeout, self.start_timeout = timeout, start_timeout
        self._setup = PeerSetup(
            dtype,
            threads or pair.place.threads,
            packed,
            peer.drafts,
            self._opened.end_tokens,
            {**peer.settings, **settings},
            self._opened.generation_settings.model_dump(include=RULES),
        )
        self._owner = Owner()
        self._worker: Worker | None = None
        self._running_worker()

    @property
    def processes(self) -> tuple[int, ...]:
        """The peer's process id; empty while it is closed or lost."""
        return () if self._worker is None else self._worker.pids

    @checked
    def decode(self, prompt: Any, *, max_new_tokens: Count = 64) -> Answer:
        """Decodes ``prompt`` (a str, or chat messages) greedily.

        The prompt is read in the same way as by ``speclib.decode``.
        """
        prompt_ids = encode(prompt, self._opened, max_new_tokens)
        self._owner.take()
        try:
            worker = self._running_worker()
            # We notice a dead process when we wait for its answer.
            with contextlib.suppress(ConnectionError):
                worker.pipe.send((prompt_ids, max_new_tokens))
            tokens, stats = self._receive(worker, "failed on", self.timeout)
        finally:
            self._owner.give_back()
        tokenizer = self._opened.tokenizer
        text = str(tokenizer.decode(list(tokens), skip_special_tokens=True))
        return Answer(text, tokens, stats)

    def _running_worker(self) -> Worker:
        """The peer's process, started if necessary."""
        if self._worker is None:
            self._worker = Worker(self.name, self.pair, generate, self._setup)
            self._receive(
                self._worker, "could not build", self.start_timeout, "start_timeout"
            )
        return self._worker

    def _receive(
        self,
        worker: Worker,
        problem: str,
        seconds: float,
        seconds_setting: str = "timeout",
    ) -> Any:
        """The next message from the process.

        Raises DeviceLost if none arrives within ``seconds`` (set by
        ``seconds_setting``), or if it reports a failure. ``problem``: what failed.
        """
        try:
            message = worker.receive(seconds, seconds_setting)
        except DeviceLost as error:
            self._worker = None
            raise DeviceLost(
                f"peer {self.name!r} on pair {self.pair.name!r} was lost: {error}"
            ) from None
        except BaseException:
            # After an interrupt, the late answer would be taken for the next one.
            self._end_process()
            raise
        if isinstance(message, Failure):
            self._end_process()
            raise DeviceLost(
                f"peer {self.name!r} {problem} pair {self.pair.name!r}: {message.cause}"
            )
        return message

    def close(self) -> None:
        """Ends the peer's process for good."""
        self._owner.close()
        if self._owner.is_here:
            self._end_process()

    def _end_process(self) -> None:
        """Ends the process; the next request starts a new one."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def __enter__(self) -> Self:
        self._owner.check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _find_peer(name: str, settings: Mapping[str, Any]) -> Peer:
    """The peer called ``name``. Raises SpeclibError if it or a setting is unknown."""
    if name not in EXTERNAL:
        raise unknown_name(f"unknown peer {name!r}", name, EXTERNAL)
    peer = EXTERNAL[name]
    for setting in settings:
        if setting not in peer.settings:
            raise unknown_name(
                f"peer {name!r} has no parameter {setting!r}", setting, peer.settings
            )
    return peer


def _check_pair(name: str, peer: Peer, opened: OpenPair) -> None:
    """Raises SpeclibError for a pair that transformers cannot run."""
    pair = opened.pair
    if opened.is_toy:
        raise BadValue(f"peer {name!r} needs real models; pair {pair.name!r} is a toy")
    draft_runtime = opened.runtime("draft")
    if peer.drafts and draft_runtime != "torch":
        raise BadValue(
            f"peer {name!r} needs a torch draft; the draft of {pair.name!r} runs in "
            f"{draft_runtime}: give a pair with a torch draft, such as "
            "embedded/duo-torch"
        )


def _check_memory(peer: Peer, opened: OpenPair, dtype: str) -> None:
    """Raises SpeclibError if this machine lacks a device or memory for the models."""
    check_dtype(dtype)
    roles: tuple[Role, ...] = ("draft", "target") if peer.drafts else ("target",)
    preflight.check(opened, dtype, in_one_process=True, roles=roles)


def generate(pair: Pair, setup: PeerSetup) -> Callable[[Any, object], Any]:
    """Builds a peer's models in its process.

    Returns the function that answers a message with the prompt's token ids and the
    maximum number of new tokens.
    """
    opened = open_pair(pair)
    pinned = opened.place.of("target") if setup.threads == 1 else ()
    pin(pinned, setup.threads)
    from speclab.peers.transformers_generate import Transformers

    target = _build(opened, "target", setup)
    draft = _build(opened, "draft", setup) if setup.drafts else None
    peer = Transformers(target, draft, setup.end_tokens, setup.settings, setup.rules)

    def answer(message: Any, pipe: object) -> Any:
        return peer(message)

    return answer


def _build(opened: OpenPair, role: Literal["draft", "target"], setup: PeerSetup) -> Any:
    return opened.build(role, setup.dtype, packed=setup.packed)
