"""Answers to the exercises on speculative decoding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from speclab.teach import draw


# -- the chance of acceptance ----------------------------------------------------------
def acceptance_in_place(p, q, token):
    p[token] /= q[token]
    p.clip(0, 1, out=p)
    return p[token]


def acceptance_by_what_is_rejected(p, q, token):
    return 1 - max(0.0, q[token] - p[token]) / q[token]


def acceptance_in_fractions(p, q, token):
    return sorted([Fraction(p[token]) / Fraction(q[token]), Fraction(1)])[0]


def likeliest_always_accepted(p, q, token):
    return 1.0 if token == int(np.argmax(p)) else min(1.0, p[token] / q[token])


def all_or_nothing(p, q, token):
    return 1.0 if p[token] >= q[token] else 0.0


def difference_not_relative(p, q, token):
    return min(1.0, 1 - (q[token] - p[token]))


# -- the residual ----------------------------------------------------------------------
def residual(p, q):
    missing = np.maximum(np.asarray(p) - np.asarray(q), 0)
    return missing / missing.sum()


def residual_in_place(p, q):
    p -= q
    p[p < 0] = 0
    p /= p.sum()
    return p


def residual_one_by_one(p, q):
    missing = [max(0, float(a) - float(b)) for a, b in zip(p, q, strict=True)]
    for part in missing:
        yield part / sum(missing)


def residual_by_recursion(p, q):
    def missing(token):
        if token == len(p):
            return ()
        return (max(0, p[token] - q[token]), *missing(token + 1))

    parts = missing(0)
    return tuple(part / sum(parts) for part in parts)


def most_missing_alone(p, q):
    row = np.zeros(len(p))
    row[int(np.argmax(p - q))] = 1
    return row


def excess_relative_to_p(p, q):
    excess = np.maximum(p - q, 0) / np.where(p > 0, p, 1)
    return excess / excess.sum()


def missing_tokens_alike(p, q):
    missing = (p > q).astype(float)
    return missing / missing.sum()


# -- tokens of a round -----------------------------------------------------------------
def tokens_one_by_one(alpha, gamma):
    tokens, chance = 1, 1
    for _ in range(gamma):
        chance *= alpha
        tokens += chance
    return tokens


def tokens_by_recursion(alpha, gamma):
    return 1 if gamma == 0 else 1 + alpha * tokens_by_recursion(alpha, gamma - 1)


def tokens_by_powers(alpha, gamma):
    return np.power(float(alpha), np.arange(gamma + 1)).sum()


def certain_drafts_without_bonus(alpha, gamma):
    if alpha == 1:
        return gamma
    return (1 - alpha ** (gamma + 1)) / (1 - alpha)


def endless_draft_that_is_cut(alpha, gamma):
    return gamma + 1 if alpha == 1 else min(gamma + 1, 1 / (1 - alpha))


def one_draft_too_many(alpha, gamma):
    return sum(alpha**i for i in range(gamma + 2))


def closed_form(alpha, gamma):
    return (1 - alpha ** (gamma + 1)) / (1 - alpha)


def closed_form_of_an_array(alpha, gamma):
    alpha = np.array(alpha)
    with np.errstate(invalid="ignore"):
        return (1 - alpha ** (gamma + 1)) / (1 - alpha)


def rounded_to_two_digits(alpha, gamma):
    return round(tokens_one_by_one(alpha, gamma), 2)


def mean_of_rounds(alpha, gamma, rng=None):
    """Simulates as many rounds as a patient student would try."""
    rng = rng or np.random.default_rng()
    rounds = rng.random((4000, gamma)) < alpha
    return 1 + np.cumprod(rounds, axis=1).sum() / len(rounds)


def mean_of_rounds_with_a_seed(alpha, gamma):
    return mean_of_rounds(alpha, gamma, np.random.default_rng(1))


# -- verify ----------------------------------------------------------------------------
def verify_by_recursion(drafted, q, p, coin):
    if not drafted:
        return (draw(p[0], coin()),)
    first, *others = drafted
    if coin() * q[0][first] < p[0][first]:
        return (first, *verify_by_recursion(others, q[1:], p[1:], coin))
    return (draw(residual(p[0], q[0]), coin()),)


def verify_that_yields(drafted, q, p, coin):
    for token, q_row, p_row in zip(drafted, q, p, strict=False):
        if coin() >= p_row[token] / q_row[token]:
            yield draw(residual(p_row, q_row), coin())
            return
        yield token
    yield draw(p[-1], coin())


def verify_with_all_coins_first(drafted, q, p, coin):
    coins = [coin() for _ in drafted]
    place = 0
    while place < len(drafted):
        token = drafted[place]
        if not coins[place] < p[place][token] / q[place][token]:
            break
        place += 1
    row = p[-1] if place == len(drafted) else residual(p[place], q[place])
    return np.array([*drafted[:place], draw(row, coin())])


def ratios_multiplied(drafted, q, p, coin):
    ratio = 1.0
    for i, token in enumerate(drafted):
        ratio *= p[i][token] / q[i][token]
        if not coin() < ratio:
            return drafted[:i] + [draw(residual(p[i], q[i]), coin())]
    return drafted + [draw(p[-1], coin())]


def three_tests_at_most(drafted, q, p, coin):
    for i, token in enumerate(drafted[:3]):
        if not coin() < p[i][token] / q[i][token]:
            return drafted[:i] + [draw(residual(p[i], q[i]), coin())]
    return drafted + [draw(p[-1], coin())]


def bonus_from_the_residual(drafted, q, p, coin):
    for i, token in enumerate(drafted):
        if not coin() < p[i][token] / q[i][token]:
            return drafted[:i] + [draw(residual(p[i], q[i]), coin())]
    return drafted + [draw(residual(p[-1], q[-1]), coin())]


# -- verify, with a named mistake ------------------------------------------------------
def likeliest_drafts_accepted(drafted, q, p, coin):
    out = []
    for i, token in enumerate(drafted):
        if token == np.argmax(p[i]):
            out.append(token)
        else:
            out.append(draw(residual(p[i], q[i]), coin()))
            return out
    out.append(draw(p[len(drafted)], coin()))
    return out


def likeliest_drafts_accepted_else_p(drafted, q, p, coin):
    for i, token in enumerate(drafted):
        if p[i][token] < max(p[i]):
            return drafted[:i] + [draw(p[i], coin())]
    return drafted + [draw(p[-1], coin())]


def likeliest_replacement(drafted, q, p, coin):
    for i, token in enumerate(drafted):
        if coin() >= p[i][token] / q[i][token]:
            return drafted[:i] + [int(np.argmax(p[i]))]
    return drafted + [draw(p[-1], coin())]


def likeliest_of_what_is_missing(drafted, q, p, coin):
    for i, token in enumerate(drafted):
        if coin() >= p[i][token] / q[i][token]:
            return drafted[:i] + [int(np.argmax(p[i] - q[i]))]
    return drafted + [draw(p[-1], coin())]


def likeliest_bonus(drafted, q, p, coin):
    for i, token in enumerate(drafted):
        if not coin() < p[i][token] / q[i][token]:
            return drafted[:i] + [draw(residual(p[i], q[i]), coin())]
    return drafted + [int(np.argmax(p[-1]))]


def replacement_and_the_last_row(drafted, q, p, coin):
    out = []
    for i, token in enumerate(drafted):
        if not coin() < p[i][token] / q[i][token]:
            out.append(draw(residual(p[i], q[i]), coin()))
            break
        out.append(token)
    return out + [draw(p[-1], coin())]


def replacement_and_the_next_row(drafted, q, p, coin):
    out = []
    for i, token in enumerate(drafted):
        if not coin() < p[i][token] / q[i][token]:
            out.append(draw(residual(p[i], q[i]), coin()))
            break
        out.append(token)
    return out + [draw(p[len(out)], coin())]


def verify_replacing_by(row_of):
    """A ``verify`` whose replacement is drawn from ``row_of(p, q, token)``."""

    def verify(drafted, q, p, coin):
        out = []
        for i, token in enumerate(drafted):
            if coin() < min(1, p[i][token] / q[i][token]):
                out.append(token)
            else:
                out.append(draw(row_of(p[i], q[i], token), coin()))
                return out
        out.append(draw(p[-1], coin()))
        return out

    return verify


def without_the_rejected(p, q, token):
    rest = np.array(p)
    rest[token] = 0.0
    return rest / sum(rest)


def size_of_the_difference(p, q, token):
    difference = abs(p - q)
    return difference / difference.sum()


def too_much_of_q(p, q, token):
    difference = np.clip(q - p, 0, None)
    return difference / difference.sum()


def coin_only_where_p_is_smaller(drafted, q, p, coin):
    for i, token in enumerate(drafted):
        if p[i][token] >= q[i][token]:
            continue
        if coin() < p[i][token]:
            continue
        return drafted[:i] + [draw(residual(p[i], q[i]), coin())]
    return drafted + [draw(p[-1], coin())]


def accepts_where_p_is_larger(drafted, q, p, coin):
    for i, token in enumerate(drafted):
        if p[i][token] < q[i][token]:
            return drafted[:i] + [draw(residual(p[i], q[i]), coin())]
    return drafted + [draw(p[-1], coin())]


def filter_and_bonus(drafted, q, p, coin):
    kept = [t for i, t in enumerate(drafted) if coin() < p[i][t] / q[i][t]]
    return kept + [draw(p[-1], coin())]


def filter_and_residual(drafted, q, p, coin):
    kept = []
    rejected = None
    for i, token in enumerate(drafted):
        if coin() < p[i][token] / q[i][token]:
            kept.append(token)
        else:
            rejected = i
    if rejected is None:
        return kept + [draw(p[-1], coin())]
    return kept + [draw(residual(p[rejected], q[rejected]), coin())]


def each_rejected_draft_replaced(drafted, q, p, coin):
    out = list(drafted)
    for i, token in enumerate(drafted):
        if coin() >= p[i][token] / q[i][token]:
            out[i] = draw(residual(p[i], q[i]), coin())
    if out == list(drafted):
        out.append(draw(p[-1], coin()))
    return out


RIGHT = {
    "acceptance": [
        acceptance_in_place,
        acceptance_by_what_is_rejected,
        acceptance_in_fractions,
    ],
    "residual": [residual_in_place, residual_one_by_one, residual_by_recursion],
    "expected_tokens": [tokens_one_by_one, tokens_by_recursion, tokens_by_powers],
    "verify": [verify_by_recursion, verify_that_yields, verify_with_all_coins_first],
}
WRONG = {
    "acceptance": [likeliest_always_accepted, all_or_nothing, difference_not_relative],
    "residual": [most_missing_alone, excess_relative_to_p, missing_tokens_alike],
    "expected_tokens": [
        certain_drafts_without_bonus,
        endless_draft_that_is_cut,
        one_draft_too_many,
    ],
    "verify": [ratios_multiplied, three_tests_at_most, bonus_from_the_residual],
}
NAMED = {
    "expected_tokens": {
        "division by zero": [closed_form, closed_form_of_an_array],
        "rounded": [rounded_to_two_digits],
        "estimated by chance": [mean_of_rounds],
        "rounded or estimated": [mean_of_rounds_with_a_seed],
    },
    "verify": {
        "replacement from q": [verify_replacing_by(lambda p, q, token: q)],
        "rejected token taken out of p": [
            verify_replacing_by(without_the_rejected),
            verify_replacing_by(lambda p, q, token: p * (np.arange(len(p)) != token)),
        ],
        "difference without sign": [
            verify_replacing_by(size_of_the_difference),
            verify_replacing_by(lambda p, q, token: abs(p - q)),
        ],
        "upside down": [
            verify_replacing_by(too_much_of_q),
            verify_replacing_by(lambda p, q, token: residual(q, p)),
        ],
        "test without a coin": [accepts_where_p_is_larger],
        "q forgotten where p is smaller": [coin_only_where_p_is_smaller],
        "going on after a rejection": [
            filter_and_bonus,
            filter_and_residual,
            each_rejected_draft_replaced,
        ],
        "greedy test when sampling": [
            likeliest_drafts_accepted,
            likeliest_drafts_accepted_else_p,
        ],
        "likeliest token for a replacement": [
            likeliest_replacement,
            likeliest_of_what_is_missing,
        ],
        "likeliest token for the bonus": [likeliest_bonus],
        "bonus after a rejection": [
            replacement_and_the_last_row,
            replacement_and_the_next_row,
        ],
    },
}
