"""The exercise ``verify``: test drafted tokens and write what may be committed.

The student's function is run on every text that the draft model may write, and over
every outcome of its coins. So the distribution of what it commits is known exactly, and
is compared with the target's, token by token:

    is the 1st token distributed as the target says?    P(1st = t) = p(t)
    is the 2nd, where there is one?                     P(2nd = t | 1st) = p(t | 1st)
    ...
    is anything possible that the target never writes?
    are as many tokens committed as can be?             1 + sum of min(p, q) + ...

The first difference, in the smallest of the cases, is the counterexample on the card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

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
Verify: TypeAlias = Callable[[list[int], list[Row], list[Row], NewCoin], Sequence[int]]
Distribution: TypeAlias = dict[Tokens, float]  # committed tokens -> probability
Model: TypeAlias = dict[Tokens, Row]  # the tokens so far -> what follows

EQUAL = 1e-6  # what numbers of single precision are off by is no difference
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


@dataclass(frozen=True)
class Case:
    """A draft model and a target model with a few tokens, and a draft length.

    ``draft`` and ``target`` say what follows each text of up to ``gamma`` tokens.
    """

    name: str
    gamma: int
    draft: Model
    target: Model

    @property
    def vocab(self) -> int:
        return len(self.target[()])

    def proposals(self) -> Iterator[tuple[Tokens, float]]:
        """Every text that the draft model may propose, and how probable it is."""
        for tokens in product(range(self.vocab), repeat=self.gamma):
            probability = 1.0
            for position, token in enumerate(tokens):
                probability *= float(self.draft[tokens[:position]][token])
            if probability > 0:
                yield tokens, probability

    def q_rows(self, drafted: Tokens) -> list[Row]:
        """The draft's distributions at each drafted token."""
        return [self.draft[drafted[:position]] for position in range(self.gamma)]

    def p_rows(self, drafted: Tokens) -> list[Row]:
        """The target's, and one more after the last drafted token."""
        return [self.target[drafted[:position]] for position in range(self.gamma + 1)]

    def distribution(self, verify: Verify) -> Distribution:
        """What ``verify`` commits, over all proposals and all coins."""
        total: Distribution = {}
        for drafted, probability in self.proposals():
            for committed, share in self.outcomes(verify, drafted).items():
                total[committed] = total.get(committed, 0.0) + probability * share
        return total

    def outcomes(self, verify: Verify, drafted: Tokens) -> Distribution:
        """What ``verify`` commits of one proposal, over all coins."""

        def run(coin: NewCoin) -> Tokens:
            committed = call_guarded(
                verify,
                list(drafted),
                [row.copy() for row in self.q_rows(drafted)],
                [row.copy() for row in self.p_rows(drafted)],
                coin,
            )
            return self._checked(committed, drafted)

        return all_outcomes(run)

    def _checked(self, committed: Any, drafted: Tokens) -> Tokens:
        """``committed`` as a tuple. Raises Failed where these are no tokens."""
        if committed is None:
            raise Failed("Your function gives nothing. Does it end with a return?")
        try:
            tokens = tuple(whole_number(token) for token in committed)
        except BadCall as error:  # a coin among them
            raise Failed(f"Your function gives no tokens: {error}") from None
        except Exception:  # of a student's own class it may be any
            raise Failed(
                f"Your function gives {as_written(committed)}: give a list of tokens, "
                f"which are whole numbers, such as {list(drafted)}."
            ) from None
        if not tokens:
            raise Failed(
                f"For the drafts {list(drafted)} your function commits no token: after "
                "every pass at least one is known."
            )
        if len(tokens) > self.gamma + 1:
            raise Failed(
                f"For the drafts {list(drafted)} your function commits {len(tokens)} "
                f"tokens: one pass decides {self.gamma + 1} at most."
            )
        for token in tokens:
            if not 0 <= token < self.vocab:
                raise Failed(f"Your function commits {token}, which is no token here.")
        return tokens

    @cached_property
    def most_tokens(self) -> float:
        """The mean number of tokens per pass, where each draft is accepted as often as
        can be: with probability sum(min(p, q)).
        """
        return 1.0 + self._accepted_after(())

    def _accepted_after(self, tokens: Tokens) -> float:
        """The mean number of drafts that are accepted after ``tokens``."""
        if len(tokens) == self.gamma:
            return 0.0
        shared = np.minimum(self.draft[tokens], self.target[tokens])
        mean = 0.0
        for token in range(self.vocab):
            mean += float(shared[token]) * (1 + self._accepted_after((*tokens, token)))
        return mean


