"""Exercises on DSI: how many servers keep up, and how long a text takes."""

from __future__ import annotations

from math import ceil

from speclab.check.mistakes import Mistake
from speclab.teach.card import Card

from .formula import Answer, Formula


def servers_of_dsi(draft: float, target: float, lookahead: int) -> int:
    """ceil(t_target / (lookahead t_draft)). Source: DSI, section 3.1, equation 1."""
    return ceil(target / (lookahead * draft))


SERVERS = Formula(
    name="servers",
    arguments=("draft", "target", "lookahead"),
    cases=(
        (1.0, 5.0, 1),
        (1.0, 5.0, 2),
        (1.0, 4.0, 2),
        (1.0, 5.0, 8),
        (0.25, 1.5, 4),
        (0.5, 2.625, 5),  # 1.05 of a server
        (0.5, 10.25, 1),
    ),
    solution=servers_of_dsi,
    asked_for="the number of servers that keep up",
    mistakes=(
        Mistake(
            "lookahead forgotten",
            "A pass tests lookahead drafts at once: how often does a new one begin?",
            lambda draft, target, lookahead: ceil(target / draft),
        ),
        Mistake(
            "rounded down",
            "With two servers, and a pass every 2 s that takes 5 s: who begins at 4 s?",
            lambda draft, target, lookahead: target // (lookahead * draft),
        ),
        Mistake(
            "not rounded",
            "There are no halves of a server.",
            lambda draft, target, lookahead: target / (lookahead * draft),
        ),
        Mistake(
            "rounded to the nearest",
            "A pass of 5 s that begins every 2 s: 2.5 of them are under way on "
            "average. Are two servers enough for one to be always free?",
            lambda draft, target, lookahead: round(target / (lookahead * draft)),
        ),
        Mistake(
            "one server too many",
            "When the first server is done just as the next drafts are there, is "
            "another one needed?",
            lambda draft, target, lookahead: target // (lookahead * draft) + 1,
        ),
    ),
    praise="With so many servers a free one is there whenever drafts are.",
)


def seconds_of_dsi(tokens: int, alpha: float, draft: float, target: float) -> float:
    """t1 p (N - 1) + t2 ((1 - p) (N - 1) + 1). Source: DSI, Proposition 1."""
    right = alpha * (tokens - 1)
    wrong = (1 - alpha) * (tokens - 1)
    return draft * right + target * (wrong + 1)


DSI_SECONDS = Formula(
    name="dsi_seconds",
    arguments=("tokens", "alpha", "draft", "target"),
    cases=(
        (3, 0.5, 1.0, 5.0),
        (1, 0.5, 1.0, 5.0),
        (11, 0.8, 1.0, 5.0),
        (6, 0.0, 1.0, 4.0),
        (6, 1.0, 0.1, 1.0),
        (4, 0.5, 1.0, 5.0),  # one and a half drafts are right, in the mean
    ),
    solution=seconds_of_dsi,
    asked_for="the mean time of the text",
    mistakes=(
        Mistake(
            "last pass forgotten",
            "Who says that the last token is right, and how long does that take?",
            lambda tokens, alpha, draft, target: (
                tokens * (alpha * draft + (1 - alpha) * target)
            ),
        ),
        Mistake(
            "last pass on top",
            "The pass that tests the last token gives it, too: how many drafts are "
            "before it?",
            lambda tokens, alpha, draft, target: (
                tokens * (alpha * draft + (1 - alpha) * target) + target
            ),
        ),
        Mistake(
            "draft waited for",
            "When a draft is wrong, a server has been at work on the text before it "
            "all the while: is the time of the draft added?",
            lambda tokens, alpha, draft, target: (
                (tokens - 1) * (draft + (1 - alpha) * target) + target
            ),
        ),
        Mistake(
            "models taking turns",
            "This is a model that waits for the other one at every token. In DSI the "
            "draft model goes on.",
            lambda tokens, alpha, draft, target: tokens * (draft + target),
        ),
        Mistake(
            "right and wrong exchanged",
            "Which of the two passes does a right draft take?",
            lambda tokens, alpha, draft, target: (
                (tokens - 1) * (alpha * target + (1 - alpha) * draft) + target
            ),
        ),
    ),
    praise="That is Proposition 1 of the paper.",
)


def check_servers(function: Answer) -> Card:
    """Checks ``function(draft, target, lookahead)``: how many servers DSI needs.

    So many that one is free whenever ``lookahead`` new drafts are there. ``draft`` and
    ``target``: seconds of one pass.
    """
    return SERVERS.check(function)


def check_dsi_seconds(function: Answer) -> Card:
    """Checks ``function(tokens, alpha, draft, target)``: the mean seconds of DSI.

    The lookahead is 1, and there is a server for every draft. Each draft is right with
    probability ``alpha``. ``draft`` and ``target``: seconds of one pass.
    """
    return DSI_SECONDS.check(function)
