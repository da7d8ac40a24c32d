"""An exercise that asks for a whole method, such as SD or PEARL.

``speclab.check.pages`` runs the student's ``method(world, gamma)`` and enumerates every
outcome; the virtual clock times it. The method must write the target's text, and be as
fast as the published method that it implements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from speclab.check.calls import Failed, time_limit
from speclab.check.mistakes import Mistake, is_same
from speclab.check.pages import (
    CLOCK_ALPHA,
    EQUAL,
    NEVER_ENDS,
    TEMPERATURES,
    Behaviour,
    ClockRun,
    Method,
    Setup,
    behaviour_of,
    clock_difference,
    clock_of,
    distribution_of,
    greedy_difference,
    is_repeatable,
    run_on_clock,
    sampled_difference,
    works_after_the_end,
)
from speclib.methods import METHODS
from speclib.worlds.enumerator import Distribution, NotRepeatable

from .card import Card, Heading, not_begun, right_card, with_reward, wrong_card
from .judge import is_untouched, own_randomness, with_hints
from .lesson_files import named_mistakes
from .reward import STAGES, reward_of

# When sampling, two correct methods may differ in speed by chance. A test that uses the
# wrong q differs by more than this factor.
CHANCE = 1.1
SLOW = "slower than it could be"
END_OVERLOOKED = "end token overlooked"
WORKS_ON = "After the text has ended, your method still uses a model or commits tokens."
ASK_GOING = (
    "An end token in the middle of a block ends the text before its limit. Do you "
    "check `world.going` before each step?"
)


@dataclass(frozen=True)
class MethodExercise:
    """An exercise that asks for a method.

    name       name of the registered method
    wrong      (name of a mistake, a method that makes it)
    failing    the same for mistakes that raise an error
    setup      the models and texts on which we try the student's method
    """

    name: str
    wrong: tuple[tuple[str, Method], ...]
    failing: tuple[tuple[str, Method], ...] = ()
    setup: Setup = Setup()

    def check(self, method: Method) -> Card:
        """The card for a student's method, with a demonstration if it is correct."""
        if is_untouched(method):
            return with_hints(not_begun(), self.name)
        card = with_hints(self._judge(method), self.name)
        if not card.is_right:
            return card
        return with_reward(card, lambda: reward_of(method, STAGES[self.name]))

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """All wrong methods, with the questions on their cards."""
        return named_mistakes(self.name, (*self.wrong, *self.failing))

    def _judge(self, method: Method) -> Card:
        try:
            with time_limit():
                behaviour = behaviour_of(method, self.setup)
                problem = self._difference(behaviour)
                is_random = problem is not None and not is_repeatable(
                    method, self.setup, behaviour
                )
        except NotRepeatable:
            return own_randomness()
        except Failed as failed:
            return self._card_of_failed(method, str(failed))

        if problem is None and works_after_the_end(method, self.setup):
            return Card(Heading.SLOW, WORKS_ON, END_OVERLOOKED, (ASK_GOING,))
        if problem is None:
            return self._card_of_lossless(behaviour)
        if is_random:
            return own_randomness()
        return self._card_of_problem(wrong_card(problem), behaviour)

    def _difference(self, behaviour: Behaviour) -> str | None:
        """The first difference from the target's texts; None if they are equal."""
        for find in (greedy_difference, sampled_difference, clock_difference):
            problem = find(behaviour, self.setup)
            if problem is not None:
                return problem
        return None

    def _card_of_lossless(self, behaviour: Behaviour) -> Card:
        """The card of a lossless method, which may still be too slow."""
        walked = ", and ".join(walk.words for walk in self.setup.walks)
        lossless = (
            "Your method is lossless: every text that we tried has exactly the "
            f"target's probability (all texts {walked}), and a long greedy text is the "
            "target's."
        )
        wanted = behaviour_of_ours(METHODS[self.name], self.setup)
        pairs = list(zip(behaviour.clock, wanted.clock, strict=True))
        slow = [(own, page) for own, page in pairs if _is_slower(own, page)]
        if not slow:
            return right_card(lossless, *self._describe_speeds(pairs))
        first, *others = self._describe_speeds(slow)
        card = Card(Heading.SLOW, first, SLOW, (*others, lossless))
        return self._card_of_problem(card, behaviour)

    def _describe_speeds(self, pairs: Sequence[tuple[ClockRun, ClockRun]]) -> list[str]:
        """Compares a method's speed with ours, in one sentence per run."""
        sentences = []
        for own, page in pairs:
            how = "greedily" if own.temperature == 0 else "at temperature 1"
            sentences.append(
                f"On the virtual clock (c = {own.c:g}, α = {CLOCK_ALPHA:g}, "
                f"{self.setup.words}), {how}: {self._speedup(own)} over plain "
                f"decoding. Reference implementation: {self._speedup(page)}."
            )
        return sentences

    def _speedup(self, run: ClockRun) -> str:
        """The speed-up over plain decoding, which takes 1 s per token."""
        return f"{self.setup.clock_tokens / run.seconds:.2f}x"

    # -- the likely mistake ------------------------------------------------------------
    def _card_of_problem(self, card: Card, behaviour: Behaviour) -> Card:
        """The same card, with a cause if one of our wrong methods does the same."""
        for mistake in named_mistakes(self.name, self.wrong):
            if self._behaves_as(mistake.solution, behaviour):
                details = (*card.details, mistake.question)
                return replace(card, cause=mistake.name, details=details)
        return card

    def _behaves_as(self, method: Method, behaviour: Behaviour) -> bool:
        """Whether a method of ours does the same, compared first on the clock."""
        try:
            for run in behaviour.clock:
                own = clock_run_of_ours(method, self.setup, run.c, run.temperature)
                if not is_same(own, run):
                    return False
            known = behaviour_of_ours(method, self.setup)
        except Failed:
            return False
        return is_same(known.greedy, behaviour.greedy) and is_same(
            known.sampled, behaviour.sampled
        )

    def _card_of_failed(self, method: Method, problem: str) -> Card:
        """The card of a method that raised an error."""
        for mistake in named_mistakes(self.name, self.failing):
            of_ours = failure_of_ours(mistake.solution, self.setup)
            if of_ours[0] == problem and is_same(
                of_ours, failure_of(method, self.setup)
            ):
                return wrong_card(problem, mistake.question, cause=mistake.name)
        if problem.endswith(NEVER_ENDS):
            return wrong_card(problem, ASK_GOING, cause=END_OVERLOOKED)
        return wrong_card(problem)


def _is_slower(own: ClockRun, page: ClockRun) -> bool:
    """Whether a run is slower than our method's by more than chance can explain."""
    allowed = 1 + EQUAL if own.temperature == 0 else CHANCE
    return own.seconds > page.seconds * allowed


@cache
def behaviour_of_ours(method: Method, setup: Setup) -> Behaviour:
    """The behaviour of one of our methods; computed once, since many cards need it."""
    return behaviour_of(method, setup)


@cache
def clock_run_of_ours(
    method: Method, setup: Setup, c: float, temperature: float
) -> ClockRun:
    """Runs one of our methods on the virtual clock.

    This is quicker than computing its whole behaviour.
    """
    return run_on_clock(method, setup, c, temperature)


def failure_of(method: Method, setup: Setup) -> tuple[str, list[Distribution]]:
    """A method's error ("" if there is none), and its outcomes before the error."""
    found: list[Distribution] = []
    try:
        with time_limit():
            for temperature in TEMPERATURES:
                for walk in setup.walks:
                    found.append(distribution_of(method, setup, walk, temperature))
            clock_of(method, setup)
    except Failed as failed:
        return str(failed), found
    return "", found


failure_of_ours = cache(failure_of)
