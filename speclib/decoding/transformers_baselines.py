"""Decoding by others on the same pair, to stand beside our methods: kind measured only.

    with External("transformers-assisted", pair) as peer:
        answer = peer.decode("def fib(n):", max_new_tokens=64)      # .text, .tokens, .stats

A peer runs in one process of its own, target and draft in turns, greedy. It is no method: it knows
no World and leaves no trace, so of ``Stats`` it has counts, commit times and passes; devices' busy
seconds and steps stay 0. Knows no torch.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from speclib.data.pairs import Pair
from speclib.errors import SpeclibError
from speclib.models import factory
from speclib.trace.metrics import Stats
from speclib.worlds.devices import DeviceLost
from speclib.worlds.worker import Failure, pin
from speclib.worlds.worker_process import Worker

from .decode import encode, end_tokens


class Peer(NamedTuple):
    """``settings``: its parameters, by their names in transformers' GenerationConfig, and their
    defaults. ``drafts``: whether it runs the pair's draft."""

    about: str
    drafts: bool = False
    settings: dict = {}


EXTERNAL = {
    "transformers-plain": Peer("transformers' generate, one token per pass"),
    "transformers-assisted": Peer(
        "transformers' assisted generation (Gante 2023)",
        True,
        {
            "num_assistant_tokens": 20,
            "num_assistant_tokens_schedule": "constant",
            "assistant_confidence_threshold": 0.4,
        },
    ),
    "transformers-prompt-lookup": Peer(
        "transformers' prompt lookup (Saxena 2023)",
        False,
        {"prompt_lookup_num_tokens": 10, "max_matching_ngram_size": 2},
    ),
}


class Answer(NamedTuple):
    """What a peer decoded: the new tokens and their text; counts and seconds."""

    text: str
    tokens: tuple[int, ...]
    stats: Stats


class External:
    """A peer on ``pair``, open until ``close()``. ``threads``: of the process, the place's by
    default; one is pinned to the target's core, more are free. ``packed``: our packed linear
    layers, or torch's own as transformers' users have them. ``settings``: see EXTERNAL.

    Raises SpeclibError for what is unknown, DeviceLost with the cause for a process that died or
    gave no answer in ``timeout`` seconds (``start_timeout``: for building the models). The next
    request has a new one, and so it has after an interrupt.
    """

    kind = "measured"

    def __init__(
        self,
        name: str,
        pair: Pair,
        *,
        dtype: str = "auto",
        threads: int | None = None,
        packed: bool = True,
        timeout: float = 600.0,
        start_timeout: float = 300.0,
        **settings,
    ):
        if name not in EXTERNAL:
            raise SpeclibError(f"unknown peer {name!r}; known: {', '.join(EXTERNAL)}")
        known = EXTERNAL[name].settings
        for key in settings.keys() - known.keys():
            raise SpeclibError(
                f"peer {name!r} has no parameter {key!r}; known: "
                f"{', '.join(known) or 'none'}"
            )
        if pair.target.is_toy:
            raise SpeclibError(
                f"peer {name!r} needs real models; pair {pair.name!r} is a toy"
            )
        if EXTERNAL[name].drafts and factory.runtime(pair, "draft") != "torch":
            raise SpeclibError(
                f"peer {name!r} needs a torch draft; that of {pair.name!r} runs in "
                f"{factory.runtime(pair, 'draft')}: give its twin, as embedded/duo-torch"
            )
        self.name, self.pair, self.timeout, self.start_timeout = (
            name,
            pair,
            timeout,
            start_timeout,
        )
        self._build = (
            dtype,
            threads or pair.place.threads,
            packed,
            EXTERNAL[name].drafts,
            end_tokens(factory.tokenizer(pair)),
            known | settings,
        )
        self._worker: Worker | None = None
        self._staff()

    def _staff(self) -> None:
        if self._worker is None:
            self._worker = Worker(self.name, self.pair, generate, *self._build)
            self._receive("could not build", self.start_timeout, "start_timeout")

    def decode(self, prompt, *, max_new_tokens: int = 64) -> Answer:
        """Decodes ``prompt`` (a str, or chat messages) greedily, as ``speclib.decode`` reads it."""
        if max_new_tokens < 1:
            raise SpeclibError(f"max_new_tokens is {max_new_tokens}: give at least 1")
        ids = encode(prompt, self.pair, max_new_tokens)
        self._staff()
        with contextlib.suppress(ConnectionError):  # noticed when its answer is awaited
            self._worker.pipe.send((ids, max_new_tokens))
        tokens, stats = self._receive("failed on", self.timeout)
        text = factory.tokenizer(self.pair).decode(
            list(tokens), skip_special_tokens=True
        )
        return Answer(text, tokens, stats)

    def _receive(self, what: str, *patience):
        try:
            message = self._worker.receive(*patience)
        except DeviceLost as error:
            self._worker = None
            raise DeviceLost(
                f"peer {self.name!r} on pair {self.pair.name!r} was lost: {error}"
            ) from None
        except (
            BaseException
        ):  # interrupted: its answer would be taken for the next one's
            self.close()
            raise
        if isinstance(message, Failure):
            self.close()
            raise DeviceLost(
                f"peer {self.name!r} {what} pair {self.pair.name!r}: {message.cause}"
            )
        return message

    def close(self) -> None:
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def generate(
    pair: Pair,
    dtype: str,
    threads: int,
    packed: bool,
    drafts: bool,
    eos,
    settings: dict,
):
    """In the worker: builds the models; what answers (prompt's ids, limit)."""
    pin(factory.place(pair).of("target") if threads == 1 else (), threads)
    from speclib.models.transformers_generate import Transformers

    target, *draft = (
        factory.build(pair, role, dtype, packed=packed)
        for role in (("target", "draft") if drafts else ("target",))
    )
    peer = Transformers(target, draft[0] if draft else None, eos, settings)
    return lambda message, _: peer(message)
