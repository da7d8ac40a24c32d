"""Test cases for a rule that chooses among several candidates at one position.

A draft tree offers the target several candidates at a position, drawn one after the
other, with or without replacement. A rule for one such position is called as
``rule(candidates, q, p, coin)``:

    candidates   a list of tokens, in the order in which they were drawn
    q            [n, V], the row (distribution) that each was drawn from; without
                 replacement, earlier candidates have probability 0 in it
    p            [V], the target's row
    coin         coin() returns a new random number in [0, 1)

and returns one token. We run it on all possible candidates, with every outcome of its
coins. This gives the exact distribution of the token:

    does the token have the target's distribution?    P(token = t) = p(t)
    is it a candidate as often as possible?           otherwise rounds end early
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from speclab.check.answers import token_in
from speclab.check.calls import call_guarded
from speclab.check.candidate_mistakes import pick
from speclab.check.case import (
    EQUAL,
    Array,
    Rule,
    chances,
    describe_chance,
    describe_choice,
    format_distinctly,
    shown,
    with_true_q,
)
from speclab.check.coin import NewCoin, all_outcomes
from speclib.core.sampling import Row, Tokens


class Outcome(NamedTuple):
    """The token that a rule returned, and whether it was a candidate."""

    token: int
    was_candidate: bool


Distribution: TypeAlias = dict[Outcome, float]


@dataclass(frozen=True)
class Position:
    """A position in the text: both models' distributions, and a number of candidates.

    ``q`` is the draft's distribution, ``p`` the target's. ``put_back``: whether
    candidates are drawn with replacement. ``choice``: how candidates are chosen, one of
    ``case.CHOICES``.
    """

    q: Row
    p: Row
    candidates: int
    put_back: bool = False
    choice: str = "q"

    @property
    def name(self) -> str:
        """The name under which the case is listed."""
        count = self.candidates
        candidates = "1 candidate" if count == 1 else f"{count} candidates"
        return f"{len(self.p)} tokens, {candidates}"

    def drawn(self) -> Iterator[tuple[Tokens, list[Row], float]]:
        """All possible candidates, with each one's row of q, and their probability.

        Without replacement, q covers only tokens that have not been drawn yet.
        """
        yield from self._drawn_after((), [], 1.0)

    def _drawn_after(
        self, tokens: Tokens, rows: list[Row], probability: float
    ) -> Iterator[tuple[Tokens, list[Row], float]]:
        if len(tokens) == self.candidates:
            yield tokens, rows, probability
            return
        left = self.q.copy()
        if not self.put_back:
            left[list(tokens)] = 0
        row = left / left.sum()
        shares = chances(row, self.choice)
        for token in np.flatnonzero(shares).tolist():
            share = probability * float(shares[token])
            yield from self._drawn_after((*tokens, token), [*rows, row], share)

    def distribution(self, rule: Rule, array: Array = np.array) -> Distribution:
        """The distribution of a rule's outcomes, over all candidates and all coins.

        Raises Failed if the rule returns something other than a token, and
        NotRepeatable if it draws random numbers other than its coins.
        """
        total: Distribution = {}
        for tokens, rows, probability in self.drawn():
            for outcome, share in self._outcomes(rule, tokens, rows, array).items():
                total[outcome] = total.get(outcome, 0.0) + probability * share
        return total

    def _outcomes(
        self, rule: Rule, tokens: Tokens, rows: list[Row], array: Array
    ) -> Distribution:
        def run(coin: NewCoin) -> Outcome:
            q, p = array(np.stack(rows)), array(self.p.copy())
            given = call_guarded(rule, list(tokens), q, p, coin)
            token = token_in(given, len(self.p))
            return Outcome(token, token in tokens)

        return all_outcomes(run)

    # -- comparisons -------------------------------------------------------------------
    def difference(self, distribution: Distribution) -> str | None:
        """The token whose probability is furthest off; None if all are right."""
        differences = np.abs(self._found(distribution) - self.p)
        token = int(differences.argmax())
        if differences[token] <= EQUAL:
            return None
        found = float(self._found(distribution)[token])
        is_so, should_be = format_distinctly(found, float(self.p[token]))
        return (
            f"{self.words}: {token} is written with probability {is_so}; the target "
            f"model says {should_be}."
        )

    def impossible(self, distribution: Distribution) -> str | None:
        """A token that the rule can write but the target never writes."""
        for outcome, probability in distribution.items():
            if self.p[outcome.token] == 0:
                return (
                    f"Your function can return {outcome.token}, though with "
                    f"p = {shown(self.p)} the target model never writes it. "
                    f"{describe_chance(probability)}"
                )
        return None

    def largest_error(self, distribution: Distribution) -> float:
        """The largest error in the probability of any event."""
        return float(np.abs(self._found(distribution) - self.p).sum()) / 2

    def _found(self, distribution: Distribution) -> Row:
        found = np.zeros(len(self.p))
        for outcome, probability in distribution.items():
            found[outcome.token] += probability
        return found

    @property
    def words(self) -> str:
        """The position in words, to begin a sentence with."""
        count = self.candidates
        there_are = "there is 1 candidate" if count == 1 else f"there are {count}"
        if count != 1:
            there_are += " candidates"
        models = f"Where q = {shown(self.q)}, p = {shown(self.p)} and {there_are}"
        return models + describe_choice(self.choice)

    unit: ClassVar[str] = "of all tokens are candidates"

    def rate(self, distribution: Distribution) -> float:
        """The probability that the token is one of the candidates."""
        share = 0.0
        for outcome, probability in distribution.items():
            share += probability * outcome.was_candidate
        return share

    def best_rates(self) -> dict[str, float]:
        """The rate of our own rule. Other rules may do better."""
        return {"by removal and renormalisation": self.most_hits}

    @cached_property
    def most_hits(self) -> float:
        """The rate of removal and renormalisation."""
        return self.rate(self.distribution(with_true_q(pick, self.choice)))


def _position(q: Sequence[float], p: Sequence[float], candidates: int) -> Position:
    return Position(np.array(q), np.array(p), candidates)


WIDE_Q = (0.5, 0.2, 0.1, 0.1, 0.1)
WIDE_P = (0.05, 0.25, 0.25, 0.25, 0.2)
POSITIONS = (
    _position((0.5, 0.5), (0.8, 0.2), 1),
    _position((0.5, 0.3, 0.2), (0.2, 0.5, 0.3), 2),
    _position((0.3, 0.3, 0.4), (0.6, 0.4, 0.0), 2),
    _position((0.4, 0.3, 0.2, 0.1), (0.1, 0.2, 0.3, 0.4), 3),
    # Here several tokens of p are left after each rejection.
    _position(WIDE_Q, WIDE_P, 1),
    _position(WIDE_Q, WIDE_P, 3),
)
# In each case, the target gives a different token probability 1.
GREEDY_POSITIONS = tuple(
    _position((0.5, 0.3, 0.2), tuple(row), 2) for row in np.eye(3).tolist()
)
