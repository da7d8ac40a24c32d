"""The exercise of a whole method, such as SD or PEARL, written by a student.

The student's ``method(world, gamma)`` runs under the exact enumerator, with models of a
few tokens and gamma 2, for texts of three tokens: once greedily and once sampling. Its
distribution over texts is compared with the target's own. Then it runs on the virtual
clock, beside plain decoding and the method that it is meant to be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np

from speclib.core.sampling import Coins, Rows, Sampler
from speclib.data.latency import Latency
from speclib.methods import METHODS
from speclib.models.toy import BOS, Random, Toy
from speclib.worlds.enumerator import Distribution, outcomes, truth
from speclib.worlds.virtual import Virtual
from speclib.worlds.world import World

from .calls import Failed, call, time_limit
from .card import Card, right, wrong
from .mistakes import Mistake, likely_mistake
from .record import keep_try

Method: TypeAlias = Callable[[World, int], None]

GAMMA, TOKENS = 2, 3
EQUAL = 1e-9

# The what-if of the virtual clock, in which speeds are compared.
CLOCK_C, CLOCK_ALPHA = 4.0, 0.8
# Two ways of tossing the same coins may differ by chance when sampling; a draft that is
# tested with the wrong q loses more than this.
CHANCE = 1.1
SLOW = "slower than it could be"


@dataclass(frozen=True)
class Setup:
    """Where a method is tried.

    vocab         tokens that the models of the enumerator know
    servers       devices that have the target model
    clock_gamma   the method's gamma on the virtual clock
    clock_tokens  tokens that it writes there
    words         how the card says gamma and servers
    """

    vocab: int = 3
    servers: int = 1
    clock_gamma: int = 4
    clock_tokens: int = 400
    words: str = "γ = 4"


@dataclass(frozen=True)
class Behaviour:
    """What a method does.

    greedy, sampled   its distribution over texts, at temperature 0 and 1
    seconds           on the virtual clock, of a long text: greedily and sampling
    """

    greedy: Distribution
    sampled: Distribution
    seconds: tuple[float, float]


@dataclass(frozen=True)
class MethodExercise:
    """A method to write.

    name       of the registered method
    mistakes   methods that make a mistake we know
    setup      where it is tried
    """

    name: str
    mistakes: tuple[Mistake, ...]
    setup: Setup = Setup()

    def check(self, method: Method) -> Card:
        """The card for a student's method."""
        card = self._judge(method)
        keep_try(self.name, card.is_right)
        return card

    def _judge(self, method: Method) -> Card:
        try:
            with time_limit():
                behaviour = behaviour_of(method, self.setup)
        except Failed as failed:
            return wrong(str(failed))

        target = models(self.setup)["target"]
        problem = greedy_difference(behaviour, target)
        problem = problem or sampled_difference(behaviour, target)
        if problem is None:
            return self._card_of_lossless(behaviour)
        return self._card_of_problem(problem, behaviour)

    def _card_of_lossless(self, behaviour: Behaviour) -> Card:
        """The card of a lossless method: whether it is also as fast as it should be."""
        lossless = "Nothing is lost: every text has exactly the target's probability"
        wanted = behaviour_of_known(METHODS[self.name], self.setup)
        greedy, sampled = behaviour.seconds
        wanted_greedy, wanted_sampled = wanted.seconds
        speeds = (
            f"On the virtual clock (c = {CLOCK_C:g}, α = {CLOCK_ALPHA:g}, "
            f"{self.setup.words}) it is {self._times_plain(greedy)} as fast as plain "
            f"decoding, and {self._times_plain(sampled)} at temperature 1. This "
            f"repository's own page reaches {self._times_plain(wanted_greedy)} and "
            f"{self._times_plain(wanted_sampled)}."
        )
        is_fast = greedy <= wanted_greedy * (1 + EQUAL)
        if is_fast and sampled <= wanted_sampled * CHANCE:
            return right(f"{lossless}.", speeds)
        problem = f"{lossless}, but it is slower than it could be."
        return self._card_of_problem(problem, behaviour, speeds, cause=SLOW)

    def _card_of_problem(
        self, problem: str, behaviour: Behaviour, *details: str, cause: str = ""
    ) -> Card:
        """The card of a wrong method; ``cause``: for one that is like none of ours."""
        mistake = likely_mistake(_facts(behaviour), self.mistakes, self._facts_of_known)
        if mistake is None:
            return wrong(problem, *details, cause=cause)
        return wrong(problem, *details, mistake.question, cause=mistake.name)

    def _times_plain(self, seconds: float) -> str:
        """How many times as fast as plain decoding, which takes 1 s per token."""
        return f"{self.setup.clock_tokens / seconds:.2f} times"

    def _facts_of_known(self, method: Method) -> list[object]:
        return _facts(behaviour_of_known(method, self.setup))


# -- running it ------------------------------------------------------------------------
def behaviour_of(method: Method, setup: Setup) -> Behaviour:
    """What a method does. Raises Failed with what went wrong."""
    return Behaviour(
        greedy=distribution_of(method, setup, temperature=0.0),
        sampled=distribution_of(method, setup, temperature=1.0),
        seconds=(
            seconds_on_clock(method, setup, temperature=0.0),
            seconds_on_clock(method, setup, temperature=1.0),
        ),
    )