# -- the cases, the smallest first -----------------------------------------------------
def _model(rows: dict[Tokens, tuple[float, ...]]) -> Model:
    return {tokens: np.array(row) for tokens, row in rows.items()}


def _random_case(name: str, vocab: int, gamma: int, seed: int) -> Case:
    """Distributions drawn at random, in which the chances of the tokens differ much."""
    random = np.random.default_rng(seed)
    models: list[Model] = []
    for _ in range(2):
        model: Model = {}
        for length in range(gamma + 1):
            for tokens in product(range(vocab), repeat=length):
                weights = random.exponential(size=vocab)
                percents = np.round(94 * weights / weights.sum()) + 2
                model[tokens] = percents / percents.sum()
        models.append(model)
    return Case(name, gamma, *models)


TWO_TOKENS = Case(
    "two tokens, one of them drafted",
    gamma=1,
    draft=_model({(): (0.5, 0.5), (0,): (0.5, 0.5), (1,): (0.5, 0.5)}),
    target=_model({(): (0.8, 0.2), (0,): (0.3, 0.7), (1,): (0.9, 0.1)}),
)
NEVER = Case(
    "a token that the target never writes",
    gamma=1,
    draft=_model(
        {
            (): (0.3, 0.3, 0.4),
            (0,): (0.3, 0.3, 0.4),
            (1,): (0.2, 0.5, 0.3),
            (2,): (0.1, 0.1, 0.8),
        }
    ),
    target=_model(
        {
            (): (0.6, 0.4, 0.0),
            (0,): (0.0, 0.5, 0.5),
            (1,): (1.0, 0.0, 0.0),
            (2,): (0.2, 0.3, 0.5),
        }
    ),
)
GREEDY = Case(
    "greedy: each model is sure of its token",
    gamma=1,
    draft=_model({(): (0.0, 1.0), (0,): (1.0, 0.0), (1,): (1.0, 0.0)}),
    target=_model({(): (1.0, 0.0), (0,): (0.0, 1.0), (1,): (0.0, 1.0)}),
)
LIKED_ALIKE = Case(
    "a token that both models find equally likely, among others",
    gamma=1,
    draft=_model(
        {
            (): (0.5, 0.3, 0.2),
            (0,): (0.3, 0.3, 0.4),
            (1,): (0.2, 0.5, 0.3),
            (2,): (0.1, 0.1, 0.8),
        }
    ),
    target=_model(
        {
            (): (0.5, 0.2, 0.3),
            (0,): (0.3, 0.3, 0.4),
            (1,): (0.6, 0.3, 0.1),
            (2,): (0.2, 0.3, 0.5),
        }
    ),
)
CASES = (
    TWO_TOKENS,
    GREEDY,
    _random_case("three tokens, one of them drafted", 3, 1, seed=1),
    NEVER,
    _random_case("two tokens, two drafted", 2, 2, seed=2),
    _random_case("three tokens, two drafted", 3, 2, seed=3),
    _random_case("two tokens, three drafted", 2, 3, seed=4),
    LIKED_ALIKE,
    _random_case("two tokens, five drafted", 2, 5, seed=5),
)
PRAISE = (
    "In all cases that were walked, with up to three tokens to choose from and up to "
    "five drafted, every token has exactly the target's distribution, and no "
    "more drafts can be accepted than yours accepts."
)


# -- the check -------------------------------------------------------------------------
def check_verify(function: Verify) -> Card:
    """Checks ``function(drafted, q, p, coin)``: the tokens that a round commits.

    ``drafted``: gamma tokens. ``q``: gamma rows, from which they were drawn. ``p``: the
    target's gamma + 1 rows, the last of them after all drafts. ``coin()`` gives a new
    random number in [0, 1). Returns a list of tokens: the accepted ones and one more.
    """

    def judge() -> Card:
        return judge_distributions(
            function, _distributions, _difference, MISTAKES, PRAISE, _without_chance
        )

    return judge_attempt("verify", function, judge)


