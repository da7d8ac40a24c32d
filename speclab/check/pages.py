"""Checks a whole method, under the exact enumerator and on the virtual clock.

``method(world, gamma)`` runs under the enumerator with small vocabularies and short
texts, with two and with three drafts per round, greedily and with sampling. We compare
its distribution over texts with the target's own. Then the method writes a long text on
the virtual clock, and we compare this text and its time with plain decoding's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np

from speclab.check.calls import AllTookTooLong, Failed, TookTooLong, call_guarded
from speclab.check.mistakes import is_same
from speclib.core.sampling import Coins, Drafted, Rows, Sampler, Tokens
from speclib.data.latency import Latency
from speclib.errors import BadCall
from speclib.methods import METHODS
from speclib.models.toy import BOS, Random, Toy
from speclib.operations.operation import Operation
from speclib.worlds.devices import AnyFuture
from speclib.worlds.enumerator import Distribution, outcomes, truth
from speclib.worlds.virtual import Virtual
from speclib.worlds.world import World

Method: TypeAlias = Callable[[World, int], None]

EQUAL = 1e-9

# The acceptance rate assumed on the virtual clock, where we compare speeds.
CLOCK_ALPHA = 0.8
TEMPERATURES = (0.0, 1.0)


class Walk(NamedTuple):
    """What the enumerator covers: all texts of ``tokens`` tokens, at one draft length.

    ``vocab``: the size of the models' vocabulary. ``end``: the token that ends a text;
    None: no token does.
    """

    vocab: int
    gamma: int
    tokens: int
    end: int | None = None

    @property
    def words(self) -> str:
        words = f"of {self.tokens} tokens with γ = {self.gamma}"
        return words if self.end is None else f"{words} and {self.end} as an end token"

    @property
    def ends(self) -> Tokens:
        return () if self.end is None else (self.end,)

    def in_words(self, problem: str) -> str:
        """The problem, with the end token of this walk if it has one."""
        return problem if self.end is None else f"If {self.end} ends a text: {problem}"


NEVER_ENDS = "it does not end. Does it loop `while world.going`?"

WALKS = (Walk(3, 2, 3), Walk(2, 3, 4))
WALKS_WITH_ENDS = (*WALKS, Walk(3, 2, 3, end=1), Walk(2, 3, 4, end=1))


@dataclass(frozen=True)
class Setup:
    """The setup for trying a method.

    walks         what the enumerator covers
    servers       number of devices with the target model
    clock_c       the cost ratios of the virtual clocks
    clock_gamma   the method's gamma on these clocks
    clock_tokens  tokens that the method writes on them
    words         gamma and servers, as shown to the user
    """

    walks: tuple[Walk, ...] = WALKS
    servers: int = 1
    clock_c: tuple[float, ...] = (4.0,)
    clock_gamma: int = 4
    clock_tokens: int = 400
    words: str = "γ = 4"


class ClockRun(NamedTuple):
    """A long text on the virtual clock, and how long it took."""

    c: float
    temperature: float
    seconds: float
    text: Tokens


@dataclass(frozen=True)
class Behaviour:
    """A method's observed behaviour.

    greedy, sampled   its distribution over texts in each walk, at temperature 0 and 1
    clock             its long texts on the virtual clock
    """

    greedy: tuple[Distribution, ...]
    sampled: tuple[Distribution, ...]
    clock: tuple[ClockRun, ...]


# -- running the method ----------------------------------------------------------------
def behaviour_of(method: Method, setup: Setup) -> Behaviour:
    """Observes a method. Raises Failed with a sentence about what went wrong."""
    greedy = [distribution_of(method, setup, walk, 0.0) for walk in setup.walks]
    sampled = [distribution_of(method, setup, walk, 1.0) for walk in setup.walks]
    return Behaviour(tuple(greedy), tuple(sampled), clock_of(method, setup))


def clock_of(method: Method, setup: Setup) -> tuple[ClockRun, ...]:
    """A method's long texts on the virtual clocks."""
    runs = []
    for c in setup.clock_c:
        for temperature in TEMPERATURES:
            runs.append(run_on_clock(method, setup, c, temperature))
    return tuple(runs)


def is_repeatable(method: Method, setup: Setup, behaviour: Behaviour) -> bool:
    """Whether a method behaves the same when its first walks are repeated.

    If not, it draws random numbers other than the world's coins.
    """
    greedy = distribution_of(method, setup, setup.walks[0], 0.0)
    sampled = distribution_of(method, setup, setup.walks[0], 1.0)
    same_greedy = is_same(greedy, behaviour.greedy[0])
    return same_greedy and is_same(sampled, behaviour.sampled[0])


