"""Exercises on several machines: what messages cost, and clocks that do not agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from speclab.check.mistakes import Mistake
from speclab.teach.card import Card

from .formula import Answer, Formula

# Readings of one round trip: of our clock before, of the other clock, of ours after.
Trip: TypeAlias = tuple[float, float, float]


# -- what messages cost ----------------------------------------------------------------
def round_over_network(
    gamma: int, draft: float, target: float, draft_message: float, target_message: float
) -> float:
    """A question and an answer for each of the two operations. Source: ours."""
    drafting = draft_message + gamma * draft + draft_message
    testing = target_message + target + target_message
    return drafting + testing


NETWORK_ROUND = Formula(
    name="network_round",
    arguments=("gamma", "draft", "target", "draft_message", "target_message"),
    cases=(
        (4, 1.0, 5.0, 0.0, 2.0),
        (4, 1.0, 5.0, 0.5, 2.0),
        (1, 1.0, 4.0, 3.0, 0.25),
        (5, 0.02, 0.1, 0.01, 0.03),
        (3, 1.0, 5.0, 0.0, 0.0),
        (9, 1.0, 5.0, 0.5, 2.0),
    ),
    solution=round_over_network,
    asked_for="the time of a round",
    mistakes=(
        Mistake(
            "answers forgotten",
            "A question goes there. What has to come back before the next step begins?",
            lambda gamma, draft, target, draft_message, target_message: (
                gamma * draft + draft_message + target + target_message
            ),
        ),
        Mistake(
            "messages for every draft",
            "The draft model is asked for all gamma drafts at once: how many questions "
            "and answers is that?",
            lambda gamma, draft, target, draft_message, target_message: (
                gamma * (draft + 2 * draft_message) + target + 2 * target_message
            ),
        ),
        Mistake(
            "both at once",
            "That is a round of PEARL. In speculative decoding the target model is "
            "asked once the drafts have come.",
            lambda gamma, draft, target, draft_message, target_message: max(
                gamma * draft + 2 * draft_message, target + 2 * target_message
            ),
        ),
        Mistake(
            "only the target's messages",
            "The draft model may be on another machine, too.",
            lambda gamma, draft, target, draft_message, target_message: (
                gamma * draft + target + 2 * target_message
            ),
        ),
        Mistake(
            "no network",
            "These are the passes alone. How do drafts get to the target model?",
            lambda gamma, draft, target, draft_message, target_message: (
                gamma * draft + target
            ),
        ),
    ),
    praise="Four messages for each round, however many drafts it has.",
)


def gamma_over_network(
    draft: float, target: float, draft_message: float, target_message: float
) -> float:
    """Where gamma t_draft + 2 m_draft = t_target + 2 m_target.

    Source: PEARL, Theorem 1, with the messages' time added to that of the passes.
    """
    return (target + 2 * target_message - 2 * draft_message) / draft


NETWORK_GAMMA = Formula(
    name="network_gamma",
    arguments=("draft", "target", "draft_message", "target_message"),
    cases=(
        (1.0, 5.0, 0.0, 1.0),
        (1.0, 5.0, 1.0, 0.0),
        (0.5, 5.0, 0.5, 2.0),
        (0.25, 1.0, 0.125, 0.125),
        (1.0, 5.0, 0.0, 0.0),
        (0.8, 5.0, 0.25, 1.0),  # 8.125: it need not be whole
    ),
    solution=gamma_over_network,
    asked_for="the draft length with which nobody waits",
    mistakes=(
        Mistake(
            "no network",
            "That is c, as in lesson 20. With messages, how long is it from a question "
            "to the target model until its answer is there?",
            lambda draft, target, draft_message, target_message: target / draft,
        ),
        Mistake(
            "answers forgotten",
            "The answer takes a message, too.",
            lambda draft, target, draft_message, target_message: (
                (target + target_message - draft_message) / draft
            ),
        ),
        Mistake(
            "only the target's messages",
            "What if the draft model's messages take long? Then it has less time for "
            "drafts.",
            lambda draft, target, draft_message, target_message: (
                (target + 2 * target_message) / draft
            ),
        ),
        Mistake(
            "all messages added",
            "Both models are asked at the same time. Do messages to the draft model "
            "leave it more time for drafts, or less?",
            lambda draft, target, draft_message, target_message: (
                (target + 2 * target_message + 2 * draft_message) / draft
            ),
        ),
        Mistake(
            "messages for every draft",
            "All gamma drafts come in one answer.",
            lambda draft, target, draft_message, target_message: (
                (target + 2 * target_message) / (draft + 2 * draft_message)
            ),
        ),
        Mistake(
            "models taking turns",
            "Both work at once here: set the time of the one equal to the time of the "
            "other.",
            lambda draft, target, draft_message, target_message: (
                (target + 2 * target_message + 2 * draft_message + draft) / draft
            ),
        ),
    ),
    praise="So a slow network to the target model asks for longer drafts.",
)


# -- clocks ----------------------------------------------------------------------------
def surest_offset(trips: Sequence[Trip]) -> tuple[float, float]:
    """Half of the shortest trip is the error. Source: Cristian 1989, section 4."""
    before, theirs, after = min(trips, key=lambda trip: trip[2] - trip[0])
    return theirs - (before + after) / 2, (after - before) / 2


def _offsets(trips: Sequence[Trip]) -> list[float]:
    """How far the other clock is ahead, as each of the trips tells."""
    return [theirs - (before + after) / 2 for before, theirs, after in trips]


def _mean_offset(trips: Sequence[Trip]) -> tuple[float, float]:
    """The mistake of taking all trips as equally good."""
    errors = [(after - before) / 2 for before, _theirs, after in trips]
    return sum(_offsets(trips)) / len(trips), sum(errors) / len(errors)


def _offset_of(trip: Trip) -> tuple[float, float]:
    """What one trip tells."""
    before, theirs, after = trip
    return theirs - (before + after) / 2, (after - before) / 2


CLOCK = Formula(
    name="clock",
    arguments=("trips",),
    cases=(
        ([(10.0, 115.0, 12.0)],),
        ([(10.0, 115.0, 12.0), (20.0, 124.5, 21.0)],),
        ([(0.0, -2.5, 1.0), (5.0, -0.75, 5.5), (9.0, 7.0, 13.0)],),
        ([(3.0, 2.75, 3.25), (4.0, 4.25, 4.75)],),
        (
            [
                (1.0, 8.5, 3.0),
                (4.0, 11.75, 5.5),
                (6.0, 13.25, 9.0),
                (10.0, 17.5, 11.0),  # the quickest, and its question took longest
                (12.0, 19.0, 14.0),
            ],
        ),
    ),
    solution=surest_offset,
    asked_for="the pair (offset, error)",
    mistakes=(
        Mistake(
            "sign exchanged",
            "The offset is what has to be taken from the other clock's reading to get "
            "ours. Is it positive where the other clock is ahead?",
            lambda trips: (-surest_offset(trips)[0], surest_offset(trips)[1]),
        ),
        Mistake(
            "whole trip as error",
            "The other clock was read somewhere between before and after. How far from "
            "the middle can that be?",
            lambda trips: (surest_offset(trips)[0], 2 * surest_offset(trips)[1]),
        ),
        Mistake(
            "read when asked",
            "The question was under way for a while before the other clock was read: "
            "when was it read, by ours, as far as one can tell?",
            lambda trips: (
                surest_offset(trips)[0] + surest_offset(trips)[1],
                surest_offset(trips)[1],
            ),
        ),
        Mistake(
            "mean of all trips",
            "A slow trip tells little. Why should it make a quick one less sure?",
            _mean_offset,
        ),
        Mistake(
            "longest trip",
            "Which trip says most about when the other clock was read?",
            lambda trips: _offset_of(max(trips, key=lambda trip: trip[2] - trip[0])),
        ),
        Mistake(
            "last trip",
            "A later trip is not a surer one: compare how long they took.",
            lambda trips: _offset_of(trips[-1]),
        ),
        Mistake(
            "first trip",
            "There are several trips: which one is the surest?",
            lambda trips: _offset_of(trips[0]),
        ),
    ),
    praise="The quickest trip is the surest: that is Cristian's algorithm of 1989.",
)


# -- checks ----------------------------------------------------------------------------
def check_network_round(function: Answer) -> Card:
    """Checks ``function(gamma, draft, target, draft_message, target_message)``: the
    seconds of a round of speculative decoding over a network.

    ``draft`` and ``target``: seconds of one pass. ``draft_message`` and
    ``target_message``: seconds of one message, one way.
    """
    return NETWORK_ROUND.check(function)


def check_network_gamma(function: Answer) -> Card:
    """Checks ``function(draft, target, draft_message, target_message)``: the draft
    length with which in PEARL nobody waits; it need not be whole.
    """
    return NETWORK_GAMMA.check(function)


def check_clock(function: Answer) -> Card:
    """Checks ``function(trips)``: how far another clock is ahead of ours, and how far
    off that may be, both in seconds.

    ``trips``: a list of (before, theirs, after).
    """
    return CLOCK.check(function)
