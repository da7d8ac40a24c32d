"""Exercises on batches: how long a round lasts, and up to which batch drafts pay."""

from __future__ import annotations

from speclab.check.mistakes import Mistake
from speclab.teach.card import Card
from speclab.theory.closed_forms import batch_that_stops_paying

from .formula import Answer, Formula


def round_of_batch(
    batch: int, gamma: int, fixed: float, per_token: float, draft: float
) -> float:
    """All windows in one pass, after gamma passes of the draft model. Source: ours."""
    return gamma * draft + fixed + per_token * batch * (gamma + 1)


BATCH_ROUND = Formula(
    name="batch_round",
    arguments=("batch", "gamma", "fixed", "per_token", "draft"),
    cases=(
        (1, 4, 8.0, 0.5, 1.0),
        (16, 4, 8.0, 0.5, 1.0),
        (16, 1, 8.0, 0.5, 1.0),
        (64, 7, 6.0, 0.02, 0.25),
        (3, 2, 1.0, 0.0, 0.5),
        (2, 8, 1.0, 0.01, 1.0),
    ),
    solution=round_of_batch,
    asked_for="the time of a round",
    mistakes=(
        Mistake(
            "one token of each request",
            "In a round of speculative decoding the target model is fed the whole "
            "window of each request, and one token before it.",
            lambda batch, gamma, fixed, per_token, draft: (
                gamma * draft + fixed + per_token * batch
            ),
        ),
        Mistake(
            "last token forgotten",
            "The pass is fed the drafts, and the last token of the text before them.",
            lambda batch, gamma, fixed, per_token, draft: (
                gamma * draft + fixed + per_token * batch * gamma
            ),
        ),
        Mistake(
            "a pass for each request",
            "One pass serves all requests: how often are the weights read?",
            lambda batch, gamma, fixed, per_token, draft: (
                gamma * draft + batch * (fixed + per_token * (gamma + 1))
            ),
        ),
        Mistake(
            "drafting for each request in turn",
            "The draft model serves all requests in one pass, too.",
            lambda batch, gamma, fixed, per_token, draft: (
                batch * gamma * draft + fixed + per_token * batch * (gamma + 1)
            ),
        ),
        Mistake(
            "drafting for free",
            "In speculative decoding the target model waits while the window is "
            "drafted.",
            lambda batch, gamma, fixed, per_token, draft: (
                fixed + per_token * batch * (gamma + 1)
            ),
        ),
    ),
    praise="The weights are read once for all, and each token adds its part.",
)


def limit_of_batch(
    tokens: float, rows: float, fixed: float, per_token: float, drafting: float
) -> float:
    """B*, with nothing cached."""
    return batch_that_stops_paying(tokens, rows, fixed, per_token, drafting)


BATCH_LIMIT = Formula(
    name="batch_limit",
    arguments=("tokens", "rows", "fixed", "per_token", "drafting"),
    cases=(
        (2.0, 4.0, 10.0, 1.0, 2.0),
        (3.0, 5.0, 8.0, 0.05, 4.0),
        (3.0, 5.0, 8.0, 0.05, 0.0),
        (2.533, 4.0, 7.093, 0.02101, 2.135),
        (5.695, 8.0, 7.093, 0.02101, 0.0),
    ),
    solution=limit_of_batch,
    asked_for="the number of requests",
    mistakes=(
        Mistake(
            "drafting for free",
            "Before the pass of a round comes the drafting.",
            lambda tokens, rows, fixed, per_token, drafting: (
                fixed * (tokens - 1) / (per_token * (rows - tokens))
            ),
        ),
        Mistake(
            "every row lost",
            "Plain decoding has rows, too: one for each token that it writes. So only "
            "the rows beyond the tokens of the round are lost.",
            lambda tokens, rows, fixed, per_token, drafting: (
                (fixed * (tokens - 1) - drafting) / (per_token * rows)
            ),
        ),
        Mistake(
            "compared with a single pass",
            "Plain decoding needs a pass for each of the tokens that a round writes.",
            lambda tokens, rows, fixed, per_token, drafting: (
                (fixed * tokens - drafting) / (per_token * (rows - tokens))
            ),
        ),
        Mistake(
            "one row taken from the others",
            "For as many tokens, plain decoding is fed how many rows?",
            lambda tokens, rows, fixed, per_token, drafting: (
                (fixed * (tokens - 1) - drafting) / (per_token * (rows - 1))
            ),
        ),
    ),
    praise="Up to there the weights that are not read again pay for the rows in vain.",
)


def check_batch_round(function: Answer) -> Card:
    """Checks ``function(batch, gamma, fixed, per_token, draft)``: the seconds of a
    round of speculative decoding, of so many requests at a time.

    A target pass takes ``fixed`` seconds, and ``per_token`` for each token that it is
    fed; a draft pass takes ``draft`` seconds, however many requests it serves.
    """
    return BATCH_ROUND.check(function)


def check_batch_limit(function: Answer) -> Card:
    """Checks ``function(tokens, rows, fixed, per_token, drafting)``: at how many
    requests at a time drafting is as fast as plain decoding.

    A round gives ``tokens`` of each request, feeds the target model ``rows`` of each,
    and has ``drafting`` seconds of drafting before its pass.
    """
    return BATCH_LIMIT.check(function)