@cache
def behaviour_of_known(method: Method, setup: Setup) -> Behaviour:
    """The same for a method of ours, of which it is asked more than once."""
    return behaviour_of(method, setup)


def _facts(behaviour: Behaviour) -> list[object]:
    """All by which two methods are told apart."""
    return [behaviour.greedy, behaviour.sampled, behaviour.seconds]


def distribution_of(method: Method, setup: Setup, temperature: float) -> Distribution:
    """The exact distribution over texts of a method."""
    return outcomes(
        guarded(method),
        models(setup),
        TOKENS,
        sampler=Sampler(temperature),
        prompt=(BOS,),
        gamma=GAMMA,
    )


def models(setup: Setup) -> dict[str, Random]:
    """Unrelated draft and target; beyond the text that is looked at, one sure token."""
    models = {"draft": Random(setup.vocab, 10, horizon=1 + TOKENS)}
    for name in names_of_targets(setup):
        models[name] = Random(setup.vocab, 20, horizon=1 + TOKENS)
    return models


def names_of_targets(setup: Setup) -> list[str]:
    """The devices that have the target model: target, target-2, ..."""
    others = [f"target-{number}" for number in range(2, setup.servers + 1)]
    return ["target", *others]


def guarded(method: Method) -> Method:
    """The method; its errors are Failed, with a sentence for the student."""

    def run(world: World, gamma: int) -> None:
        call(method, world, gamma)
        if world.going:
            raise Failed(
                "Your method ends before the text is complete: does it go on `while "
                "world.going`?"
            )

    return run


class LosesItsWay(Toy):
    """A draft that, writing its likeliest tokens, is never right after a wrong one.

    What a plain toy writes depends on the place alone, so that it would often be right
    there, too, and who keeps drafts after a rejection would gain by it.
    """

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        rows = super().rows(text, last, sampler)
        written = np.asarray(text[1:])  # after the prompt, which is one token
        is_lost = not np.array_equal(written, self._script[: len(written)])
        if not sampler.greedy or not is_lost:
            return rows
        end = len(text)
        return self._one_hot[self._wrong[end - last - 1 : end]]


def seconds_on_clock(method: Method, setup: Setup, temperature: float) -> float:
    """Seconds of a method in the what-if above; a target pass takes 1."""
    models: dict[str, Toy] = {"draft": LosesItsWay(CLOCK_ALPHA)}
    for name in names_of_targets(setup):
        models[name] = Toy()
    world = Virtual(models, Latency.ratio(CLOCK_C))
    world.begin(
        (BOS,), sampler=Sampler(temperature), coins=Coins(), limit=setup.clock_tokens
    )
    guarded(method)(world, setup.clock_gamma)
    world.end()
    return world.now


# -- the comparison --------------------------------------------------------------------
def greedy_difference(behaviour: Behaviour, target: Random) -> str | None:
    """Where the greedy text first differs from the target's."""
    (wanted,) = target_distribution(target, temperature=0.0)
    text = max(behaviour.greedy, key=behaviour.greedy.__getitem__)
    if text == wanted:
        return None
    for length in range(1, TOKENS + 1):
        if text[:length] != wanted[:length]:
            break
    return (
        f"Greedily, {_which_token_is_wrong(length)} Your method writes {text}; the "
        f"target model writes {wanted}."
    )


def sampled_difference(behaviour: Behaviour, target: Random) -> str | None:
    """The first token that has another distribution than the target's."""
    wanted = target_distribution(target, temperature=1.0)
    for length in range(1, TOKENS + 1):
        found_beginnings = _beginnings(behaviour.sampled, length)
        wanted_beginnings = _beginnings(wanted, length)
        texts = sorted(found_beginnings.keys() | wanted_beginnings.keys())
        differences = []
        for text in texts:
            found_share = found_beginnings.get(text, 0.0)
            differences.append(abs(found_share - wanted_beginnings.get(text, 0.0)))
        if max(differences) > EQUAL:
            text = texts[int(np.argmax(differences))]
            return (
                f"At temperature 1, {_which_token_is_wrong(length)} A text begins with "
                f"{text} with probability {found_beginnings.get(text, 0.0):.4f}; the "
                f"target model says {wanted_beginnings.get(text, 0.0):.4f}."
            )
    return None


def target_distribution(target: Random, temperature: float) -> Distribution:
    """The target's own distribution over texts."""
    return truth(target, TOKENS, sampler=Sampler(temperature), prompt=(BOS,))


def _beginnings(distribution: Distribution, length: int) -> Distribution:
    """The distribution of the first ``length`` tokens."""
    beginnings: Distribution = {}
    for text, probability in distribution.items():
        beginning = text[:length]
        beginnings[beginning] = beginnings.get(beginning, 0.0) + probability
    return beginnings


def _which_token_is_wrong(length: int) -> str:
    """What to say where texts of ``length`` tokens are the shortest that differ."""
    if length == 1:
        return "token 1 is wrong already."
    if length == 2:
        return "token 1 is right, token 2 is not."
    return f"tokens 1 to {length - 1} are right, token {length} is not."
