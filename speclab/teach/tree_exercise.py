"""The exercise ``pick``: which of several candidates for one position is written.

In a tree the target is offered several candidates at a position, drawn one after the
other without putting any back. The student's function is run on all that may be drawn,
and over every outcome of its coins, so that the distribution of the token that it gives
is known exactly:

    is the token distributed as the target says?      P(token = t) = p(t)
    is it a candidate as often as it can be?          else the round ends earlier
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from speclib.core.sampling import Row, Tokens, residual
from speclib.errors import BadCall

from .attempt import judge_attempt
from .calls import Failed, as_written, call_guarded
from .card import Card
from .coin import Coin, all_outcomes, draw
from .judge import judge_distributions, whole_number
from .mistakes import Mistake

NewCoin: TypeAlias = Callable[[], Coin]
Pick: TypeAlias = Callable[[list[int], list[Row], Row, NewCoin], int]

EQUAL = 1e-6  # what numbers of single precision are off by is no difference
PRAISE = (
    "In all cases that were walked, with up to three candidates, the token has exactly "
    "the target's distribution, and is a candidate as often as this repository's own "
    "test makes it one."
)


class Outcome(NamedTuple):
    """Which token was given, and whether it was a candidate."""

    token: int
    was_candidate: bool


Distribution: TypeAlias = dict[Outcome, float]


@dataclass(frozen=True)
class Position:
    """A position in the text: what each model says, and how many candidates.

    ``q`` is the draft model's distribution, ``p`` the target model's.
    """

    q: Row
    p: Row
    candidates: int

    def drawn(self) -> Iterator[tuple[Tokens, list[Row], float]]:
        """All that may be drawn: candidates, each one's q, and how probable it is.

        A candidate's q is over the tokens which have not been drawn yet.
        """
        for tokens in permutations(np.flatnonzero(self.q).tolist(), self.candidates):
            left, rows, probability = self.q.copy(), [], 1.0
            for token in tokens:
                row = left / left.sum()
                rows.append(row)
                probability *= float(row[token])
                left[token] = 0
            yield tokens, rows, probability

    def distribution(self, pick: Pick) -> Distribution:
        """What ``pick`` gives, over all that may be drawn and all coins."""
        total: Distribution = {}
        for tokens, rows, probability in self.drawn():
            for outcome, share in self._outcomes(pick, tokens, rows).items():
                total[outcome] = total.get(outcome, 0.0) + probability * share
        return total

    def _outcomes(self, pick: Pick, tokens: Tokens, rows: list[Row]) -> Distribution:
        def run(coin: NewCoin) -> Outcome:
            copies = [row.copy() for row in rows]
            given = call_guarded(pick, list(tokens), copies, self.p.copy(), coin)
            token = self._checked(given)
            return Outcome(token, token in tokens)

        return all_outcomes(run)

    def _checked(self, given: Any) -> int:
        """``given`` as a token. Raises Failed where it is none."""
        if given is None:
            raise Failed("Your function gives nothing. Does it end with a return?")
        try:
            token = whole_number(given)
        except BadCall as error:  # a coin
            raise Failed(f"Your function gives no token: {error}") from None
        except Exception:  # of a student's own class it may be any
            raise Failed(
                f"Your function gives {as_written(given)}: give one token."
            ) from None
        if not 0 <= token < len(self.p):
            raise Failed(f"Your function gives {token}, which is no token here.")
        return token


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


# -- the check -------------------------------------------------------------------------
def check_pick(function: Pick) -> Card:
    """Checks ``function(candidates, q, p, coin)``: the token that is written.

    ``candidates``: tokens, drawn one after the other. ``q``: for each the row that it
    was drawn from, in which those before it have no chance. ``p``: the target's
    distribution. ``coin()`` gives a new random number in [0, 1).
    """

    def judge() -> Card:
        return judge_distributions(
            function, _distributions, _difference, MISTAKES, PRAISE, _without_chance
        )

    return judge_attempt("pick", function, judge)


def _distributions(pick: Pick) -> list[Distribution]:
    """What a function gives at each position."""
    return [position.distribution(pick) for position in POSITIONS]


def _difference(distributions: Sequence[Distribution]) -> str | None:
    """Where a function's token is first not as it should be; None where it is."""
    for position, distribution in zip(POSITIONS, distributions, strict=True):
        difference = _difference_at(position, distribution)
        if difference is not None:
            return difference
    return None


def _without_chance(distributions: Sequence[Distribution]) -> str | None:
    """What may be written wrongly, though only with probability 0; or None."""
    for position, distribution in zip(POSITIONS, distributions, strict=True):
        for outcome in distribution:
            if position.p[outcome.token] == 0:
                return (
                    f"Your function can give {outcome.token}, though with "
                    f"p = {_shown(position.p)} the target model never writes it. That "
                    "takes a coin that is 0 exactly, which happens with probability 0."
                )
    return None