def distribution_of(
    method: Method, setup: Setup, walk: Walk, temperature: float
) -> Distribution:
    """A method's exact distribution over texts."""
    try:
        return outcomes(
            guarded(method),
            models(setup, walk),
            walk.tokens,
            sampler=Sampler(temperature),
            prompt=(BOS,),
            eos=walk.ends,
            gamma=walk.gamma,
        )
    except Failed as failed:
        raise Failed(walk.in_words(str(failed))) from failed
    except AllTookTooLong:
        raise
    except TookTooLong as error:
        if walk.end is None:
            raise
        raise Failed(walk.in_words(NEVER_ENDS)) from error


def works_after_the_end(method: Method, setup: Setup) -> bool:
    """Whether a method runs a model, or commits, after it committed an end token."""
    is_late: list[bool] = []

    def watched(world: World, gamma: int) -> None:
        ask, commit = world.submit, world.commit

        def submit(device: str, op: Operation) -> AnyFuture:
            is_late.append(not world.going)
            return ask(device, op)

        def write(tokens: Sequence[int]) -> None:
            is_late.append(not world.going)
            commit(tokens)

        world.submit, world.commit = submit, write  # type: ignore[method-assign]
        method(world, gamma)

    for walk in setup.walks:
        if walk.end is not None:
            distribution_of(watched, setup, walk, temperature=1.0)
    return any(is_late)


def models(setup: Setup, walk: Walk) -> dict[str, Random]:
    """An unrelated draft and target, deterministic beyond the text that is compared."""
    models = {"draft": Random(walk.vocab, 10, horizon=1 + walk.tokens)}
    for name in names_of_targets(setup):
        models[name] = _target(walk)
    return models


def _target(walk: Walk) -> Random:
    return Random(walk.vocab, 20, horizon=1 + walk.tokens)


def names_of_targets(setup: Setup) -> list[str]:
    """The devices with the target model: target, target-2, ..."""
    others = [f"target-{number}" for number in range(2, setup.servers + 1)]
    return ["target", *others]


def guarded(method: Method) -> Method:
    """The method, with its errors turned into Failed and a sentence for its author."""

    def run(world: World, gamma: int) -> None:
        watch_commits(world)
        watch_texts(world)
        try:
            call_guarded(method, world, gamma)
        except Failed as failed:
            raise Failed(explain_futures(str(failed))) from failed
        if world.going:
            raise Failed(
                "Your method ends before the text is complete: does it loop `while "
                "world.going`?"
            )

    return run


def watch_commits(world: World) -> None:
    """Makes ``world.commit`` raise BadCall for drafts instead of tokens."""

    def commit(tokens: Sequence[int]) -> None:
        tokens = tuple(tokens)
        if any(isinstance(token, Drafted) for token in tokens):
            raise BadCall(
                "these are drafts, which carry their q. Commit their tokens: "
                "`ids(drafts)`"
            )
        type(world).commit(world, tokens)

    world.commit = commit  # type: ignore[method-assign]  # only in this world


def watch_texts(world: World) -> None:
    """Makes ``world.submit`` raise BadCall for drafts instead of tokens."""

    def submit(device: str, op: Operation) -> AnyFuture:
        text = op.text
        if any(isinstance(token, Drafted) for token in text[-1:]):
            raise BadCall(
                "this text ends with drafts, which carry their q. Add their tokens: "
                "`world.text + ids(window)`"
            )
        return type(world).submit(world, device, op)

    world.submit = submit  # type: ignore[method-assign]  # only in this world


def explain_futures(problem: str) -> str:
    """``problem``, with an explanation of a Future if it mentions one."""
    if "Future" not in problem:
        return problem
    return (
        f"{problem} A Future is an operation that has not been waited for: `world.all` "
        "waits for several, and returns their results."
    )


class NeverRecovers(Toy):
    """A draft that, when greedy, is never right again after a wrong token.

    A plain toy's tokens depend only on their position. It would often be right again
    after a rejection, and a method that wrongly keeps those drafts would look faster.
    """

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        rows = super().rows(text, last, sampler)
        written = np.asarray(text[1:])  # after the prompt, which is one token
        is_lost = not np.array_equal(written, self._script[: len(written)])
        if not sampler.greedy or not is_lost:
            return rows
        end = len(text)
        wrong_rows: Rows = self._one_hot[self._wrong[end - last - 1 : end]]
        return wrong_rows


