"""Self-grading exercises with exact answers.

``check_...(function)`` runs a student's function and returns a card. The card confirms
a correct answer, or shows the smallest counterexample with numbers and the likely
cause. For functions that flip coins, every outcome is enumerated, so the answer does
not depend on luck. Errors in the function are reported on the card, never raised.

Lessons also use ``predict``, ``quiz``, ``find_bugs``, ``outcome_tree``, ``real_run``,
``stored_runs`` and ``plan_run``.
"""

from speclab.check.coin import draw

from .bugs import find_bugs, outcome_tree
from .formulas import (
    check_acceptance,
    check_batch_limit,
    check_best_gamma,
    check_break_even,
    check_dsi_seconds,
    check_duo_round,
    check_easy_round,
    check_expected_tokens,
    check_fuzzy_pass,
    check_next_guess,
    check_residual,
    check_round,
    check_samples,
    check_seconds,
    check_sequences,
    check_servers,
    check_speed,
    check_ssd_round,
)
from .methods_to_write import (
    check_dsi,
    check_duodecoding,
    check_method,
    check_pearl,
)
from .questions import predict, quiz
from .real_run import plan_run, real_run
from .runs_of_lessons import stored_runs
from .tests_to_write import check_block, check_pick, check_verify

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "board_pictures",
    "lessons",
)

__all__ = [
    "check_acceptance",
    "check_batch_limit",
    "check_best_gamma",
    "check_block",
    "check_break_even",
    "check_dsi",
    "check_dsi_seconds",
    "check_duo_round",
    "check_duodecoding",
    "check_easy_round",
    "check_expected_tokens",
    "check_fuzzy_pass",
    "check_method",
    "check_next_guess",
    "check_pearl",
    "check_pick",
    "check_residual",
    "check_round",
    "check_samples",
    "check_seconds",
    "check_sequences",
    "check_servers",
    "check_speed",
    "check_ssd_round",
    "check_verify",
    "draw",
    "find_bugs",
    "outcome_tree",
    "plan_run",
    "predict",
    "quiz",
    "real_run",
    "stored_runs",
]
