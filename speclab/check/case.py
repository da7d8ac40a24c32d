"""Test cases for a rule: models over a few tokens, and all drafts they can propose.

A case contains both models completely. So we can compute the exact distribution of what
a rule commits, by summing over all possible drafts and every outcome of the rule's
coins. Then we compare this distribution with the target's, token by token:

    does the 1st token have the target's distribution?  P(1st = t) = p(t)
    does the 2nd, if the rule commits one?              P(2nd = t | 1st) = p(t | 1st)
    ...
    can the rule write something that the target never writes?

If the rule passes, a text written pass by pass has the target's own distribution,
regardless of how many tokens each pass commits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np

from speclab.check.answers import committed_in
from speclab.check.calls import call_guarded
from speclab.check.coin import NewCoin, all_outcomes
from speclib.core.sampling import Row, Tokens
from speclib.errors import BadCall

Rule: TypeAlias = Callable[..., Any]
Distribution: TypeAlias = dict[Tokens, float]  # committed tokens -> probability
Model: TypeAlias = Mapping[Tokens, Row]  # tokens so far -> distribution of the next one
Array: TypeAlias = Callable[[Any], Any]  # converts the distributions for a rule
Proposal = TypeVar("Proposal")

# How drafts are chosen; q is the draft model's distribution of the next token.
CHOICES = {
    "q": "drawn from q",
    "argmax": "the likeliest token of q",
    "top-k": "drawn from the two likeliest tokens of q",
}
TOP_K = 2
EQUAL = 1e-6  # ignores rounding in single precision
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


@dataclass(frozen=True)
class Case(ABC, Generic[Proposal]):
    """A draft model and a target model over a few tokens.

    ``draft`` and ``target`` map each possible draft to the distribution of the next
    token. ``longest``: the most tokens that one target pass can decide. ``choice``: how
    drafts are chosen, one of CHOICES; in all of them, q is the draft model's row.
    """

    name: str
    draft: Model
    target: Model
    choice: str = field(default="q", kw_only=True)

    @property
    def vocab(self) -> int:
        return len(self.target[()])

    @property
    @abstractmethod
    def longest(self) -> int: ...

    @abstractmethod
    def proposals(self) -> Iterator[tuple[Proposal, float]]:
        """All possible proposals, with their probabilities."""

    @abstractmethod
    def sample(self, random: np.random.Generator) -> Proposal:
        """A proposal, drawn at random."""

    @abstractmethod
    def tokens_of(self, proposal: Proposal) -> Tokens:
        """The drafted tokens of a proposal."""

    @abstractmethod
    def arguments(self, proposal: Proposal, array: Array) -> tuple[Any, ...]:
        """A rule's arguments except the coin; ``array`` converts the rows."""

    def distribution(self, rule: Rule, array: Array = np.array) -> Distribution:
        """The distribution of what ``rule`` commits, over all proposals and all coins.

        Raises Failed if the rule returns something other than tokens, and NotRepeatable
        if it draws random numbers other than its coins.
        """
        total: Distribution = {}
        for proposal, probability in self.proposals():
            for committed, share in self.outcomes(rule, proposal, array).items():
                total[committed] = total.get(committed, 0.0) + probability * share
        return total

    def outcomes(
        self, rule: Rule, proposal: Proposal, array: Array = np.array
    ) -> Distribution:
        """The same distribution for one proposal."""
        return all_outcomes(lambda coin: self.committed(rule, proposal, coin, array))

    def committed(
        self, rule: Rule, proposal: Proposal, coin: NewCoin, array: Array = np.array
    ) -> Tokens:
        """What ``rule`` commits for one proposal, with these coins."""
        given = call_guarded(rule, *self.arguments(proposal, array), coin)
        return committed_in(given, self.tokens_of(proposal), self.longest, self.vocab)

    # -- comparisons with the target ---------------------------------------------------
    unit: ClassVar[str] = "tokens per pass"

    def difference(self, distribution: Distribution) -> str | None:
        """The first position where the committed tokens differ from the target."""
        return first_difference(self, distribution)

    def impossible(self, distribution: Distribution) -> str | None:
        """A text that the rule can commit but the target never writes."""
        return impossible_token(self, distribution)

    def largest_error(self, distribution: Distribution) -> float:
        """The largest error in the probability of any event."""
        return largest_error(self, distribution)

    def rate(self, distribution: Distribution) -> float:
        """The mean number of tokens that a pass commits."""
        return mean_length(distribution)

    @abstractmethod
    def best_rates(self) -> dict[str, float]:
        """The most tokens per pass that are possible on average, by kind of rule."""


