"""Known mistakes in a rule for several candidates at one position, and a correct rule.

A rule for a tree tests the children of a node as candidates and continues below the one
that it accepts, so it can make the same mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from speclab.check.case import Rule
from speclab.check.coin import Coin, NewCoin, draw
from speclab.check.mistakes import Mistake
from speclib.core.sampling import Row, residual

TEXT = -1  # the parent of a tree's first nodes

# The number of the accepted candidate, if any, and the token that is written.
Chosen: TypeAlias = tuple[int | None, int]
Chooser: TypeAlias = Callable[[list[int], list[Row], Row, NewCoin], Chosen]


def _is_below_ratio(u: Coin, token: int, q: Row, p: Row) -> bool:
    return bool(u < p[token] / q[token])


def _from_residual(left: Row, p: Row, coin: NewCoin) -> int:
    return draw(left, coin())


def _from_p(left: Row, p: Row, coin: NewCoin) -> int:
    return draw(p, coin())


def _likeliest_of_residual(left: Row, p: Row, coin: NewCoin) -> int:
    return int(np.argmax(left))


def _likeliest_of_p(left: Row, p: Row, coin: NewCoin) -> int:
    return int(np.argmax(p))


def _chooser(
    accepts: Callable[[Coin, int, Row, Row], bool] = _is_below_ratio,
    left_after: Callable[[Row, Row, int], Row] = lambda p, q, token: residual(p, q),
    replacement: Callable[[Row, Row, NewCoin], int] = _from_residual,
    tests_all_of_p: bool = False,
    row_for_all: bool = False,
    one_coin: bool = False,
    tried: int | None = None,
) -> Chooser:
    """Removal and renormalisation, with one step changed.

    ``left_after(p, q, token)``: what remains of p after ``token`` is rejected.
    ``tried``: the number of candidates that are tested; None: all.
    """

    def choose(candidates: list[int], q: list[Row], p: Row, coin: NewCoin) -> Chosen:
        left = p
        shared = coin() if one_coin else None
        for number, token in enumerate(candidates[:tried]):
            row = q[0 if row_for_all else number]
            u = coin() if shared is None else shared
            if accepts(u, token, row, p if tests_all_of_p else left):
                return number, token
            left = left_after(left, row, token)
        return None, replacement(left, p, coin)

    return choose


def at_one_position(choose: Chooser) -> Rule:
    """The rule for candidates that applies ``choose``."""

    def rule(candidates: list[int], q: list[Row], p: Row, coin: NewCoin) -> int:
        _, token = choose(candidates, q, p, coin)
        return token

    return rule


def down_a_tree(choose: Chooser, by_token: bool = False) -> Rule:
    """The rule for trees that applies ``choose`` to the children of each node.

    ``by_token``: whether the rule also continues below a rejected child if the
    replacement is that child's token.
    """

    def rule(
        tokens: list[int], parents: list[int], q: list[Row], p: list[Row], coin: NewCoin
    ) -> list[int]:
        committed: list[int] = []
        node = TEXT
        while True:
            children = [i for i, parent in enumerate(parents) if parent == node]
            candidates = [tokens[child] for child in children]
            rows = [q[child] for child in children]
            chosen, token = choose(candidates, rows, p[node + 1], coin)
            committed.append(token)
            if chosen is None and by_token and token in candidates:
                chosen = candidates.index(token)
            if chosen is None:
                return committed
            node = children[chosen]

    return rule


def _without(p: Row, q: Row, token: int) -> Row:
    """p without a token, renormalised; p itself if the token has all of its mass."""
    left = p.copy()
    left[token] = 0
    return left / left.sum() if left.sum() > 0 else p


RIGHT = _chooser()
pick = at_one_position(RIGHT)
pick_down_the_tree = down_a_tree(RIGHT)


def _is_likeliest(u: Coin, token: int, q: Row, p: Row) -> bool:
    return token == int(np.argmax(p))


def _is_below_p(u: Coin, token: int, q: Row, p: Row) -> bool:
    return bool(u < p[token])


def _is_below_upside_down(u: Coin, token: int, q: Row, p: Row) -> bool:
    return bool(u * p[token] < q[token]) if p[token] else True


class Wrong(NamedTuple):
    """A mistake: its name, a question for its author, and the ways to make it."""

    name: str
    question: str
    choosers: tuple[Chooser, ...]

    def mistakes(self, rule_of: Callable[[Chooser], Rule]) -> Iterator[Mistake]:
        """The rules with this mistake, for one position or for a tree."""
        for choose in self.choosers:
            yield Mistake(self.name, self.question, rule_of(choose))


# The mistakes that the lesson on trees recognises.
TAUGHT = (
    Wrong(
        "p not taken off",
        "The first candidate failed, so its row has already had its share of p. How "
        "much of p is left for the next candidate?",
        (_chooser(tests_all_of_p=True),),
    ),
    Wrong(
        "first row for all",
        "The second candidate was not drawn from the first row: the first candidate "
        "had probability 0 by then.",
        (_chooser(row_for_all=True),),
    ),
    Wrong(
        "reused coin",
        "Do two decisions share a coin? A coin that rejected a candidate is known to "
        "be large.",
        (_chooser(one_coin=True),),
    ),
    Wrong(
        "residual from p",
        "If all candidates fail, do you draw the token from all of p? Then candidates "
        "come too often.",
        (_chooser(replacement=_from_p),),
    ),
    Wrong(
        "residual not normalised",
        "What is left of p after a rejection does not sum to 1: divide it by its sum.",
        (_chooser(left_after=lambda p, q, token: np.maximum(p - q, 0)),),
    ),
    Wrong(
        "one candidate tested",
        "What are the other candidates for?",
        (_chooser(tried=1),),
    ),
    Wrong(
        "candidates ignored",
        "You draw from p and ignore the candidates. The text is right, but how often "
        "is the drawn token one of the candidates?",
        (_chooser(tried=0),),
    ),
)
REPLACEMENTS = (_from_residual, _from_p, _likeliest_of_residual, _likeliest_of_p)
OTHERS = (
    Wrong(
        "residual from p",
        "If all candidates fail, do you draw the token from all of p? Then candidates "
        "come too often.",
        (
            _chooser(tests_all_of_p=True, replacement=_from_p),
            _chooser(row_for_all=True, replacement=_from_p),
            _chooser(tried=1, replacement=_from_p),
            _chooser(left_after=_without, replacement=_from_p),
            _chooser(_is_below_p, _without, _from_p),
        ),
    ),
    Wrong(
        "rejected token taken out",
        "After a rejection, do you take only the rejected token out of p? Its row has "
        "already had its share of the other tokens as well.",
        (
            _chooser(left_after=_without),
            _chooser(left_after=_without, tests_all_of_p=True),
        ),
    ),
    Wrong(
        "untested drafts",
        "Is a candidate written without a test?",
        (_chooser(lambda u, token, q, p: True),),
    ),
    Wrong(
        "ratio upside down",
        "Which of the two models has the last word? Look at what is divided by what.",
        (_chooser(_is_below_upside_down),),
    ),
    Wrong(
        "q forgotten in the test",
        "The draft model has already proposed this token with probability q(x): "
        "compare the coin with p(x) / q(x).",
        (
            _chooser(_is_below_p),
            _chooser(_is_below_p, tests_all_of_p=True),
            _chooser(_is_below_p, replacement=_from_p),
            _chooser(_is_below_p, replacement=_from_p, tests_all_of_p=True),
        ),
    ),
    Wrong(
        "greedy test when sampling",
        "A candidate need not be the target's likeliest token: at temperature 1 the "
        "target writes other tokens too. With what probability does it keep this one?",
        (
            *(_chooser(_is_likeliest, replacement=each) for each in REPLACEMENTS),
            *(
                _chooser(_is_likeliest, replacement=each, tests_all_of_p=True)
                for each in REPLACEMENTS
            ),
        ),
    ),
    Wrong(
        "likeliest token for a replacement",
        "If all candidates fail, the token is drawn at random. If you always take the "
        "likeliest token, it is written too often: which distribution should you draw "
        "from, and with which coin?",
        (
            _chooser(replacement=_likeliest_of_residual),
            _chooser(replacement=_likeliest_of_p),
        ),
    ),
)


def mistakes_of(
    wrong: Iterable[Wrong], rule_of: Callable[[Chooser], Rule]
) -> tuple[Mistake, ...]:
    """The rules with these mistakes."""
    return tuple(mistake for each in wrong for mistake in each.mistakes(rule_of))


MISTAKES = mistakes_of(TAUGHT, at_one_position)
AT_ONE_POSITION = (*MISTAKES, *mistakes_of(OTHERS, at_one_position))
IN_A_TREE = (
    *mistakes_of((*TAUGHT, *OTHERS), down_a_tree),
    *mistakes_of((*TAUGHT, *OTHERS), partial(down_a_tree, by_token=True)),
)
