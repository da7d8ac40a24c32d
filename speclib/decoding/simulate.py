"""Simulates any method at any cost ratio and acceptance rate: what if?

A simulation takes milliseconds: fast enough for lectures and sliders. The target writes
a fixed text. At each word the draft agrees with probability alpha, independently, and
otherwise writes another word. The method's own code runs on the virtual clock, so every
number is of the kind "virtual".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Annotated, Any, NamedTuple

from annotated_types import MinLen

from speclib.arguments import (
    Number,
    Ratio,
    Seconds,
    Seed,
    Share,
    Whole,
    checked,
)
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency, load_latency
from speclib.errors import BadValue, unknown_name
from speclib.methods import METHODS, about
from speclib.models.toy import BOS, Toy
from speclib.operations.operation import NOTHING
from speclib.trace.metrics import stats
from speclib.worlds.batch_world import Seat
from speclib.worlds.devices import DeviceLost, Future, device_names
from speclib.worlds.virtual import Virtual
from speclib.worlds.virtual_batch import VirtualBatch
from speclib.worlds.world import World

from .auto_settings import RequestedSettings, requested_settings
from .batch import Batch, BatchResult, in_lockstep, refuse_servers
from .decode import Result

TEXT = (
    "A small model runs ahead and guesses the next few words while the large one reads "
    "them all in a single pass . It keeps every word it would have written itself and "
    "corrects the first one that it would not , so the text never changes and only the "
    "waiting does . When both work at once nobody waits , and the time of a step is "
    "that of the slower of the two ."
)
OF_A_DRAFT = ("alpha", "doubt", "fuzzy")  # arguments that describe the draft
TARGET_SECONDS = 0.1  # the time of a target pass, if no latency is given
CONTEXT = 1 << 14  # tokens in a toy's text, including the prompt's one token


class Script(NamedTuple):
    """A text for toys to write: its distinct words, and the text as their ids.

    Id 0 is the prompt, not a word.
    """

    words: tuple[str, ...]
    ids: tuple[int, ...]


@cache
def script_of(text: str) -> Script:
    """The script of ``text``, whose words are separated by spaces."""
    id_of_word = {"": BOS}
    for word in text.split():
        id_of_word.setdefault(word, len(id_of_word))
    ids = tuple(id_of_word[word] for word in text.split())
    return Script(tuple(id_of_word), ids)


Tokens = Annotated[int, Whole(least=1, most=CONTEXT - 1)]
Requests = Annotated[int, Whole(least=1, most=10_000)]
Shares = Annotated[Sequence[Share], MinLen(1)]
AtLeastZero = Annotated[float, Number(least=0)]


@checked
def simulate(
    method: str = "pearl",
    *,
    c: Ratio = 5.0,
    alpha: Share | Shares | None = None,
    tokens: Tokens = 32,
    latency: str | Latency | None = None,
    seed: Seed = 0,
    cancel: str = "immediate",
    lost: dict[str, AtLeastZero] | None = None,
    **settings: Any,
) -> Result:
    """Runs ``method`` on the virtual clock until it has written ``tokens`` words.

    >>> plain = speclib.simulate("autoregressive", tokens=20)
    >>> pearl = speclib.simulate("pearl", c=5, alpha=1, tokens=20)
    >>> round(plain.stats.seconds, 2), round(pearl.stats.seconds, 2)
    (2.0, 0.5)

    c         the cost ratio: a draft pass takes 1 / c of a target pass of 0.1 s
    alpha     the probability that the draft agrees at a word; or a list: for the first
              word that the draft writes in a row, for the second, and so on; None: 0.9
    latency   a Latency, or a path under data/latency: the durations of passes, which
              replace ``c``
    seed      decides where the draft agrees, equally for all methods and settings
    cancel    when unwanted work is stopped, see World
    lost      maps the names of devices to the times, in seconds, at which they die
    settings  the method's own; ``gamma``, ``lookahead`` and ``servers`` (the number of
              targets) are "auto" if left out. Any method also accepts

              text      the text that is written
              doubt     how much the draft's confidence varies from word to word, see
                        Toy; 0: not at all
              fuzzy     the share of its agreement that the draft keeps when layers
                        share an input, see Toy; 1: all of it
              target    how long a target pass takes, in seconds, if ``latency`` is not
                        given
              network   how long a message to or from a target takes, one way, in
                        seconds

    Raises SpeclibError for an unknown method, setting, latency file or device in
    ``lost``, for a value of the wrong kind, and for a setting of the draft if the
    method has no draft. Plain decoding, the baseline for all others, ignores such a
    setting.
    """
    what_if = _what_if(
        method, c=c, alpha=alpha, tokens=tokens, latency=latency, **settings
    )
    world = MortalWorld(what_if.models(seed), what_if.latency, cancel, lost or {})
    return what_if.run_in(world, seed)


@checked
def simulate_batch(
    method: str = "pearl",
    *,
    batch: Batch,
    requests: Requests | None = None,
    seed: Seed = 0,
    **what: Any,
) -> BatchResult:
    """``simulate`` with ``batch`` requests at a time, in lock-step on the same devices.

    >>> latency = speclib.Latency.ratio(8, 0.1).lengthened(0.01)
    >>> batch = speclib.simulate_batch("pearl", batch=4, tokens=20, latency=latency)
    >>> batch.seats, batch.tokens
    (4, 80)

    requests  how many requests there are in all: a seat whose request ends takes the
              next one, and stays empty if none is left. None: one per seat. Request i
              has the seed ``seed`` + i
    what      the arguments of ``simulate``, without ``cancel`` and ``lost``

    Raises SpeclibError as ``simulate`` does, and for a method whose devices do not wait
    for each other (DSI).
    """
    what_if = _what_if(method, **what)
    refuse_servers(what_if.requested)
    count = requests or batch
    steps = VirtualBatch(min(batch, count), what_if.latency)

    def decode_one(seat: Seat, number: int) -> Result:
        steps.give_models(seat, what_if.models(seed + number))
        return what_if.run_in(seat, seed + number)

    return in_lockstep(steps, count, decode_one)


@dataclass(frozen=True)
class WhatIf:
    """What to simulate: a method, toy models, and the durations of passes.

    ``alpha``, ``doubt``, ``fuzzy``: the draft's, as in ``simulate``.
    """

    requested: RequestedSettings
    script: Script
    tokens: int
    latency: Latency
    alpha: float | Sequence[float]
    doubt: float
    fuzzy: float

    @property
    def rates(self) -> tuple[float, ...]:
        """``alpha`` for each position; () if one value applies to all positions."""
        return tuple(self.alpha) if isinstance(self.alpha, Sequence) else ()

    def models(self, seed: int) -> dict[str, Toy]:
        """The model of each device."""
        vocab, words = len(self.script.words), self.script.ids
        alpha = self.alpha[0] if isinstance(self.alpha, Sequence) else self.alpha
        draft = Toy(
            alpha, vocab, seed, words, CONTEXT, self.doubt, self.fuzzy, self.rates
        )
        models = {}
        for name in device_names(self.requested.servers_at(self.latency.c)):
            is_draft = name == "draft"
            models[name] = draft if is_draft else Toy(None, vocab, seed, words, CONTEXT)
        return models

    def run_in(self, world: World, seed: int) -> Result:
        """Runs the method in a world that has these models."""
        method, settings = self.requested.method, self.requested.resolve(world)
        world.begin((BOS,), sampler=Sampler(), coins=Coins(seed), limit=self.tokens)
        METHODS[method](world, **settings)
        trace = world.end(
            method=method,
            c=self.latency.c,
            alpha=list(self.rates) or self.alpha,
            doubt=self.doubt,
            fuzzy=self.fuzzy,
            prompt=[BOS],
            **settings,
        )
        words, written = self.script.words, tuple(world.text[1:])
        return Result(
            text=" ".join(words[token] for token in written),
            tokens=written,
            stats=stats(trace),
            trace=trace,
            pieces={token: f" {word}" for token, word in enumerate(words)},
        )


@checked
def _what_if(
    method: str,
    *,
    c: Ratio = 5.0,
    alpha: Share | Shares | None = None,
    tokens: Tokens = 32,
    latency: str | Latency | None = None,
    gamma: Any = "auto",
    text: str = TEXT,
    doubt: AtLeastZero = 0.0,
    fuzzy: Share = 1.0,
    target: Seconds = TARGET_SECONDS,
    network: AtLeastZero = 0.0,
    **settings: Any,
) -> WhatIf:
    """Checks ``simulate``'s arguments, and collects them."""
    requested = requested_settings(method, gamma, settings, _what_if)
    is_described = alpha is not None or doubt != 0 or fuzzy != 1
    if is_described and lacks_a_draft(method):
        raise BadValue(
            f"method {method!r} has no draft model: leave out {', '.join(OF_A_DRAFT)}"
        )
    if isinstance(alpha, Sequence) and doubt:
        raise BadValue(
            f"doubt is {doubt:g}, but alpha is a list: leave doubt out, or give one "
            "alpha"
        )
    script = script_of(text)
    if len(script.words) < 3:  # a draft could not write a wrong word
        raise BadValue("the text has fewer than two different words: give a longer one")
    if latency is None:
        latency = Latency.ratio(c, target)
    elif isinstance(latency, str):
        latency = load_latency(latency)
    if network:
        latency = latency.over_network(draft=0.0, target=network)
    rate = 0.9 if alpha is None else alpha
    return WhatIf(requested, script, tokens, latency, rate, doubt, fuzzy)


def lacks_a_draft(method: str) -> bool:
    """Whether the draft's settings are refused for ``method``: it has no draft.

    Plain decoding, the baseline for all other methods, accepts and ignores them.
    """
    return method != "autoregressive" and not about(method).uses_draft


class MortalWorld(Virtual):
    """A virtual world in which devices die; ``lost``: see ``simulate``."""

    def __init__(
        self,
        models: dict[str, Toy],
        latency: Latency,
        cancel: str,
        lost: dict[str, float],
    ):
        super().__init__(models, latency, cancel=cancel)
        for name in lost:
            if name not in models:
                raise unknown_name(f"no device {name!r} to lose", name, models)
        self._lost = lost

    def _schedule(
        self,
        time: float,
        future: Future[Any],
        happens: Callable[[Future[Any]], None],
    ) -> None:
        """Makes a step fail when its device dies, if it would end later.

        A message that was sent before that still arrives.
        """
        dies = self._lost.get(future.device, inf)
        if time > dies and happens == self._end_step:
            time = max(dies, self.now)
            progress = self._progress[future]
            progress.done = NOTHING
            progress.error = DeviceLost(
                f"{future.device} died at {dies:g} s in this what-if"
            )
        super()._schedule(time, future, happens)
