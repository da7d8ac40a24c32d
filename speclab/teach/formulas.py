"""Exercises whose answer is a number or a distribution, with their known mistakes.

``data/lessons/mistakes.toml`` contains the question that a card asks about a mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, sqrt

import numpy as np

from speclab.theory.closed_forms import batch_that_stops_paying
from speclib.core.sampling import Row
from speclib.core.sampling import residual as right_residual

from .formula import BY_ZERO, Answer, Formula

# -- lessons 10, 12: acceptance and residual -------------------------------------------


def distribution(*probabilities: float) -> Row:
    """A distribution with these probabilities."""
    return np.array(probabilities)


# Pairs (p, q), starting with the simplest. In the last two a token has probability 0.
DISTRIBUTIONS = (
    (distribution(0.8, 0.2), distribution(0.5, 0.5)),
    (distribution(0.2, 0.3, 0.5), distribution(0.5, 0.25, 0.25)),
    # The draft model proposes two tokens too rarely.
    (distribution(0.2, 0.3, 0.5), distribution(0.5, 0.2, 0.3)),
    (distribution(0.1, 0.6, 0.3), distribution(0.3, 0.3, 0.4)),
    # The likeliest token is drafted too often, and one exactly often enough.
    (distribution(0.5, 0.3, 0.2), distribution(0.7, 0.1, 0.2)),
    # The draft model proposes three tokens too rarely.
    (distribution(0.1, 0.2, 0.3, 0.4), distribution(0.4, 0.15, 0.2, 0.25)),
    (distribution(0.0, 0.4, 0.6), distribution(0.2, 0.8, 0.0)),
    (distribution(0.0, 1.0, 0.0), distribution(0.25, 0.5, 0.25)),
)


def _cases_with_tokens() -> list[tuple[Row, Row, int]]:
    """Each pair of distributions with each token that the draft model can propose."""
    cases = []
    for p, q in DISTRIBUTIONS:
        for token in np.flatnonzero(q):
            cases.append((p, q, int(token)))
    return cases


def acceptance_chance(p: Row, q: Row, token: int) -> float:
    """min(1, p(x) / q(x)). Source: Leviathan et al. 2023, section 2.3."""
    return min(1.0, float(p[token] / q[token]))


check_acceptance = Formula(
    name="acceptance",
    right=acceptance_chance,
    quantity="the chance that the token is accepted",
    cases=_cases_with_tokens(),
    wrong={
        "chance above 1": lambda p, q, token: p[token] / q[token],
        "ratio upside down": lambda p, q, token: (
            min(1.0, q[token] / p[token]) if p[token] else 1.0
        ),
        "target's probability alone": lambda p, q, token: p[token],
        "smaller of the two": lambda p, q, token: min(p[token], q[token]),
        "larger instead of smaller": lambda p, q, token: max(1.0, p[token] / q[token]),
        "chance of any token": lambda p, q, token: np.minimum(p, q).sum(),
    },
    praise="Your answer is min(1, p(x) / q(x)) in every case that we tried.",
)


def _over_its_sum(values: Row) -> Row:
    with np.errstate(all="ignore"):
        normalised: Row = values / values.sum()
    return normalised


check_residual = Formula(
    name="residual",
    right=right_residual,
    quantity="the residual",
    cases=DISTRIBUTIONS,
    wrong={
        "residual not normalised": lambda p, q: np.maximum(p - q, 0),
        "residual from p": lambda p, q: p,
        "negative probabilities": lambda p, q: p - q,
        "excess relative to q": lambda p, q: _over_its_sum(
            np.maximum(p - q, 0) / np.where(q > 0, q, 1)
        ),
        "difference without sign": lambda p, q: _over_its_sum(np.abs(p - q)),
        "upside down": lambda p, q: _over_its_sum(np.maximum(q - p, 0)),
        "what both share": lambda p, q: _over_its_sum(np.minimum(p, q)),
        "divided by the largest": lambda p, q: (
            np.maximum(p - q, 0) / np.maximum(p - q, 0).max()
        ),
        "all of p where p is larger": lambda p, q: _over_its_sum(np.where(p > q, p, 0)),
        "replacement from q": lambda p, q: q,
    },
    praise="Accepted tokens and these replacements add up to p in all cases tried.",
)


def samples_to_see(p: float, found: float) -> float:
    """The number of tokens at which two standard errors equal the difference."""
    return 4 * p * (1 - p) / (found - p) ** 2


check_samples = Formula(
    name="samples",
    right=samples_to_see,
    quantity="the number of samples",
    cases=((0.5, 0.6), (0.2, 0.26), (0.5, 0.49), (0.1, 0.101)),
    wrong={
        "one standard error": lambda p, found: p * (1 - p) / (found - p) ** 2,
        "square root forgotten": lambda p, found: 2 * p * (1 - p) / abs(found - p),
        "standard error of one half": lambda p, found: (2 * 0.5 / (found - p)) ** 2,
        "nothing squared": lambda p, found: 2 * sqrt(p * (1 - p)) / abs(found - p),
        "difference not squared": lambda p, found: 4 * p * (1 - p) / abs(found - p),
        "2 not squared": lambda p, found: 2 * p * (1 - p) / (found - p) ** 2,
        "one half, not squared": lambda p, found: 1 / abs(found - p),
        "variance of the wrong probability": lambda p, found: (
            4 * found * (1 - found) / (found - p) ** 2
        ),
    },
    praise="To see half the difference takes four times as many samples.",
    is_count=True,
)

# -- lessons 10, 20: rounds of SD and PEARL --------------------------------------------


def expected_tokens(alpha: float, gamma: int) -> float:
    """1 + alpha + ... + alpha^gamma. Source: Leviathan et al. 2023, equation 1."""
    return sum(alpha**i for i in range(gamma + 1))


def _sum_with_a_gap(alpha: float, gamma: int) -> float:
    """The closed form of ``expected_tokens``, which is 0 / 0 for alpha = 1."""
    with np.errstate(invalid="ignore"):
        return float(np.divide(1 - alpha ** (gamma + 1), 1 - alpha))


check_expected_tokens = Formula(
    name="expected_tokens",
    right=expected_tokens,
    quantity="the mean number of tokens in a round",
    cases=(
        (0.5, 1),
        (0.5, 2),
        (0.8, 4),
        (0.0, 3),
        (0.9, 1),
        (1.0, 3),
        (0.9, 20),
    ),
    wrong={
        "bonus forgotten": lambda alpha, gamma: sum(
            alpha**i for i in range(1, gamma + 1)
        ),
        "no bonus when all are accepted": lambda alpha, gamma: sum(
            alpha**i for i in range(gamma)
        ),
        "drafts after a rejection counted": lambda alpha, gamma: 1 + alpha * gamma,
        "drafts after a rejection counted, bonus forgotten": lambda alpha, gamma: (
            alpha * gamma
        ),
        "uncommitted tokens counted": lambda alpha, gamma: gamma + 1,
        BY_ZERO: _sum_with_a_gap,
    },
    praise="Your answer is 1 + α + … + α^γ, even if every draft is accepted.",
)


def speed(rounds: list[tuple[int, int, int]], seconds: float) -> float:
    """Committed tokens per second."""
    return sum(committed for _drafted, _accepted, committed in rounds) / seconds


check_speed = Formula(
    name="speed",
    right=speed,
    quantity="the speed in tokens per second",
    cases=(
        ([(4, 2, 3)], 1.0),
        ([(4, 4, 5), (4, 0, 1)], 2.0),
        ([(3, 1, 2), (3, 3, 4), (3, 2, 3)], 1.5),
        ([(5, 0, 1), (5, 5, 3)], 0.8),  # the last round is cut at the end of the text
        ([(4, 2, 3), (4, 2, 3), (4, 1, 2)], 3.0),  # rounds may be identical
        # Rounds of PEARL, some without a token from the target.
        ([(4, 1, 1), (4, 4, 4), (4, 2, 3)], 1.0),
    ),
    wrong={
        "uncommitted tokens counted": lambda rounds, seconds: (
            sum(drafted for drafted, _, _ in rounds) / seconds
        ),
        "bonus forgotten": lambda rounds, seconds: (
            sum(accepted for _, accepted, _ in rounds) / seconds
        ),
        "tokens behind the end counted": lambda rounds, seconds: (
            sum(a + 1 for _, a, _ in rounds) / seconds
        ),
        "seconds per token": lambda rounds, seconds: 1 / speed(rounds, seconds),
    },
    praise="Only committed tokens count, so this speed can be compared with any other.",
)


def round_of_pearl(gamma: int, draft: float, target: float) -> float:
    """max(gamma t_draft, t_target). Source: PEARL, section 3.4."""
    return max(gamma * draft, target)


check_round = Formula(
    name="round",
    right=round_of_pearl,
    quantity="the time of a round of PEARL",
    cases=(
        (2, 1.0, 5.0),
        (5, 1.0, 5.0),
        (8, 1.0, 5.0),
        (4, 0.02, 0.1),
        (1, 0.3, 0.2),
        (2, 0.125, 0.3125),
        (3, 0.25, 1.0),
    ),
    wrong={
        "models taking turns": lambda gamma, draft, target: gamma * draft + target,
        "only the target counted": lambda gamma, draft, target: target,
        "only the draft counted": lambda gamma, draft, target: gamma * draft,
        "the faster one counted": lambda gamma, draft, target: min(
            gamma * draft, target
        ),
        "one draft counted": lambda gamma, draft, target: max(draft, target),
    },
    praise="A round of PEARL takes as long as the slower of the two.",
)

# -- lesson 30: DSI --------------------------------------------------------------------


def servers_of_dsi(draft: float, target: float, lookahead: int) -> int:
    """ceil(t_target / (lookahead t_draft)). Source: DSI, section 3.1, equation 1."""
    return ceil(target / (lookahead * draft))


check_servers = Formula(
    name="servers",
    right=servers_of_dsi,
    quantity="the number of servers that keep up",
    cases=(
        (1.0, 5.0, 1),
        (1.0, 5.0, 2),
        (1.0, 4.0, 2),
        (1.0, 5.0, 8),
        (0.25, 1.5, 4),
        (0.5, 2.625, 5),  # 1.05 of a server
        (0.5, 10.25, 1),
    ),
    wrong={
        "lookahead forgotten": lambda draft, target, lookahead: ceil(target / draft),
        "rounded down": lambda draft, target, lookahead: target // (lookahead * draft),
        "not rounded": lambda draft, target, lookahead: target / (lookahead * draft),
        "rounded to the nearest": lambda draft, target, lookahead: round(
            target / (lookahead * draft)
        ),
        "one server too many": lambda draft, target, lookahead: (
            target // (lookahead * draft) + 1
        ),
    },
    praise="With this many servers, one is free whenever drafts arrive.",
)


def seconds_of_dsi(tokens: int, alpha: float, draft: float, target: float) -> float:
    """t1 p (N - 1) + t2 ((1 - p) (N - 1) + 1). Source: DSI, Proposition 1."""
    right = alpha * (tokens - 1)
    wrong = (1 - alpha) * (tokens - 1)
    return draft * right + target * (wrong + 1)


check_dsi_seconds = Formula(
    name="dsi_seconds",
    right=seconds_of_dsi,
    quantity="the mean time of the text",
    cases=(
        (3, 0.5, 1.0, 5.0),
        (1, 0.5, 1.0, 5.0),
        (11, 0.8, 1.0, 5.0),
        (6, 0.0, 1.0, 4.0),
        (6, 1.0, 0.1, 1.0),
        (4, 0.5, 1.0, 5.0),  # one and a half drafts are right on average
    ),
    wrong={
        "last pass forgotten": lambda tokens, alpha, draft, target: (
            tokens * (alpha * draft + (1 - alpha) * target)
        ),
        "last pass on top": lambda tokens, alpha, draft, target: (
            tokens * (alpha * draft + (1 - alpha) * target) + target
        ),
        "draft waited for": lambda tokens, alpha, draft, target: (
            (tokens - 1) * (draft + (1 - alpha) * target) + target
        ),
        "models taking turns": lambda tokens, alpha, draft, target: (
            tokens * (draft + target)
        ),
        "right and wrong exchanged": lambda tokens, alpha, draft, target: (
            (tokens - 1) * (alpha * target + (1 - alpha) * draft) + target
        ),
    },
    praise="Your answer is Proposition 1 of the paper.",
)

# -- lesson 35: SSD --------------------------------------------------------------------

Fan = tuple[int, ...]


def mean_round_of_ssd(gamma: int, hit: float, draft: float, target: float) -> float:
    """A fork during a target pass, preceded by a backup if no window was ready.

    Source: ours, from arXiv:2603.03251.
    """
    return max((gamma + 1) * draft, target) + (1 - hit) * gamma * draft


check_ssd_round = Formula(
    name="ssd_round",
    right=mean_round_of_ssd,
    quantity="the mean time of a round",
    cases=(
        (4, 1.0, 1.0, 8.0),
        (4, 0.0, 1.0, 8.0),
        (4, 0.75, 1.0, 8.0),
        (7, 0.75, 1.0, 4.0),
        (2, 0.5, 0.5, 1.0),
        (5, 0.9, 0.25, 1.5),
    ),
    wrong={
        "pass over the window forgotten": lambda gamma, hit, draft, target: (
            max(gamma * draft, target) + (1 - hit) * gamma * draft
        ),
        "models taking turns": lambda gamma, hit, draft, target: (
            (gamma + 1) * draft + target + (1 - hit) * gamma * draft
        ),
        "misses for nothing": lambda gamma, hit, draft, target: max(
            (gamma + 1) * draft, target
        ),
        "hits and misses swapped": lambda gamma, hit, draft, target: (
            max((gamma + 1) * draft, target) + hit * gamma * draft
        ),
        "no guessing after a miss": lambda gamma, hit, draft, target: (
            hit * max((gamma + 1) * draft, target)
            + (1 - hit) * (target + gamma * draft)
        ),
    },
    praise="After a hit, drafting costs no time if it fits into a target pass.",
)


def chances_of_outcomes(fan: Fan, alpha: float) -> list[float]:
    """The probabilities that exactly 0, 1, 2, ... or all drafts are accepted."""
    gamma = len(fan) - 1
    chances = [(1 - alpha) * alpha**k for k in range(gamma)]
    return [*chances, alpha**gamma]


def gain_of_a_guess(count: int, power: float) -> float:
    """How much one more guess lowers the probability of missing an outcome."""
    missed: float = float(count) ** -power
    still_missed: float = float(count + 1) ** -power
    return missed - still_missed


def most_useful_guess(fan: Fan, alpha: float, power: float) -> int:
    """The number of accepted drafts after which one more guess avoids the most misses.

    Source: the power law of arXiv:2603.03251.
    """
    chances = chances_of_outcomes(fan, alpha)
    gains = [
        chance * gain_of_a_guess(count, power)
        for chance, count in zip(chances, fan, strict=True)
    ]
    return int(np.argmax(gains))


def _where(worth: Callable[[Fan, float, float], list[float]]) -> Answer:
    """An answer that returns the index of the largest ``worth``."""
    return lambda fan, alpha, power: int(np.argmax(worth(fan, alpha, power)))


check_next_guess = Formula(
    name="next_guess",
    right=most_useful_guess,
    quantity="the number of accepted drafts",
    cases=(
        ((1, 1, 1), 0.8, 1.0),  # all pass with 0.64
        ((1, 1, 1), 0.5, 1.0),  # none passes with 0.5
        ((1, 1, 4), 0.8, 1.0),
        ((3, 1, 2), 0.5, 1.0),
        ((3, 2, 1, 1), 0.6, 0.5),
        ((2, 2, 1, 1), 0.6, 2.0),
        ((4, 1, 1, 1, 6), 0.7, 1.0),
        ((5, 4, 3, 2, 9), 0.9, 1.5),
        ((2, 2, 1), 0.3, 1.0),  # the rarest outcome has the fewest guesses
    ),
    wrong={
        "likeliest outcome": _where(
            lambda fan, alpha, power: chances_of_outcomes(fan, alpha)
        ),
        "fewest guesses": _where(
            lambda fan, alpha, power: [-float(count) for count in fan]
        ),
        "largest share of misses": _where(
            lambda fan, alpha, power: [
                chance * count**-power
                for chance, count in zip(
                    chances_of_outcomes(fan, alpha), fan, strict=True
                )
            ]
        ),
        "all accepted taken for a failure": _where(
            lambda fan, alpha, power: [
                (1 - alpha) * alpha**k * gain_of_a_guess(count, power)
                for k, count in enumerate(fan)
            ]
        ),
    },
    praise="Spending the budget this way, guess by guess, leads to the fewest misses.",
)

# -- lesson 40: DuoDecoding ------------------------------------------------------------


def round_of_duodecoding(gamma: int, k: int, draft: float, target: float) -> float:
    """A draft pass for all first tokens, and one for each other. Source: ours."""
    length = gamma // k
    return max((1 + k * (length - 1)) * draft, target)


check_duo_round = Formula(
    name="duo_round",
    right=round_of_duodecoding,
    quantity="the time of a round",
    cases=(
        (6, 2, 1.0, 3.0),
        (6, 2, 1.0, 6.0),
        (8, 4, 1.0, 2.0),
        (6, 1, 0.5, 1.0),
        (4, 4, 0.25, 0.5),
        (8, 3, 1.0, 2.0),  # three sequences of two tokens
    ),
    wrong={
        "a pass for each token": lambda gamma, k, draft, target: max(
            gamma // k * k * draft, target
        ),
        "one sequence counted": lambda gamma, k, draft, target: max(
            gamma // k * draft, target
        ),
        "only the draft counted": lambda gamma, k, draft, target: (
            (1 + k * (gamma // k - 1)) * draft
        ),
        "models taking turns": lambda gamma, k, draft, target: (
            (1 + k * (gamma // k - 1)) * draft + target
        ),
    },
    praise="The more sequences, the more of their tokens come from the first pass.",
)


def count_of_sequences(first: tuple[float, ...], second: float, gamma: int) -> int:
    """The number of first tokens above theta, rounded down to a divisor of gamma.

    Source: DuoDecoding, section 3.2, and its published code.
    """
    return _fitting(_likely(first, max(first) * second), gamma)


def _likely(first: tuple[float, ...], theta: float) -> int:
    """The number of tokens likelier than ``theta``, at least 1."""
    return max(1, sum(chance > theta for chance in first))


def _fitting(likely: int, gamma: int) -> int:
    """The largest divisor of the budget that is at most ``likely``."""
    return max(k for k in range(1, likely + 1) if gamma % k == 0)


check_sequences = Formula(
    name="sequences",
    right=count_of_sequences,
    quantity="the number of sequences",
    cases=(
        ((0.50, 0.25, 0.20, 0.05), 0.45, 6),
        ((0.50, 0.25, 0.20, 0.05), 0.45, 5),
        ((0.40, 0.30, 0.20, 0.10), 0.40, 6),
        ((0.30, 0.25, 0.20, 0.15, 0.10), 0.30, 8),
        ((0.60, 0.30, 0.10), 0.90, 6),
        ((0.90, 0.10), 1.00, 4),
        ((0.10, 0.20, 0.50, 0.20), 0.30, 4),  # the likeliest is not the first
        ((0.50, 0.25, 0.25), 0.50, 6),  # a token exactly at the limit does not count
        ((0.25, 0.25, 0.25, 0.25), 0.50, 4),  # all are equally likely
        ((0.10,) * 10, 0.50, 20),
    ),
    wrong={
        "budget not divided": lambda first, second, gamma: _likely(
            first, max(first) * second
        ),
        "second token alone": lambda first, second, gamma: _fitting(
            _likely(first, second), gamma
        ),
        "likeliest not counted": lambda first, second, gamma: _fitting(
            max(1, _likely(first, max(first) * second) - 1), gamma
        ),
        "one sequence more": lambda first, second, gamma: _fitting(
            1 + _likely(first, max(first) * second), gamma
        ),
    },
    praise="So a draft model splits its budget only if it is unsure.",
)

# -- lesson 50: EasySpec ---------------------------------------------------------------


def fuzzy_pass(groups: list[int], attention: float, mlp: float) -> float:
    """A group's attentions at once, MLPs in order. Source: EasySpec, Algorithm 2."""
    return len(groups) * attention + sum(groups) * mlp