# -- comparisons with the target -------------------------------------------------------
def first_difference(
    case: Case[Any], distribution: Mapping[Tokens, float]
) -> str | None:
    """The first position where the committed tokens differ from the target."""
    for position in range(case.longest):
        for before in product(range(case.vocab), repeat=position):
            counts = _following(distribution, before, case.vocab)
            if counts.sum() < EQUAL:
                continue
            found = counts / counts.sum()
            wanted = case.target[before]
            token = int(np.abs(found - wanted).argmax())
            if abs(found[token] - wanted[token]) > EQUAL:
                return _describe_difference(
                    case, before, token, float(found[token]), float(wanted[token])
                )
    return None


def _following(distribution: Mapping[Tokens, float], before: Tokens, vocab: int) -> Row:
    """For each token, the probability that it is committed right after ``before``."""
    position = len(before)
    counts = np.zeros(vocab)
    for committed, probability in distribution.items():
        if len(committed) > position and committed[:position] == before:
            counts[committed[position]] += probability
    return counts


def _describe_difference(
    case: Case[Any], before: Tokens, token: int, found: float, wanted: float
) -> str:
    token_in_order = f"the {ORDINALS[len(before)]} token"
    models = f"Where q = {shown(case.draft[()])} and p = {shown(case.target[()])}"
    models += describe_choice(case.choice)
    if before:
        models += f", and after {listed(before)} p = {shown(case.target[before])}"
    is_so, should_be = format_distinctly(found, wanted)
    return (
        f"{models}: {token_in_order} is {token} with probability {is_so}; the "
        f"target model says {should_be}."
    )


def impossible_token(
    case: Case[Any], distribution: Mapping[Tokens, float]
) -> str | None:
    """A token that the rule can commit but the target never writes."""
    for committed in sorted(distribution):
        for position, token in enumerate(committed):
            before = committed[:position]
            if before in case.target and case.target[before][token] == 0:
                return (
                    f"Your function can commit {listed(committed)}, though with "
                    f"p = {shown(case.target[before])} the target model never writes "
                    f"{token}. {describe_chance(distribution[committed])}"
                )
    return None


def describe_chance(probability: float) -> str:
    """The probability of something that should never happen, as a sentence."""
    if probability > 0:
        return f"That happens with probability {probability:.1e}."
    return "That requires a coin that is exactly 0, which has probability 0."


def largest_error(case: Case[Any], distribution: Mapping[Tokens, float]) -> float:
    """The largest error in the probability of any event.

    This is the total variation between two distributions over texts of ``longest``
    tokens: the target's own, and the committed tokens continued by the target.
    """
    written: Distribution = {}
    for committed, probability in distribution.items():
        for text, share in _continued(case, committed):
            written[text] = written.get(text, 0.0) + probability * share
    differences = 0.0
    for text, wanted in _continued(case, ()):
        differences += abs(written.pop(text, 0.0) - wanted)
    differences += sum(written.values())  # texts that the target never writes
    return differences / 2