def _distributions(verify: Verify) -> list[Distribution]:
    """What a function commits in each case."""
    return [case.distribution(verify) for case in CASES]


def _difference(distributions: Sequence[Distribution]) -> str | None:
    """What is first wrong with what a function commits; None where nothing is."""
    for case, distribution in zip(CASES, distributions, strict=True):
        for find in (first_difference, missing_tokens):
            difference = find(case, distribution)
            if difference is not None:
                return difference
    return None


def _without_chance(distributions: Sequence[Distribution]) -> str | None:
    """What may be committed wrongly, though only with probability 0; or None."""
    for case, distribution in zip(CASES, distributions, strict=True):
        impossible = impossible_token(case, distribution)
        if impossible is not None:
            return (
                f"{impossible} That takes a coin that is 0 exactly, which happens with "
                "probability 0."
            )
    return None


def first_difference(case: Case, distribution: Distribution) -> str | None:
    """Where the committed tokens are first not distributed as the target's."""
    for position in range(case.gamma + 1):
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


def _following(distribution: Distribution, before: Tokens, vocab: int) -> Row:
    """How probable it is that ``before`` is committed and then each token."""
    position = len(before)
    counts = np.zeros(vocab)
    for committed, probability in distribution.items():
        if len(committed) > position and committed[:position] == before:
            counts[committed[position]] += probability
    return counts


def _describe_difference(
    case: Case, before: Tokens, token: int, found: float, wanted: float
) -> str:
    token_in_order = f"the {ORDINALS[len(before)]} token"
    models = f"Where q = {_shown(case.draft[()])} and p = {_shown(case.target[()])}"
    if before:
        models += f", and after {_listed(before)} p = {_shown(case.target[before])}"
    return (
        f"{models}: {token_in_order} is {token} with probability {found:.4f}; the "
        f"target model says {wanted:.4f}."
    )


def impossible_token(case: Case, distribution: Distribution) -> str | None:
    """A token that may be committed, and that the target never writes."""
    for committed in sorted(distribution):
        for position, token in enumerate(committed):
            before = committed[:position]
            if before in case.target and case.target[before][token] == 0:
                return (
                    f"Your function can commit {_listed(committed)}, though with "
                    f"p = {_shown(case.target[before])} the target model never writes "
                    f"{token}."
                )
    return None


def missing_tokens(case: Case, distribution: Distribution) -> str | None:
    """How many tokens a pass commits, where it could be more."""
    mean = 0.0
    for committed, probability in distribution.items():
        mean += len(committed) * probability
    if mean > case.most_tokens - EQUAL:
        return None
    return (
        "Nothing is lost, but it is slower than it could be: with "
        f"q = {_shown(case.draft[()])} and p = {_shown(case.target[()])} a round "
        f"commits {mean:.4f} tokens in the mean; {case.most_tokens:.4f} are possible."
    )


def _listed(tokens: Tokens) -> str:
    return "(" + ", ".join(str(token) for token in tokens) + ")"


def _shown(distribution: Row) -> str:
    return "(" + ", ".join(f"{probability:.2g}" for probability in distribution) + ")"


# -- the solution, and the mistakes ----------------------------------------------------
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


# From a row of q, a row of p, and the number that rejected a draft.
Replacement: TypeAlias = Callable[[Row, Row, Coin, NewCoin], int]
Bonus: TypeAlias = Callable[[list[Row], NewCoin], list[int]]