check_fuzzy_pass = Formula(
    name="fuzzy_pass",
    right=fuzzy_pass,
    quantity="the time of a fuzzy pass",
    cases=(
        ([1, 2, 1], 2.0, 1.0),
        ([1, 1, 1], 2.0, 1.0),
        ([1, 3, 4, 1, 1], 0.5, 0.25),
        ([1], 3.0, 2.0),
        ([2, 6, 1, 1, 1, 1, 1], 0.5, 0.25),
    ),
    wrong={
        "exact pass": lambda groups, attention, mlp: sum(groups) * (attention + mlp),
        "MLPs at once": lambda groups, attention, mlp: len(groups) * (attention + mlp),
        "parts exchanged": lambda groups, attention, mlp: (
            sum(groups) * attention + len(groups) * mlp
        ),
        "attention and MLP at once": lambda groups, attention, mlp: max(
            len(groups) * attention, sum(groups) * mlp
        ),
    },
    praise="More devices do not shorten the MLPs.",
)


def round_of_easyspec(gamma: int, exact: float, fuzzy: float, target: float) -> float:
    """One exact pass, gamma - 1 fuzzy ones, a test. Source: EasySpec, section 3.2."""
    return exact + (gamma - 1) * fuzzy + target


check_easy_round = Formula(
    name="easy_round",
    right=round_of_easyspec,
    quantity="the time of a round",
    cases=(
        (3, 4.0, 2.0, 10.0),
        (1, 4.0, 2.0, 10.0),
        (5, 0.5, 0.25, 1.0),
        (5, 2.0, 2.0, 6.0),
        (2, 3.0, 1.0, 2.0),
        (8, 3.0, 1.0, 2.0),
    ),
    wrong={
        "calibration on top": lambda gamma, exact, fuzzy, target: (
            exact + gamma * fuzzy + target
        ),
        "calibration forgotten": lambda gamma, exact, fuzzy, target: (
            gamma * fuzzy + target
        ),
        "nothing fuzzy": lambda gamma, exact, fuzzy, target: gamma * exact + target,
        "test forgotten": lambda gamma, exact, fuzzy, target: (
            exact + (gamma - 1) * fuzzy
        ),
        "both at once": lambda gamma, exact, fuzzy, target: max(
            exact + (gamma - 1) * fuzzy, target
        ),
    },
    praise="So calibration replaces one fuzzy pass with an exact one.",
)