def run_on_clock(
    method: Method, setup: Setup, c: float, temperature: float
) -> ClockRun:
    """Runs a method on the virtual clock, where a target pass takes 1 s."""
    models: dict[str, Toy] = {"draft": NeverRecovers(CLOCK_ALPHA)}
    for name in names_of_targets(setup):
        models[name] = Toy()
    world = Virtual(models, Latency.ratio(c))
    world.begin(
        (BOS,), sampler=Sampler(temperature), coins=Coins(), limit=setup.clock_tokens
    )
    guarded(method)(world, setup.clock_gamma)
    world.end()
    return ClockRun(c, temperature, world.now, tuple(world.text[1:]))


@cache
def plain_text(setup: Setup) -> Tokens:
    """The target's own long greedy text, as plain decoding writes it."""

    def plain(world: World, gamma: int) -> None:
        METHODS["autoregressive"](world)

    return run_on_clock(plain, setup, setup.clock_c[0], temperature=0.0).text


# -- the comparison --------------------------------------------------------------------
def greedy_difference(behaviour: Behaviour, setup: Setup) -> str | None:
    """The first difference between a greedy text and the target's."""
    for walk, distribution in zip(setup.walks, behaviour.greedy, strict=True):
        (wanted,) = target_distribution(walk, temperature=0.0)
        text = max(distribution, key=distribution.__getitem__)
        if text != wanted:
            return walk.in_words(
                f"Greedily, {_which_token_is_wrong(_first_difference(text, wanted))} "
                f"Your method writes {text}; the target model writes {wanted}."
            )
    return None


def clock_difference(behaviour: Behaviour, setup: Setup) -> str | None:
    """The first difference between the long greedy text and the target's."""
    wanted = plain_text(setup)
    for run in behaviour.clock:
        if run.temperature == 0 and run.text != wanted:
            length = _first_difference(run.text, wanted)
            return (
                f"In a long greedy text ({setup.words}) "
                f"{_which_token_is_wrong(length)} Your method writes "
                f"{run.text[length - 1]}; the target model writes "
                f"{wanted[length - 1]}."
            )
    return None


def _first_difference(text: Tokens, wanted: Tokens) -> int:
    """The first token that differs between two texts, counted from 1."""
    for number, (token, wanted_token) in enumerate(zip(text, wanted, strict=False), 1):
        if token != wanted_token:
            return number
    return min(len(text), len(wanted)) + 1


def sampled_difference(behaviour: Behaviour, setup: Setup) -> str | None:
    """The first token whose distribution differs from the target's."""
    for walk, distribution in zip(setup.walks, behaviour.sampled, strict=True):
        wanted = target_distribution(walk, temperature=1.0)
        problem = _difference_of(distribution, wanted, walk.tokens)
        if problem is not None:
            return walk.in_words(problem)
    return None


def _difference_of(
    found: Distribution, wanted: Distribution, tokens: int
) -> str | None:
    """The shortest prefix of a text whose probability is wrong."""
    for length in range(1, tokens + 1):
        beginnings = _beginnings(found, length)
        wanted_beginnings = _beginnings(wanted, length)
        texts = sorted(beginnings.keys() | wanted_beginnings.keys())
        differences = []
        for text in texts:
            share = beginnings.get(text, 0.0)
            differences.append(abs(share - wanted_beginnings.get(text, 0.0)))
        if max(differences) > EQUAL:
            text = texts[int(np.argmax(differences))]
            return (
                f"At temperature 1, {_which_token_is_wrong(length)} A text begins with "
                f"{text} with probability {beginnings.get(text, 0.0):.4f}; the "
                f"target model says {wanted_beginnings.get(text, 0.0):.4f}."
            )
    return None


def target_distribution(walk: Walk, temperature: float) -> Distribution:
    """The target's own distribution over texts."""
    target = _target(walk)
    return truth(
        target,
        walk.tokens,
        sampler=Sampler(temperature),
        prompt=(BOS,),
        eos=walk.ends,
    )


def _beginnings(distribution: Distribution, length: int) -> Distribution:
    """The distribution of the first ``length`` tokens."""
    beginnings: Distribution = {}
    for text, probability in distribution.items():
        beginning = text[:length]
        beginnings[beginning] = beginnings.get(beginning, 0.0) + probability
    return beginnings


def _which_token_is_wrong(length: int) -> str:
    """A sentence about the first wrong token, which is number ``length``."""
    if length == 1:
        return "token 1 is already wrong."
    if length == 2:
        return "token 1 is right, but token 2 is not."
    return f"tokens 1 to {length - 1} are right, but token {length} is not."
