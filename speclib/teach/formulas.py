"""Exercises whose answer is a number or a row: the chance of acceptance, the residual,
the tokens of a round, the speed of a run.

The student's function is called in every case, the smallest first. The first case in
which it differs from the right answer is the counterexample on the card.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from speclib.core.sampling import Row
from speclib.core.sampling import residual as right_residual

from .calls import Failed, call, time_limit
from .card import Card, right, wrong
from .mistakes import Mistake, is_same, likely_mistake
from .record import keep_try

Answer = Callable[..., Any]


@dataclass(frozen=True)
class Formula:
    """An exercise that asks for a function of numbers and rows.

    name        under which tries are kept, and hints are found
    arguments   their names, as the card writes them
    cases       values of the arguments, the case that is easiest to follow first
    solution    the right function
    asked_for   what the function gives, in words
    mistakes    wrong functions that we know
    praise      what the card of a right function says
    """

    name: str
    arguments: tuple[str, ...]
    cases: Sequence[tuple[Any, ...]]
    solution: Answer
    asked_for: str
    mistakes: tuple[Mistake, ...]
    praise: str

    def check(self, function: Answer) -> Card:
        """The card for a student's function."""
        card = self._judge(function)
        keep_try(self.name, card.is_right)
        return card

    def _judge(self, function: Answer) -> Card:
        try:
            with time_limit():
                answers = self._answers_of(function)
        except Failed as failed:
            return wrong(str(failed))

        for case, answer in zip(self.cases, answers, strict=True):
            expected = self.solution(*case)
            if not is_same(answer, expected):
                return self._card_of(case, answer, expected, answers)
        return right(self.praise)

    def _answers_of(self, function: Answer) -> list[Any]:
        answers = []
        for case in self.cases:
            try:
                answers.append(call(function, *case))
            except Failed as failed:
                raise Failed(f"For {self._describe(case)}: {failed}") from failed
        return answers

    def _answers_of_mistake(self, function: Answer) -> list[Any]:
        """The same for one of our own: an error is an answer that nobody else gives."""
        try:
            with np.errstate(all="ignore"):
                return self._answers_of(function)
        except Failed:
            return [object()]

    def _card_of(
        self, case: tuple[Any, ...], answer: Any, expected: Any, answers: list[Any]
    ) -> Card:
        """The card of a wrong function, whose smallest counterexample is ``case``."""
        if answer is None:
            verdict = f"For {self._describe(case)} your function gives nothing."
            return wrong(verdict, "Does it end with a return?", cause="no return")

        verdict = (
            f"For {self._describe(case)} your function gives {_shown(answer)}; "
            f"{self.asked_for} is {_shown(expected)}."
        )
        mistake = likely_mistake(answers, self.mistakes, self._answers_of_mistake)
        if mistake is None:
            return wrong(verdict)
        return wrong(verdict, mistake.question, cause=mistake.name)

    def _describe(self, case: tuple[Any, ...]) -> str:
        parts = []
        for name, value in zip(self.arguments, case, strict=True):
            parts.append(f"{name} = {_shown(value)}")
        return ", ".join(parts)


def _shown(value: Any) -> str:
    """A number with four digits, a row as "(0.2, 0.8)"."""
    if isinstance(value, np.ndarray | list | tuple):
        return f"({', '.join(_shown(entry) for entry in value)})"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def row(*probabilities: float) -> Row:
    """A distribution."""
    return np.array(probabilities)


# Pairs of distributions, the plainest first. In the last two a token has no chance.
ROWS = (
    (row(0.8, 0.2), row(0.5, 0.5)),
    (row(0.2, 0.3, 0.5), row(0.5, 0.25, 0.25)),
    (row(0.1, 0.6, 0.3), row(0.3, 0.3, 0.4)),
    (row(0.0, 0.4, 0.6), row(0.2, 0.8, 0.0)),
    (row(0.0, 1.0, 0.0), row(0.25, 0.5, 0.25)),
)


def _cases_with_tokens() -> list[tuple[Row, Row, int]]:
    """Every pair of rows with every token that the draft may write."""
    cases = []
    for p, q in ROWS:
        for token in np.flatnonzero(q):
            cases.append((p, q, int(token)))
    return cases


# -- the chance of acceptance ----------------------------------------------------------
def acceptance_chance(p: Row, q: Row, token: int) -> float:
    """min(1, p(x) / q(x)). Source: Leviathan et al. 2023, section 2.3."""
    return min(1.0, float(p[token] / q[token]))