def _continued(case: Case[Any], beginning: Tokens) -> Iterator[tuple[Tokens, float]]:
    """The target's continuations of ``beginning`` up to ``longest`` tokens."""
    if len(beginning) == case.longest:
        yield beginning, 1.0
        return
    row = case.target[beginning]
    for token in np.flatnonzero(row):
        for text, share in _continued(case, (*beginning, int(token))):
            yield text, float(row[token]) * share


def mean_length(distribution: Mapping[Tokens, float]) -> float:
    """The mean number of tokens that a pass commits."""
    mean = 0.0
    for committed, probability in distribution.items():
        mean += len(committed) * probability
    return mean


def drawn_from(row: Row, random: np.random.Generator) -> int:
    """A token drawn at random from a row."""
    return int(random.choice(len(row), p=row))


# -- how drafts are chosen -------------------------------------------------------------
def chances(row: Row, choice: str) -> Row:
    """The probability of drafting each token if q is ``row``.

    The first of several equally likely tokens counts as the likeliest.
    """
    if choice == "q":
        return row
    likeliest = np.argsort(-row, kind="stable")[: 1 if choice == "argmax" else TOP_K]
    chosen = np.zeros_like(row)
    chosen[likeliest] = row[likeliest]
    share: Row = chosen / chosen.sum()
    return share


def with_true_q(rule: Rule, choice: str) -> Rule:
    """The rule, called with the true draft probabilities as q."""

    def run(*arguments: Any) -> Any:
        *before, q, p, coin = arguments
        return rule(*before, [chances(row, choice) for row in q], p, coin)

    return run


def describe_choice(choice: str) -> str:
    """How drafts are chosen, as the end of a sentence; "" if they are drawn from q."""
    return "" if choice == "q" else f", and each draft is {CHOICES[choice]}"


def format_distinctly(one: float, other: float) -> tuple[str, str]:
    """Two probabilities, each with enough digits to differ, at least four."""
    for digits in range(4, 9):
        first, second = f"{one:.{digits}f}", f"{other:.{digits}f}"
        if first != second:
            break
    return first, second


# -- words, and models -----------------------------------------------------------------
def listed(tokens: Tokens) -> str:
    return "(" + ", ".join(str(token) for token in tokens) + ")"


def shown(distribution: Row) -> str:
    return "(" + ", ".join(f"{probability:.2g}" for probability in distribution) + ")"


def model_of(rows: Mapping[Tokens, tuple[float, ...]]) -> Model:
    """A model from the next-token distribution after each text."""
    return {tokens: np.array(row) for tokens, row in rows.items()}


def random_models(
    vocab: int, length: int, seed: int, steepness: int = 1, parts: int = 100
) -> tuple[Model, Model]:
    """A random draft and target, whose probabilities differ widely between tokens.

    Both cover each text of up to ``length`` tokens. A token's probability is at least
    about 2 / ``parts``. A higher ``steepness`` spreads the probabilities further.
    """
    random = np.random.default_rng(seed)
    models: list[Model] = []
    for _ in range(2):
        model: dict[Tokens, Row] = {}
        for so_far in range(length + 1):
            for tokens in product(range(vocab), repeat=so_far):
                weights = random.exponential(size=vocab) ** steepness
                shares = np.round((parts - 6) * weights / weights.sum()) + 2
                model[tokens] = shares / shares.sum()
        models.append(model)
    return models[0], models[1]


class DrawnOnDemand(Mapping[Tokens, Row]):
    """A model of any size, whose random rows are drawn on demand.

    A text always gets the same row.
    """

    def __init__(self, vocab: int, seed: int):
        self._vocab = vocab
        self._seed = seed

    def __getitem__(self, tokens: Tokens) -> Row:
        random = np.random.default_rng((self._seed, *tokens))
        weights = random.exponential(size=self._vocab)
        row: Row = weights / weights.sum()
        return row

    def __iter__(self) -> Iterator[Tokens]:
        raise BadCall("a model whose rows are drawn on demand cannot list its texts")

    def __len__(self) -> int:
        return 0