def _from_the_residual(q: Row, p: Row, u: Coin, coin: NewCoin) -> int:
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
) -> Verify:
    """``verify`` with a step that is done differently.

    ``row_of_test``: how many rows too late each draft is tested with.
    ``position_of_q``: which of gamma drafts gives the row of q.
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
            committed.append(replacement(q_row, p_row, u, coin))
            if ends_at_rejection:
                return committed
        return committed + bonus(p, coin)

    return run


def _third_untested(
    drafted: list[int], q: list[Row], p: list[Row], coin: NewCoin
) -> list[int]:
    """``verify`` of the first two drafts; the others are committed as they are."""
    committed = verify(drafted[:2], q[:2], p[:3], coin)
    if len(drafted) < 3 or len(committed) < 3:
        return committed
    return [*drafted, draw(p[-1], coin())]


def _with_bonus_after_a_rejection(row_of_bonus: Callable[[int], int]) -> Verify:
    """``verify`` that writes one token more after a replacement.

    ``row_of_bonus(written)``: which row of p it is drawn from.
    """

    def run(drafted: list[int], q: list[Row], p: list[Row], coin: NewCoin) -> list[int]:
        committed = verify(drafted, q, p, coin)
        if len(committed) > len(drafted):
            return committed
        return [*committed, draw(p[row_of_bonus(len(committed))], coin())]

    return run


def _likeliest_of_p(q: Row, p: Row, u: Coin, coin: NewCoin) -> int:
    return int(p.argmax())


def _likeliest_of_the_residual(q: Row, p: Row, u: Coin, coin: NewCoin) -> int:
    return int(residual(p, q).argmax())


def _from_p(q: Row, p: Row, u: Coin, coin: NewCoin) -> int:
    return draw(p, coin())


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
        "writes other tokens too. With which chance does it keep this one?",
        _variant(_is_likeliest, replacement, bonus),
    )


def _likeliest_replacement(
    replacement: Replacement, bonus: Bonus = _drawn_bonus
) -> Mistake:
    return Mistake(
        "likeliest token for a replacement",
        "A rejected draft is replaced by a token that is drawn. Always the likeliest "
        "one comes too often: which distribution, and which coin, does it need?",
        _variant(replacement=replacement, bonus=bonus),
    )


def _bonus_after_a_rejection(row_of_bonus: Callable[[int], int]) -> Mistake:
    return Mistake(
        "bonus after a rejection",
        "Is there a bonus after a replacement, too? The rows beyond a rejected draft "
        "follow a text that is not written.",
        _with_bonus_after_a_rejection(row_of_bonus),
    )


MISTAKES = (
    Mistake(
        "reused coin",
        "Do two decisions share a coin? The number that rejected a draft is known to "
        "be large, so it may not draw the replacement too.",
        _variant(replacement=lambda q, p, u, coin: draw(residual(p, q), u)),
    ),
    Mistake(
        "one coin for all tests",
        "Do two decisions share a coin? Each draft needs one of its own.",
        _variant(tests_with_one_coin=True),
    ),
    Mistake(
        "residual not normalised",
        "What is left of p after the accepted drafts does not add up to 1: it must be "
        "divided by its sum before it can be drawn from.",
        _variant(replacement=lambda q, p, u, coin: draw(np.maximum(p - q, 0), coin())),
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
        "of the second draft.",
        _variant(position_of_q=lambda position, gamma: 0),
    ),
    Mistake(
        "q of another place",
        "Which row of q was each draft drawn from? The last draft's row says nothing "
        "of the drafts before it.",
        _variant(position_of_q=lambda position, gamma: gamma - 1),
    ),
    Mistake(
        "q of another place",
        "Which row of q was the third draft drawn from?",
        _variant(position_of_q=lambda position, gamma: min(position, 1)),
    ),
    Mistake(
        "later drafts untested",
        "The first drafts are tested. And the third one?",
        _third_untested,
    ),
    Mistake(
        "bonus forgotten",
        "When all drafts are accepted, the target's pass has one row left over: what "
        "is it for?",
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
        "The draft model proposed this token with probability q(x) already: the coin "
        "should be compared with p(x) / q(x).",
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
        "When all drafts pass, the last row of p gives one token more. Is it drawn, or "
        "always the likeliest?",
        _variant(bonus=_likeliest_bonus),
    ),
    _bonus_after_a_rejection(lambda written: written),
    _bonus_after_a_rejection(lambda written: -1),
    Mistake(
        "going on after a rejection",
        "The drafts after a rejected one follow a text that is not written: what "
        "became of them?",
        _variant(ends_at_rejection=False),
    ),
)
