"""The exercise of a whole method: SD or PEARL, written by a student.

The student's ``method(world, gamma)`` runs under the exact enumerator, with models of
three tokens and gamma 2, for texts of three tokens: once greedily and once sampling.
Its distribution over texts is compared with the target's own. Then it runs on the
virtual clock, beside plain decoding and the method that it is meant to be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, TypeAlias

import numpy as np

from speclib.core.sampling import Coins, Drafted, Row, Sampler, Tokens, ids
from speclib.core.verification import Verified, verify
from speclib.data.latency import Latency
from speclib.errors import unknown_name
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
Step: TypeAlias = Callable[[World, Any, int], Any]

VOCAB, GAMMA, TOKENS = 3, 2, 3
EQUAL = 1e-9

# The what-if of the virtual clock, in which speeds are compared.
CLOCK_C, CLOCK_ALPHA, CLOCK_GAMMA, CLOCK_TOKENS = 4.0, 0.8, 4, 400
# Two ways of tossing the same coins may differ by chance when sampling; a draft that is
# tested with the wrong q loses more than this.
CHANCE = 1.1
SLOW = "slower than it could be"


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
    """

    name: str
    mistakes: tuple[Mistake, ...]

    def check(self, method: Method) -> Card:
        """The card for a student's method."""
        card = self._judge(method)
        keep_try(self.name, card.is_right)
        return card

    def _judge(self, method: Method) -> Card:
        try:
            with time_limit():
                behaviour = behaviour_of(method)
        except Failed as failed:
            return wrong(str(failed))

        problem = greedy_difference(behaviour) or sampled_difference(behaviour)
        if problem is None:
            return self._card_of_lossless(behaviour)
        return self._card_of_problem(problem, behaviour)

    def _card_of_lossless(self, behaviour: Behaviour) -> Card:
        """The card of a lossless method: whether it is also as fast as it should be."""
        lossless = "Nothing is lost: every text has exactly the target's probability"
        wanted = behaviour_of_known(METHODS[self.name])
        greedy, sampled = behaviour.seconds
        wanted_greedy, wanted_sampled = wanted.seconds
        speeds = (
            f"On the virtual clock (c = {CLOCK_C:g}, α = {CLOCK_ALPHA:g}, "
            f"γ = {CLOCK_GAMMA}) it is {_times_plain(greedy)} as fast as plain "
            f"decoding, and {_times_plain(sampled)} at temperature 1. This "
            f"repository's own page reaches {_times_plain(wanted_greedy)} and "
            f"{_times_plain(wanted_sampled)}."
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
        mistake = likely_mistake(_facts(behaviour), self.mistakes, _facts_of_known)
        if mistake is None:
            return wrong(problem, *details, cause=cause)
        return wrong(problem, *details, mistake.question, cause=mistake.name)


# -- running it ------------------------------------------------------------------------
def behaviour_of(method: Method) -> Behaviour:
    """What a method does. Raises Failed with what went wrong."""
    return Behaviour(
        greedy=distribution_of(method, temperature=0.0),
        sampled=distribution_of(method, temperature=1.0),
        seconds=(seconds_on_clock(method, 0.0), seconds_on_clock(method, 1.0)),
    )


@cache
def behaviour_of_known(method: Method) -> Behaviour:
    """The same for a method of ours, of which it is asked more than once."""
    return behaviour_of(method)


def _facts_of_known(method: Method) -> list[object]:
    return _facts(behaviour_of_known(method))


def _facts(behaviour: Behaviour) -> list[object]:
    """All by which two methods are told apart."""
    return [behaviour.greedy, behaviour.sampled, behaviour.seconds]


def distribution_of(method: Method, temperature: float) -> Distribution:
    """The exact distribution over texts of a method."""
    return outcomes(
        guarded(method),
        models(),
        TOKENS,
        sampler=Sampler(temperature),
        prompt=(BOS,),
        gamma=GAMMA,
    )


def models() -> dict[str, Random]:
    """Unrelated draft and target; beyond the text that is looked at, one sure token."""
    return {
        "draft": Random(VOCAB, 10, horizon=1 + TOKENS),
        "target": Random(VOCAB, 20, horizon=1 + TOKENS),
    }


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


def seconds_on_clock(method: Method, temperature: float) -> float:
    """Seconds of a method in the what-if above; a target pass takes 1."""
    models = {"draft": Toy(CLOCK_ALPHA), "target": Toy()}
    world = Virtual(models, Latency.ratio(CLOCK_C))
    world.begin((BOS,), sampler=Sampler(temperature), coins=Coins(), limit=CLOCK_TOKENS)
    guarded(method)(world, CLOCK_GAMMA)
    world.end()
    return world.now


def _times_plain(seconds: float) -> str:
    """How many times as fast as plain decoding, which takes 1 s per token."""
    return f"{CLOCK_TOKENS / seconds:.2f} times"


# -- the comparison --------------------------------------------------------------------
def greedy_difference(behaviour: Behaviour) -> str | None:
    """Where the greedy text first differs from the target's."""
    (wanted,) = target_distribution(temperature=0.0)
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


def sampled_difference(behaviour: Behaviour) -> str | None:
    """The first token that has another distribution than the target's."""
    wanted = target_distribution(temperature=1.0)
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


def target_distribution(temperature: float) -> Distribution:
    """The target's own distribution over texts."""
    target = models()["target"]
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


# -- mistakes of SD --------------------------------------------------------------------
def _greedy_q(drafted: Sequence[Drafted]) -> tuple[Drafted, ...]:
    """Drafts that claim to have been certain."""
    changed = []
    for draft in drafted:
        certain = np.zeros_like(draft.q)
        certain[draft.token] = 1
        changed.append(draft._replace(q=certain))
    return tuple(changed)


def _sd_with(test: Callable[..., Tokens]) -> Method:
    """SD that commits what ``test(world, drafted, rows)`` gives."""

    def run(world: World, gamma: int) -> None:
        while world.going:
            drafted = world.wait(world.draft.propose(world.text, gamma))
            rows = world.wait(
                world.target.score(world.text + ids(drafted), last=len(drafted))
            )
            world.commit(test(world, drafted, rows))

    return run


def _tested_twice_at_one_place(
    world: World, drafted: Sequence[Drafted], rows: Sequence[Row]
) -> Tokens:
    """The first draft alone, and then the others without a commit in between."""
    first = verify(world, drafted[:1], rows[:1])
    if first.extra:
        return first.tokens
    return first.tokens + verify(world, drafted[1:], rows[1:]).tokens


SD = MethodExercise(
    "speculative",
    (
        Mistake(
            "reused coin",
            "Do two decisions share a coin? verify takes the coins of the place where "
            "the text ends, so it can be called once before each commit.",
            _sd_with(_tested_twice_at_one_place),
        ),
        Mistake(
            "row off by one",
            "Is each draft tested with the row after it? The first row says what the "
            "target would have written in the place of the first draft.",
            _sd_with(
                lambda world, drafted, rows: verify(world, drafted, rows[1:]).tokens
            ),
        ),
        Mistake(
            "greedy q when sampling",
            "The draft model was not certain of its tokens: the test needs the "
            "probabilities that they were drawn with.",
            _sd_with(
                lambda world, drafted, rows: (
                    verify(world, _greedy_q(drafted), rows).tokens
                )
            ),
        ),
        Mistake(
            "untested first draft",
            "Every draft is tested, the first one too.",
            _sd_with(
                lambda world, drafted, rows: (
                    ids(drafted[:1]) + verify(world, drafted[1:], rows[1:]).tokens
                )
            ),
        ),
        Mistake(
            "rejected drafts committed",
            "Only what the test accepted may be committed, and the one token more that "
            "it gives.",
            _sd_with(lambda world, drafted, rows: ids(drafted)),
        ),
    ),
)


# -- mistakes of PEARL -----------------------------------------------------------------
def _pearl_with(
    test: Callable[..., Verified] = verify, keeps_window: bool = False
) -> Method:
    """PEARL that commits what ``test(world, drafted, rows)`` gives.

    ``keeps_window``: after a rejection, too.
    """

    def run(world: World, gamma: int) -> None:
        window: tuple[Drafted, ...] = ()
        while world.going:
            rows, drafted = world.all(
                world.target.score(world.text + ids(window), last=len(window)),
                world.draft.propose(world.text + ids(window), gamma),
            )
            verified = test(world, window + drafted, rows)
            world.commit(verified.tokens)
            window = (window + drafted)[len(verified.accepted) :]
            if verified.extra and not keeps_window:
                window = ()

    return run


def _untested_first(
    world: World, drafted: Sequence[Drafted], rows: Sequence[Row]
) -> Verified:
    """The first token of the block that is drafted meanwhile counts as accepted."""
    verified = verify(world, drafted, rows[:-1])
    if verified.extra:
        return verified
    accepted = len(verified.accepted)
    return Verified(ids(drafted[: accepted + 1]), ())


PEARL = MethodExercise(
    "pearl",
    (
        Mistake(
            "untested first draft",
            "Is the first token of a new block committed without a test? The last row "
            "of the target's pass tests it.",
            _pearl_with(_untested_first),
        ),
        Mistake(
            "window kept after a rejection",
            "What was drafted after a rejected token follows a text that is not "
            "written: what becomes of the window then?",
            _pearl_with(keeps_window=True),
        ),
        Mistake(
            "row off by one",
            "Is each draft tested with the row after it? The first row says what the "
            "target would have written in the place of the first draft.",
            _pearl_with(
                lambda world, drafted, rows: verify(
                    world, drafted, rows[1:] if len(rows) > 1 else rows
                )
            ),
        ),
        Mistake(
            "greedy q when sampling",
            "The draft model was not certain of its tokens: the test needs the "
            "probabilities that they were drawn with.",
            _pearl_with(
                lambda world, drafted, rows: verify(world, _greedy_q(drafted), rows)
            ),
        ),
    ),
)
EXERCISES = {exercise.name: exercise for exercise in (SD, PEARL)}


def check_pearl(step: Step) -> Card:
    """Checks ``step(world, window, gamma)``: a round of PEARL.

    ``window``: the drafts that the target model has yet to test. The round commits what
    is verified, and returns the next window.
    """

    @wraps(step)
    def method(world: World, gamma: int) -> None:
        window: Any = ()
        while world.going:
            window = step(world, window, gamma)

    return PEARL.check(method)


def check_method(method: Method, like: str = "speculative") -> Card:
    """Checks ``method(world, gamma)``: it must be lossless, and as fast as ``like``.

    ``like``: "speculative" or "pearl".
    """
    if like not in EXERCISES:
        raise unknown_name(f"no exercise {like!r}", like, EXERCISES)
    return EXERCISES[like].check(method)