def _difference_at(position: Position, distribution: Distribution) -> str | None:
    """What is wrong with a function's token at one position; None where nothing is."""
    count = position.candidates
    setting = (
        f"Where q = {_shown(position.q)}, p = {_shown(position.p)} and there "
        f"{'is 1 candidate' if count == 1 else f'are {count}'}"
    )
    found = np.zeros(len(position.p))
    for outcome, probability in distribution.items():
        found[outcome.token] += probability
    token = int(np.abs(found - position.p).argmax())
    if abs(found[token] - position.p[token]) > EQUAL:
        return (
            f"{setting}: {token} is written with probability {found[token]:.4f}; the "
            f"target model says {position.p[token]:.4f}."
        )

    hits, possible = _hits(distribution), _hits(position.distribution(pick))
    if hits > possible - EQUAL:
        return None
    return (
        f"Nothing is lost, but it is slower than it could be. {setting}: the token is "
        f"a candidate with probability {hits:.4f}; {possible:.4f} is possible."
    )


def _hits(distribution: Distribution) -> float:
    """How often the token is one of the candidates."""
    hits = 0.0
    for outcome, probability in distribution.items():
        hits += probability * outcome.was_candidate
    return hits


def _shown(distribution: Row) -> str:
    return "(" + ", ".join(f"{probability:.2g}" for probability in distribution) + ")"


# -- the solution, and the mistakes ----------------------------------------------------
def pick(candidates: list[int], q: list[Row], p: Row, coin: NewCoin) -> int:
    """Removal and renormalisation, as in ``verify_tree``."""
    for token, row in zip(candidates, q, strict=True):
        if coin() < p[token] / row[token]:
            return token
        p = residual(p, row)
    return draw(p, coin())


def _p_as_it_was(candidates: list[int], q: list[Row], p: Row, coin: NewCoin) -> int:
    """Each candidate is tested with the whole of p."""
    left = p
    for token, row in zip(candidates, q, strict=True):
        if coin() < p[token] / row[token]:
            return token
        left = residual(p, row)
    return draw(left, coin())


def _first_row(candidates: list[int], q: list[Row], p: Row, coin: NewCoin) -> int:
    """Each candidate is taken for a draw from the first row."""
    for token in candidates:
        if coin() < p[token] / q[0][token]:
            return token
        p = residual(p, q[0])
    return draw(p, coin())


def _one_coin(candidates: list[int], q: list[Row], p: Row, coin: NewCoin) -> int:
    """All candidates share a coin."""
    u = coin()
    for token, row in zip(candidates, q, strict=True):
        if u < p[token] / row[token]:
            return token
        p = residual(p, row)
    return draw(p, coin())


def _replaced_from_p(candidates: list[int], q: list[Row], p: Row, coin: NewCoin) -> int:
    """Where all fail, the token is drawn from p as it was."""
    left = p
    for token, row in zip(candidates, q, strict=True):
        if coin() < left[token] / row[token]:
            return token
        left = residual(left, row)
    return draw(p, coin())


def _not_normalised(candidates: list[int], q: list[Row], p: Row, coin: NewCoin) -> int:
    """What is left of p is not divided by its sum."""
    for token, row in zip(candidates, q, strict=True):
        if coin() < p[token] / row[token]:
            return token
        p = np.maximum(p - row, 0)
    return draw(p, coin())


MISTAKES = (
    Mistake(
        "p not taken off",
        "The first candidate failed, so its row has had its share of p. What is left "
        "of p for the next candidate?",
        _p_as_it_was,
    ),
    Mistake(
        "first row for all",
        "The second candidate was not drawn from the first row: the first candidate "
        "had no chance any more.",
        _first_row,
    ),
    Mistake(
        "reused coin",
        "Do two decisions share a coin? One that rejected a candidate is known to be "
        "large.",
        _one_coin,
    ),
    Mistake(
        "residual from p",
        "Where all candidates fail, is the token drawn from all of p? Candidates then "
        "come too often.",
        _replaced_from_p,
    ),
    Mistake(
        "residual not normalised",
        "What is left of p after a rejection does not add up to 1: it must be divided "
        "by its sum.",
        _not_normalised,
    ),
    Mistake(
        "one candidate tested",
        "What are the other candidates for?",
        lambda candidates, q, p, coin: pick(candidates[:1], q[:1], p, coin),
    ),
    Mistake(
        "candidates ignored",
        "You draw from p and look at no candidate. The text is right, but how seldom "
        "is the token one of the candidates then?",
        lambda candidates, q, p, coin: draw(p, coin()),
    ),
)
