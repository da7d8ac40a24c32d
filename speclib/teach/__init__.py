"""Exercises that judge themselves: a student's own code gets an exact answer.

``check_...(function)`` runs a student's function and answers with a card: right, or the
smallest counterexample, with numbers, and the likely cause. Functions that flip coins
are walked over every outcome, so the answer is exact and not a matter of luck. Nothing
is raised, whatever the function does.

``hint``, ``predict``, ``quiz``, ``progress`` and ``real_run`` are what a lesson has
besides.
"""

from .bugs import find_bug, outcome_tree
from .coin import draw
from .formulas import (
    check_acceptance,
    check_expected_tokens,
    check_residual,
    check_round,
    check_samples,
    check_speed,
)
from .method_exercise import check_method, check_pearl
from .questions import hint, predict, progress, quiz
from .real_run import real_run
from .verify_exercise import check_verify

__all__ = [
    "check_acceptance",
    "check_expected_tokens",
    "check_method",
    "check_pearl",
    "check_residual",
    "check_round",
    "check_samples",
    "check_speed",
    "check_verify",
    "draw",
    "find_bug",
    "hint",
    "outcome_tree",
    "predict",
    "progress",
    "quiz",
    "real_run",
]
