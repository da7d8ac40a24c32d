"""Known mistakes in a rule for drafts in a line, and a correct rule.

Each mistake is a complete rule that makes it. If a user's rule has the same results in
every case, the answer says that it behaves like this mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from speclab.check.case import Rule
from speclab.check.coin import Coin, NewCoin, draw
from speclab.check.mistakes import Mistake
from speclib.core.sampling import Row, residual


def verify(drafted: list[int], q: list[Row], p: list[Row], coin: NewCoin) -> list[int]:
    """Leviathan et al. 2023, Algorithm 1, lines 4-13."""
    committed: list[int] = []
    for token, q_row, p_row in zip(drafted, q, p, strict=False):
        if not coin() < p_row[token] / q_row[token]:
            replacement = draw(residual(p_row, q_row), coin())
            return [*committed, replacement]
        committed.append(token)
    bonus = draw(p[-1], coin())
    return [*committed, bonus]


# The arguments: the rejected draft, its rows of q and p, the coin that rejected it, and
# the function that returns new coins.
Replacement: TypeAlias = Callable[[int, Row, Row, Coin, NewCoin], int]
Bonus: TypeAlias = Callable[[list[Row], NewCoin], list[int]]


def _from_the_residual(token: int, q: Row, p: Row, u: Coin, coin: NewCoin) -> int:
    return draw(residual(p, q), coin())


def _drawn_bonus(p: list[Row], coin: NewCoin) -> list[int]:
    return [draw(p[-1], coin())]


def _variant(
    accepts: Callable[..., bool] = lambda u, token, q, p: u < p[token] / q[token],
    replacement: Replacement = _from_the_residual,
    bonus: Bonus = _drawn_bonus,
    row_of_test: int = 0,
    position_of_q: Callable[[int, int], int] = lambda position, gamma: position,
    tests_with_one_coin: bool = False,
    ends_at_rejection: bool = True,
) -> Rule:
    """``verify`` with one step changed.

    ``row_of_test``: each draft is tested with the row of p this many positions later.
    ``position_of_q(position, gamma)``: the position whose row of q tests a draft.
    """

    def run(drafted: list[int], q: list[Row], p: list[Row], coin: NewCoin) -> list[int]:
        committed: list[int] = []
        u = coin()
        for position, token in enumerate(drafted):
            p_row = p[position + row_of_test]
            q_row = q[position_of_q(position, len(drafted))]
            if position and not tests_with_one_coin:
                u = coin()
            if accepts(u, token, q_row, p_row):
                committed.append(token)
                continue
            committed.append(replacement(token, q_row, p_row, u, coin))
            if ends_at_rejection:
                return committed
        return committed + bonus(p, coin)

    return run


def _third_untested(
    drafted: list[int], q: list[Row], p: list[Row], coin: NewCoin
) -> list[int]:
    """Tests the first two drafts, and commits the others untested."""
    committed = verify(drafted[:2], q[:2], p[:3], coin)
    if len(drafted) < 3 or len(committed) < 3:
        return committed
    return [*drafted, draw(p[-1], coin())]


def _all_drafts_tested(
    place_of_last: Callable[[list[int], int], int | None],
) -> Rule:
    """Continues after a rejection and keeps every draft that passes.

    ``place_of_last(rejected, kept)``: after a rejection, the position of the draft from
    whose residual the last token is drawn; None: it is drawn from the last row of p.
    """

    def run(drafted: list[int], q: list[Row], p: list[Row], coin: NewCoin) -> list[int]:
        kept: list[int] = []
        rejected: list[int] = []
        for place, token in enumerate(drafted):
            if coin() < p[place][token] / q[place][token]:
                kept.append(token)
            else:
                rejected.append(place)
        last = place_of_last(rejected, len(kept)) if rejected else None
        row = p[-1] if last is None else residual(p[last], q[last])
        return [*kept, draw(row, coin())]

    return run


def _each_replaced(
    drafted: list[int], q: list[Row], p: list[Row], coin: NewCoin
) -> list[int]:
    """Continues after a replacement, and adds a bonus if nothing was rejected."""
    committed = []
    was_rejected = False
    for token, q_row, p_row in zip(drafted, q, p, strict=False):
        if coin() < p_row[token] / q_row[token]:
            committed.append(token)
        else:
            committed.append(draw(residual(p_row, q_row), coin()))
            was_rejected = True
    return committed if was_rejected else [*committed, draw(p[-1], coin())]


def _replaced_from_the_next_row(
    drafted: list[int], q: list[Row], p: list[Row], coin: NewCoin
) -> list[int]:
    for place, token in enumerate(drafted):
        if not coin() < p[place][token] / q[place][token]:
            return [*drafted[:place], draw(p[place + 1], coin())]
    return [*drafted, draw(p[-1], coin())]


def _rejected_kept(
    drafted: list[int], q: list[Row], p: list[Row], coin: NewCoin
) -> list[int]:
    for place, token in enumerate(drafted):
        if not coin() < p[place][token] / q[place][token]:
            replacement = draw(residual(p[place], q[place]), coin())
            return [*drafted[: place + 1], replacement]
    return [*drafted, draw(p[-1], coin())]


def _with_bonus_after_a_rejection(row_of_bonus: Callable[[int], int]) -> Rule:
    """Adds one more token after the replacement.

    ``row_of_bonus(written)``: the row of p from which this token is drawn.
    """

    def run(drafted: list[int], q: list[Row], p: list[Row], coin: NewCoin) -> list[int]:
        committed = verify(drafted, q, p, coin)
        if len(committed) > len(drafted):
            return committed
        return [*committed, draw(p[row_of_bonus(len(committed))], coin())]

    return run


def _likeliest_of_p(token: int, q: Row, p: Row, u: Coin, coin: NewCoin) -> int:
    return int(p.argmax())


def _likeliest_of_the_residual(
    token: int, q: Row, p: Row, u: Coin, coin: NewCoin
) -> int:
    return int(residual(p, q).argmax())


def _from_p(token: int, q: Row, p: Row, u: Coin, coin: NewCoin) -> int:
    return draw(p, coin())


def _from_p_without_the_token(is_normalised: bool) -> Replacement:
    """A replacement drawn from p without the rejected token."""

    def replacement(token: int, q: Row, p: Row, u: Coin, coin: NewCoin) -> int:
        others = p.copy()
        others[token] = 0
        return draw(others / others.sum() if is_normalised else others, coin())

    return replacement


def _from(row_of: Callable[[Row, Row], Row], is_normalised: bool = True) -> Replacement:
    """A replacement drawn from ``row_of(q, p)``, normalised or not."""

    def replacement(token: int, q: Row, p: Row, u: Coin, coin: NewCoin) -> int:
        row = row_of(q, p)
        return draw(row / row.sum() if is_normalised else row, coin())

    return replacement


def _likeliest_bonus(p: list[Row], coin: NewCoin) -> list[int]:
    return [int(p[-1].argmax())]


def _is_likeliest(u: Coin, token: int, q: Row, p: Row) -> bool:
    return token == int(p.argmax())


def _greedy_test(
    replacement: Replacement = _from_the_residual, bonus: Bonus = _drawn_bonus
) -> Mistake:
    return Mistake(
        "greedy test when sampling",
        "A draft need not be the target's likeliest token: at temperature 1 the target "
        "writes other tokens too. With what probability does it keep this one?",
        _variant(_is_likeliest, replacement, bonus),
    )


def _likeliest_replacement(
    replacement: Replacement, bonus: Bonus = _drawn_bonus
) -> Mistake:
    return Mistake(
        "likeliest token for a replacement",
        "The replacement of a rejected draft is drawn at random. If you always take "
        "the likeliest token, it is written too often: which distribution should you "
        "draw from, and with which coin?",
        _variant(replacement=replacement, bonus=bonus),
    )


def _token_taken_out(is_normalised: bool) -> Mistake:
    return Mistake(
        "rejected token taken out of p",
        "Do you draw the replacement from p without the rejected token? Each of the "
        "others is drafted too rarely by its own amount. Which part of p is missing?",
        _variant(replacement=_from_p_without_the_token(is_normalised)),
    )


def _without_sign(is_normalised: bool) -> Mistake:
    return Mistake(
        "difference without sign",
        "Do you draw the replacement from |p - q|? If the draft model likes a token "
        "more than the target model does, it is accepted often enough: use 0 for it.",
        _variant(replacement=_from(lambda q, p: np.abs(p - q), is_normalised)),
    )


def _upside_down(is_normalised: bool) -> Mistake:
    return Mistake(
        "upside down",
        "Do you draw the replacement from q - p? These tokens are drafted too often. "
        "Which tokens are drafted too rarely?",
        _variant(replacement=_from(lambda q, p: np.maximum(q - p, 0), is_normalised)),
    )


def _going_on(rule: Rule) -> Mistake:
    return Mistake(
        "going on after a rejection",
        "The drafts after a rejected one follow a text that is never written: what "
        "happens to them?",
        rule,
    )


def _bonus_after_a_rejection(row_of_bonus: Callable[[int], int]) -> Mistake:
    return Mistake(
        "bonus after a rejection",
        "Do you add a bonus even after a replacement? The rows after a rejected draft "
        "follow a text that is never written.",
        _with_bonus_after_a_rejection(row_of_bonus),
    )


MISTAKES = (
    Mistake(
        "reused coin",
        "Do two decisions share a coin? The number that rejected a draft is known to "
        "be large, so it must not draw the replacement, too.",
        _variant(replacement=lambda token, q, p, u, coin: draw(residual(p, q), u)),
    ),
    Mistake(
        "one coin for all tests",
        "Do two decisions share a coin? Each draft needs its own.",
        _variant(tests_with_one_coin=True),
    ),
    Mistake(
        "residual not normalised",
        "What is left of p after the accepted drafts does not sum to 1: divide it by "
        "its sum before you draw from it.",
        _variant(
            replacement=lambda token, q, p, u, coin: draw(np.maximum(p - q, 0), coin())
        ),
    ),
    Mistake(
        "residual from p",
        "Is the replacement drawn from p itself? Tokens that the draft model proposes "
        "then come too often: once as accepted drafts, and again as replacements.",
        _variant(replacement=_from_p),
    ),
    Mistake(
        "non-strict test",
        "coin() can be 0 exactly. Which of < and <= never accepts a token whose "
        "p(x) is 0?",
        _variant(accepts=lambda u, token, q, p: u <= p[token] / q[token]),
    ),
    Mistake(
        "row off by one",
        "Is each draft tested with the row after it? Row i of p says what the target "
        "would have written at the position of draft i.",
        _variant(row_of_test=1),
    ),
    Mistake(
        "q of another place",
        "Which row of q was each draft drawn from? The first draft's row says nothing "
        "about the second draft.",
        _variant(position_of_q=lambda position, gamma: 0),
    ),
    Mistake(
        "q of another place",
        "Which row of q was each draft drawn from? The last draft's row says nothing "
        "about the drafts before it.",
        _variant(position_of_q=lambda position, gamma: gamma - 1),
    ),
    Mistake(
        "q of another place",
        "Which row of q was the third draft drawn from?",
        _variant(position_of_q=lambda position, gamma: min(position, 1)),
    ),
    Mistake(
        "later drafts untested",
        "You test the first two drafts. What about the third one?",
        _third_untested,
    ),
    Mistake(
        "bonus forgotten",
        "When all drafts are accepted, the target's pass has one unused row: what is "
        "it for?",
        _variant(bonus=lambda p, coin: []),
    ),
    Mistake(
        "bonus from the wrong row",
        "Which row of p follows the last draft?",
        _variant(bonus=lambda p, coin: [draw(p[-2], coin())]),
    ),
    Mistake(
        "untested drafts",
        "Are drafts committed without a test?",
        _variant(accepts=lambda u, token, q, p: True),
    ),
    Mistake(
        "ratio upside down",
        "Which of the two models has the last word? Look at what is divided by what.",
        _variant(
            accepts=lambda u, token, q, p: u * p[token] < q[token] if p[token] else True
        ),
    ),
    Mistake(
        "q forgotten in the test",
        "The draft model has already proposed this token with probability q(x): "
        "compare the coin with p(x) / q(x).",
        _variant(accepts=lambda u, token, q, p: u < p[token]),
    ),
    _greedy_test(),
    _greedy_test(_from_p),
    _greedy_test(_likeliest_of_p),
    _greedy_test(_likeliest_of_the_residual),
    _greedy_test(bonus=_likeliest_bonus),
    _greedy_test(_from_p, _likeliest_bonus),
    _greedy_test(_likeliest_of_p, _likeliest_bonus),
    _greedy_test(_likeliest_of_the_residual, _likeliest_bonus),
    _likeliest_replacement(_likeliest_of_p),
    _likeliest_replacement(_likeliest_of_the_residual),
    _likeliest_replacement(_likeliest_of_p, _likeliest_bonus),
    _likeliest_replacement(_likeliest_of_the_residual, _likeliest_bonus),
    Mistake(
        "likeliest token for the bonus",
        "When all drafts pass, the last row of p yields one more token. Do you draw "
        "it, or always take the likeliest?",
        _variant(bonus=_likeliest_bonus),
    ),
    _bonus_after_a_rejection(lambda written: written),
    _bonus_after_a_rejection(lambda written: -1),
    _token_taken_out(is_normalised=True),
    _token_taken_out(is_normalised=False),
    Mistake(
        "replacement from q",
        "Do you draw the replacement from q? The draft model has had its say: what "
        "does the target model still need?",
        _variant(replacement=_from(lambda q, p: q)),
    ),
    _without_sign(is_normalised=True),
    _without_sign(is_normalised=False),
    _upside_down(is_normalised=True),
    _upside_down(is_normalised=False),
    Mistake(
        "negative probabilities",
        "A probability is never below 0: what about tokens that the draft model likes "
        "more than the target model does?",
        _variant(replacement=_from(lambda q, p: p - q, is_normalised=False)),
    ),
    Mistake(
        "replacement from the next row",
        "Which row of p follows the accepted drafts? The row after the rejected one "
        "follows a text that is never written.",
        _replaced_from_the_next_row,
    ),
    Mistake(
        "rejected draft kept",
        "Is the rejected draft in what you return? The replacement takes its place.",
        _rejected_kept,
    ),
    Mistake(
        "test without a coin",
        "Is every draft with p(x) below q(x) rejected? It is kept with "
        "probability p(x) / q(x), so the test needs a coin.",
        _variant(accepts=lambda u, token, q, p: p[token] >= q[token]),
    ),
    Mistake(
        "q forgotten where p is smaller",
        "If p(x) is below q(x), a draft is kept with probability p(x) / q(x). Do you "
        "compare the coin with p(x) alone?",
        _variant(accepts=lambda u, token, q, p: p[token] >= q[token] or u < p[token]),
    ),
    _going_on(_variant(ends_at_rejection=False)),
    _going_on(_variant(ends_at_rejection=False, bonus=lambda p, coin: [])),
    _going_on(_each_replaced),
    _going_on(_all_drafts_tested(lambda rejected, kept: None)),
    _going_on(_all_drafts_tested(lambda rejected, kept: rejected[0])),
    _going_on(_all_drafts_tested(lambda rejected, kept: rejected[-1])),
    _going_on(_all_drafts_tested(lambda rejected, kept: kept)),
)
