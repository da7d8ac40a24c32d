"""Exercises on EasySpec: the time of a fuzzy pass, and of a round."""

from __future__ import annotations

from speclab.check.mistakes import Mistake
from speclab.teach.card import Card

from .formula import Answer, Formula


def fuzzy_pass(groups: list[int], attention: float, mlp: float) -> float:
    """Attentions of a group at once, MLPs in order. Source: EasySpec, Algorithm 2."""
    return len(groups) * attention + sum(groups) * mlp


FUZZY_PASS = Formula(
    name="fuzzy_pass",
    arguments=("groups", "attention", "mlp"),
    cases=(
        ([1, 2, 1], 2.0, 1.0),
        ([1, 1, 1], 2.0, 1.0),
        ([1, 3, 4, 1, 1], 0.5, 0.25),
        ([1], 3.0, 2.0),
        ([2, 6, 1, 1, 1, 1, 1], 0.5, 0.25),
    ),
    solution=fuzzy_pass,
    asked_for="the time of a fuzzy pass",
    mistakes=(
        Mistake(
            "exact pass",
            "This is an exact pass, one layer after the other. Which parts of a group "
            "run at once?",
            lambda groups, attention, mlp: sum(groups) * (attention + mlp),
        ),
        Mistake(
            "MLPs at once",
            "Each MLP reads what the one before it made: they follow in order.",
            lambda groups, attention, mlp: len(groups) * (attention + mlp),
        ),
        Mistake(
            "parts exchanged",
            "Which of the two runs at once, attention or the MLP?",
            lambda groups, attention, mlp: sum(groups) * attention + len(groups) * mlp,
        ),
        Mistake(
            "attention and MLP at once",
            "An MLP reads what the attention of its layer has added. Can it begin "
            "earlier?",
            lambda groups, attention, mlp: max(
                len(groups) * attention, sum(groups) * mlp
            ),
        ),
    ),
    praise="However many devices there are, the MLPs stay.",
)


def round_of_easyspec(gamma: int, exact: float, fuzzy: float, target: float) -> float:
    """One exact pass, gamma - 1 fuzzy ones, the test. Source: EasySpec, section 3.2."""
    return exact + (gamma - 1) * fuzzy + target


EASY_ROUND = Formula(
    name="easy_round",
    arguments=("gamma", "exact", "fuzzy", "target"),
    cases=(
        (3, 4.0, 2.0, 10.0),
        (1, 4.0, 2.0, 10.0),
        (5, 0.5, 0.25, 1.0),
        (5, 2.0, 2.0, 6.0),
        (2, 3.0, 1.0, 2.0),
        (8, 3.0, 1.0, 2.0),
    ),
    solution=round_of_easyspec,
    asked_for="the time of a round",
    mistakes=(
        Mistake(
            "calibration on top",
            "The exact pass also gives the first level of the tree: how many fuzzy "
            "passes are left?",
            lambda gamma, exact, fuzzy, target: exact + gamma * fuzzy + target,
        ),
        Mistake(
            "calibration forgotten",
            "Which pass fills the cache with keys and values that are not fuzzy?",
            lambda gamma, exact, fuzzy, target: gamma * fuzzy + target,
        ),
        Mistake(
            "nothing fuzzy",
            "Only the first pass of a round is exact.",
            lambda gamma, exact, fuzzy, target: gamma * exact + target,
        ),
        Mistake(
            "test forgotten",
            "Who tests the tree, and on which devices?",
            lambda gamma, exact, fuzzy, target: exact + (gamma - 1) * fuzzy,
        ),
        Mistake(
            "both at once",
            "Draft and target model are on the same devices: can they work at once?",
            lambda gamma, exact, fuzzy, target: max(
                exact + (gamma - 1) * fuzzy, target
            ),
        ),
    ),
    praise="So calibration costs one exact pass in place of a fuzzy one.",
)


def check_fuzzy_pass(function: Answer) -> Card:
    """Checks ``function(groups, attention, mlp)``: the seconds of a fuzzy pass.

    ``groups``: how many layers each group has. ``attention`` and ``mlp``: seconds of
    the two parts of a layer. Each layer of a group has a device of its own.
    """
    return FUZZY_PASS.check(function)


def check_easy_round(function: Answer) -> Card:
    """Checks ``function(gamma, exact, fuzzy, target)``: the seconds of a round of
    EasySpec, with calibration.

    ``exact`` and ``fuzzy``: seconds of a pass of the draft model.
    """
    return EASY_ROUND.check(function)