# -- lesson 60: when a draft pays, how long it should be, devices and batches ----------


def seconds(n: int, alone: float, reading: float, joining: float) -> float:
    """One nth of the reading, plus the rest, plus the joining if n > 1.

    Source: ``speclab.theory.plain_decoding``.
    """
    if n == 1:
        return alone
    return alone - reading + reading / n + joining


check_seconds = Formula(
    name="seconds",
    right=seconds,
    quantity="the time of the pass",
    cases=(
        (2, 1.0, 0.8, 0.0),
        (2, 1.0, 0.8, 0.1),
        (1, 1.0, 0.8, 0.1),
        (4, 0.108, 0.08, 0.001),
        (8, 0.1, 0.06, 0.002),
        (3, 0.2, 0.2, 0.01),  # the whole pass is reading
        (4, 0.2, 0.01, 0.02),  # more devices are slower here
    ),
    wrong={
        "joining on one device": lambda n, alone, reading, joining: (
            alone - reading + reading / n + joining
        ),
        "joining forgotten": lambda n, alone, reading, joining: (
            alone - reading + reading / n
        ),
        "all of it divided": lambda n, alone, reading, joining: (
            alone / n + (joining if n > 1 else 0.0)
        ),
        "rest forgotten": lambda n, alone, reading, joining: (
            reading / n + (joining if n > 1 else 0.0)
        ),
        "reading counted twice": lambda n, alone, reading, joining: (
            alone + reading / n + joining if n > 1 else alone
        ),
        "rest divided": lambda n, alone, reading, joining: (
            reading + (alone - reading) / n + joining if n > 1 else alone
        ),
        "joining divided": lambda n, alone, reading, joining: (
            alone - reading + (reading + joining) / n if n > 1 else alone
        ),
    },
    praise="So more devices help as long as reading takes most of the pass.",
)


