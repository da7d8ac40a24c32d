"""Several candidates for one position: what a rule for them is tried on.

In a tree the target is offered several candidates at a position, drawn one after the
other: none is put back, or all are. A rule for one such position is called as
``rule(candidates, q, p, coin)``:

    candidates   tokens, in the order in which they were drawn, a list
    q            [n, V], for each the row that it was drawn from: those before it have
                 no chance in it, unless they were put back
    p            [V], the target's row
    coin         coin() gives a new random number in [0, 1)

and returns one token. It is run on all that may be drawn, and over every outcome of its
coins, so that the distribution of the token that it gives is known exactly:

    is the token distributed as the target says?      P(token = t) = p(t)
    is it a candidate as often as it can be?          else the round ends earlier
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
    said_of,
    shown,
    told_apart,
    told_the_chances,
)
from speclab.check.coin import NewCoin, all_outcomes
from speclib.core.sampling import Row, Tokens


class Outcome(NamedTuple):
    """Which token was given, and whether it was a candidate."""

    token: int
    was_candidate: bool


Distribution: TypeAlias = dict[Outcome, float]


@dataclass(frozen=True)
class Position:
    """A position in the text: what each model says, and how many candidates.

    ``q`` is the draft model's distribution, ``p`` the target model's. ``put_back``:
    whether a candidate may be drawn again. ``choice``: how candidates are chosen, one
    of ``case.CHOICES``.
    """

    q: Row
    p: Row
    candidates: int
    put_back: bool = False
    choice: str = "q"

    @property
    def name(self) -> str:
        """What it is, for a list of cases."""
        count = self.candidates
        candidates = "1 candidate" if count == 1 else f"{count} candidates"
        return f"{len(self.p)} tokens, {candidates}"

    def drawn(self) -> Iterator[tuple[Tokens, list[Row], float]]:
        """All that may be drawn: candidates, each one's q, and how probable it is.

        A candidate's q is over the tokens which have not been drawn yet, or over all.
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
        """What a rule gives, over all that may be drawn and all coins.

        Raises Failed where it gives what is no token, and NotRepeatable where it takes
        chance from elsewhere than its coins.
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
        """Which token is not as probable as it should be; None where all are."""
        differences = np.abs(self._found(distribution) - self.p)
        token = int(differences.argmax())
        if differences[token] <= EQUAL:
            return None
        found = float(self._found(distribution)[token])
        is_so, should_be = told_apart(found, float(self.p[token]))
        return (
            f"{self.words}: {token} is written with probability {is_so}; the target "
            f"model says {should_be}."
        )

    def impossible(self, distribution: Distribution) -> str | None:
        """What may be written, and the target never writes."""
        for outcome, probability in distribution.items():
            if self.p[outcome.token] == 0:
                return (
                    f"Your function can give {outcome.token}, though with "
                    f"p = {shown(self.p)} the target model never writes it. "
                    f"{describe_chance(probability)}"
                )
        return None

    def largest_error(self, distribution: Distribution) -> float:
        """By how much the probability of some event is off, at most."""
        return float(np.abs(self._found(distribution) - self.p).sum()) / 2

    def _found(self, distribution: Distribution) -> Row:
        found = np.zeros(len(self.p))
        for outcome, probability in distribution.items():
            found[outcome.token] += probability
        return found

    @property
    def words(self) -> str:
        """What is the case here, at the beginning of a sentence."""
        count = self.candidates
        there_are = "there is 1 candidate" if count == 1 else f"there are {count}"
        if count != 1:
            there_are += " candidates"
        models = f"Where q = {shown(self.q)}, p = {shown(self.p)} and {there_are}"
        return models + said_of(self.choice)

    unit: ClassVar[str] = "of all tokens are candidates"

    def rate(self, distribution: Distribution) -> float:
        """How often the token is one of the candidates."""
        share = 0.0
        for outcome, probability in distribution.items():
            share += probability * outcome.was_candidate
        return share

    def best_rates(self) -> dict[str, float]:
        """How often it is one by our own rule; others may do better."""
        return {"by removal and renormalisation": self.most_hits}

    @cached_property
    def most_hits(self) -> float:
        """How often the token is a candidate by removal and renormalisation."""
        return self.rate(self.distribution(told_the_chances(pick, self.choice)))


def _position(q: Sequence[float], p: Sequence[float], candidates: int) -> Position:
    return Position(np.array(q), np.array(p), candidates)


WIDE_Q = (0.5, 0.2, 0.1, 0.1, 0.1)
WIDE_P = (0.05, 0.25, 0.25, 0.25, 0.2)
POSITIONS = (
    _position((0.5, 0.5), (0.8, 0.2), 1),
    _position((0.5, 0.3, 0.2), (0.2, 0.5, 0.3), 2),
    _position((0.3, 0.3, 0.4), (0.6, 0.4, 0.0), 2),
    _position((0.4, 0.3, 0.2, 0.1), (0.1, 0.2, 0.3, 0.4), 3),
    # Here several tokens are left of p after each rejection.
    _position(WIDE_Q, WIDE_P, 1),
    _position(WIDE_Q, WIDE_P, 3),
)
# The target is sure of its token: each one in turn.
GREEDY_POSITIONS = tuple(
    _position((0.5, 0.3, 0.2), tuple(row), 2) for row in np.eye(3).tolist()
)