ACCEPTANCE = Formula(
    name="acceptance",
    arguments=("p", "q", "token"),
    cases=_cases_with_tokens(),
    solution=acceptance_chance,
    asked_for="the chance that the token is accepted",
    mistakes=(
        Mistake(
            "chance above 1",
            "A chance is at most 1: what if the target model likes the token more than "
            "the draft model does?",
            lambda p, q, token: p[token] / q[token],
        ),
        Mistake(
            "ratio upside down",
            "Which of the two models has the last word? Look at what is divided by "
            "what.",
            lambda p, q, token: min(1.0, q[token] / p[token]) if p[token] else 1.0,
        ),
        Mistake(
            "target's probability alone",
            "This is how often the target model writes the token itself. But the draft "
            "model proposed it, with probability q(x).",
            lambda p, q, token: p[token],
        ),
        Mistake(
            "smaller of the two",
            "This is the chance that the token is drafted and accepted. Given that it "
            "was drafted, the chance is larger.",
            lambda p, q, token: min(p[token], q[token]),
        ),
    ),
    praise="That is min(1, p(x) / q(x)), in every case we tried.",
)


# -- the residual ----------------------------------------------------------------------
def _over_its_sum(values: Row) -> Row:
    with np.errstate(all="ignore"):
        return values / values.sum()


RESIDUAL = Formula(
    name="residual",
    arguments=("p", "q"),
    cases=ROWS,
    solution=right_residual,
    asked_for="the residual",
    mistakes=(
        Mistake(
            "residual not normalised",
            "These are the right proportions, but do they add up to 1?",
            lambda p, q: np.maximum(p - q, 0),
        ),
        Mistake(
            "residual from p",
            "After a rejection p itself would write the drafted tokens too often: what "
            "has been accepted already must be taken off.",
            lambda p, q: p,
        ),
        Mistake(
            "negative probabilities",
            "A probability is never below 0: what about tokens that the draft model "
            "likes more than the target model does?",
            lambda p, q: p - q,
        ),
        Mistake(
            "difference without sign",
            "Tokens that the draft model likes more than the target model does have "
            "been accepted often enough: they should get nothing.",
            lambda p, q: _over_its_sum(np.abs(p - q)),
        ),
        Mistake(
            "upside down",
            "This is what the draft model has too much of. What does it have too "
            "little of?",
            lambda p, q: _over_its_sum(np.maximum(q - p, 0)),
        ),
        Mistake(
            "what both share",
            "This is the part that is accepted already. What is missing until p is "
            "full?",
            lambda p, q: _over_its_sum(np.minimum(p, q)),
        ),
    ),
    praise="Kept tokens and these replacements together give exactly p.",
)


# -- tokens of a round -----------------------------------------------------------------
def expected_tokens(alpha: float, gamma: int) -> float:
    """1 + alpha + ... + alpha^gamma. Source: Leviathan et al. 2023, equation 1."""
    return sum(alpha**i for i in range(gamma + 1))


EXPECTED_TOKENS = Formula(
    name="expected_tokens",
    arguments=("alpha", "gamma"),
    cases=(
        (0.5, 1),
        (0.5, 2),
        (0.8, 4),
        (0.0, 3),
        (0.9, 1),
        (1.0, 3),
    ),
    solution=expected_tokens,
    asked_for="the mean number of tokens in a round",
    mistakes=(
        Mistake(
            "bonus forgotten",
            "These are the accepted drafts. The target model adds a token of its own "
            "in every round: the replacement, or the bonus.",
            lambda alpha, gamma: sum(alpha**i for i in range(1, gamma + 1)),
        ),
        Mistake(
            "no bonus when all are accepted",
            "When all drafts are accepted, the target's pass has one row left over.",
            lambda alpha, gamma: sum(alpha**i for i in range(gamma)),
        ),
        Mistake(
            "drafts after a rejection counted",
            "The second draft counts only where the first one was accepted too.",
            lambda alpha, gamma: 1 + alpha * gamma,
        ),
        Mistake(
            "drafts after a rejection counted, bonus forgotten",
            "The second draft counts only where the first one was accepted too. And "
            "the target model adds a token of its own in every round.",
            lambda alpha, gamma: alpha * gamma,
        ),
        Mistake(
            "uncommitted tokens counted",
            "Drafted is not written: only committed tokens count.",
            lambda alpha, gamma: gamma + 1,
        ),
    ),
    praise="That is 1 + α + … + α^γ, also where every draft is accepted.",
)


# -- speed -----------------------------------------------------------------------------
def speed(rounds: list[tuple[int, int, int]], seconds: float) -> float:
    """Committed tokens per second."""
    return sum(committed for _drafted, _accepted, committed in rounds) / seconds