def break_even(c: float) -> float:
    """1 / c, the alpha at which (1 + alpha) / (1 + 1 / c) is 1.

    Source: Leviathan et al. 2023, corollary 3.9.
    """
    return min(1.0, 1 / c)


check_break_even = Formula(
    name="break_even",
    right=break_even,
    quantity="the lowest acceptance rate",
    cases=((5.0,), (2.0,), (1.25,), (1.0,), (3.0,), (64.0,)),
    wrong={
        "draft forgotten": lambda c: 0.0,
        "bonus forgotten": lambda c: 1 + 1 / c,
        "ratio upside down": lambda c: c,
        "share left over": lambda c: 1 - 1 / c,
    },
    praise="So a fast draft model can afford to be wrong often, but a slow one cannot.",
)


def best_gamma(alpha: float, c: float) -> int:
    """The gamma that maximises (1 + ... + alpha^gamma) / (gamma / c + 1).

    Source: Leviathan et al. 2023, theorem 3.8.
    """
    return max(range(1, 51), key=lambda gamma: _speedup(alpha, gamma, c))


def _speedup(alpha: float, gamma: int, c: float) -> float:
    return expected_tokens(alpha, gamma) / (gamma / c + 1)


check_best_gamma = Formula(
    name="best_gamma",
    right=best_gamma,
    quantity="the best draft length",
    cases=(
        (0.8, 5.0),
        (0.6, 5.0),
        (0.9, 5.0),
        (0.8, 20.0),
        (0.3, 2.0),
        (0.9, 2.5),
        (0.99, 20.0),
        (1.0, 5.0),
    ),
    wrong={
        "c taken": lambda alpha, c: round(c),
        "time forgotten": lambda alpha, c: max(
            range(1, 51), key=lambda g: expected_tokens(alpha, g)
        ),
        "tokens forgotten": lambda alpha, c: 1,
        "bonus forgotten": lambda alpha, c: max(
            range(1, 51),
            key=lambda g: (expected_tokens(alpha, g) - 1) / (g / c + 1),
        ),
        BY_ZERO: lambda alpha, c: max(
            range(1, 51), key=lambda g: _sum_with_a_gap(alpha, g) / (g / c + 1)
        ),
    },
    praise="The best length may be below or above c: at c = 5 it is 2 for an α of 0.6, "
    "and 7 for 0.9.",
)


def limit_of_batch(
    tokens: float, rows: float, fixed: float, per_token: float, drafting: float
) -> float:
    """B*, the batch size at which speculation stops paying off, without KV caches."""
    return batch_that_stops_paying(tokens, rows, fixed, per_token, drafting)


check_batch_limit = Formula(
    name="batch_limit",
    right=limit_of_batch,
    quantity="the number of requests",
    cases=(
        (2.0, 4.0, 10.0, 1.0, 2.0),
        (3.0, 5.0, 8.0, 0.05, 4.0),
        (3.0, 5.0, 8.0, 0.05, 0.0),
        (2.533, 4.0, 7.093, 0.02101, 2.135),
        (5.695, 8.0, 7.093, 0.02101, 0.0),
    ),
    wrong={
        "drafting for free": lambda tokens, rows, fixed, per_token, drafting: (
            fixed * (tokens - 1) / (per_token * (rows - tokens))
        ),
        "every row lost": lambda tokens, rows, fixed, per_token, drafting: (
            (fixed * (tokens - 1) - drafting) / (per_token * rows)
        ),
        "one plain pass": lambda tokens, rows, fixed, per_token, drafting: (
            (fixed * tokens - drafting) / (per_token * (rows - tokens))
        ),
        "one row taken off": lambda tokens, rows, fixed, per_token, drafting: (
            (fixed * (tokens - 1) - drafting) / (per_token * (rows - 1))
        ),
    },
    praise="Up to this batch size, reading the weights less often outweighs the wasted "
    "rows.",
)