SPEED = Formula(
    name="speed",
    arguments=("rounds", "seconds"),
    cases=(
        ([(4, 2, 3)], 1.0),
        ([(4, 4, 5), (4, 0, 1)], 2.0),
        ([(3, 1, 2), (3, 3, 4), (3, 2, 3)], 1.5),
        ([(5, 0, 1), (5, 5, 3)], 0.8),  # the last round is cut at the end of the text
    ),
    solution=speed,
    asked_for="the speed in tokens per second",
    mistakes=(
        Mistake(
            "uncommitted tokens counted",
            "Drafted tokens that were rejected or discarded were never written: only "
            "committed ones count.",
            lambda rounds, seconds: sum(drafted for drafted, _, _ in rounds) / seconds,
        ),
        Mistake(
            "bonus forgotten",
            "The target model's own tokens, one in most rounds, are written too.",
            lambda rounds, seconds: (
                sum(accepted for _, accepted, _ in rounds) / seconds
            ),
        ),
        Mistake(
            "uncommitted tokens counted",
            "In the last round the text may end before all that was accepted: only "
            "committed tokens count.",
            lambda rounds, seconds: sum(a + 1 for _, a, _ in rounds) / seconds,
        ),
    ),
    praise="Only committed tokens count, so this speed can be compared with any other.",
)


# -- seconds of a round ----------------------------------------------------------------
def round_of_pearl(gamma: int, draft: float, target: float) -> float:
    """max(gamma t_draft, t_target). Source: PEARL, section 3.4."""
    return max(gamma * draft, target)


ROUND = Formula(
    name="round",
    arguments=("gamma", "draft", "target"),
    cases=(
        (2, 1.0, 5.0),
        (5, 1.0, 5.0),
        (8, 1.0, 5.0),
        (4, 0.02, 0.1),
        (1, 0.3, 0.2),
    ),
    solution=round_of_pearl,
    asked_for="the time of a round of PEARL",
    mistakes=(
        Mistake(
            "models taking turns",
            "This is a round of speculative decoding, in which one waits for the "
            "other. In PEARL both begin at the same time.",
            lambda gamma, draft, target: gamma * draft + target,
        ),
        Mistake(
            "only the target counted",
            "And if the draft model needs longer for its gamma tokens?",
            lambda gamma, draft, target: target,
        ),
        Mistake(
            "only the draft counted",
            "And if the target's pass takes longer?",
            lambda gamma, draft, target: gamma * draft,
        ),
        Mistake(
            "the faster one counted",
            "A round ends when both are done.",
            lambda gamma, draft, target: min(gamma * draft, target),
        ),
        Mistake(
            "one draft counted",
            "The draft model writes gamma tokens in a round, one after the other.",
            lambda gamma, draft, target: max(draft, target),
        ),
    ),
    praise="A round of PEARL takes as long as the slower of the two.",
)


# -- how many samples show a bug -------------------------------------------------------
def samples_to_see(p: float, found: float) -> float:
    """How many tokens until two standard errors are as large as the difference."""
    return 4 * p * (1 - p) / (found - p) ** 2


SAMPLES = Formula(
    name="samples",
    arguments=("p", "found"),
    cases=((0.5, 0.6), (0.2, 0.26), (0.5, 0.49), (0.1, 0.101)),
    solution=samples_to_see,
    asked_for="the number of samples",
    mistakes=(
        Mistake(
            "one standard error",
            "By chance one standard error is passed in a third of all cases: ask for "
            "two.",
            lambda p, found: p * (1 - p) / (found - p) ** 2,
        ),
        Mistake(
            "square root forgotten",
            "The standard error of n samples is √(p (1 - p) / n): solve for n.",
            lambda p, found: 2 * p * (1 - p) / abs(found - p),
        ),
        Mistake(
            "variance of the wrong probability",
            "If nothing is wrong, tokens come with probability p: take its variance.",
            lambda p, found: 4 * found * (1 - found) / (found - p) ** 2,
        ),
    ),
    praise="Half the difference takes four times as many samples.",
)


def check_acceptance(function: Answer) -> Card:
    """Checks ``function(p, q, token)``: the chance that a drafted token is accepted.

    ``p`` and ``q`` are the target's and the draft's distributions, shape [V]; the draft
    model drew ``token`` from ``q``.
    """
    return ACCEPTANCE.check(function)


def check_residual(function: Answer) -> Card:
    """Checks ``function(p, q)``: what a rejected token's replacement is drawn from.

    All are distributions, shape [V].
    """
    return RESIDUAL.check(function)


def check_expected_tokens(function: Answer) -> Card:
    """Checks ``function(alpha, gamma)``: the mean tokens that a round commits.

    Each draft is accepted with probability ``alpha``, independently of the others.
    """
    return EXPECTED_TOKENS.check(function)


def check_speed(function: Answer) -> Card:
    """Checks ``function(rounds, seconds)``: the tokens per second of a run.

    ``rounds`` is a list of (drafted, accepted, committed), one triple per round.
    """
    return SPEED.check(function)


def check_round(function: Answer) -> Card:
    """Checks ``function(gamma, draft, target)``: the seconds of a round of PEARL.

    ``draft`` and ``target``: seconds of one pass.
    """
    return ROUND.check(function)


def check_samples(function: Answer) -> Card:
    """Checks ``function(p, found)``: how many samples show a bug.

    A token should come with probability ``p`` and comes with ``found``. Asked for is
    the number of samples at which the difference is two standard errors.
    """
    return SAMPLES.check(function)
