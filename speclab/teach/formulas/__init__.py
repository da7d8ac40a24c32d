"""Exercises whose answer is a number or a distribution, by what they are about."""

from .batch_formulas import (
    BATCH_LIMIT,
    BATCH_ROUND,
    check_batch_limit,
    check_batch_round,
)
from .choosing import BEST_GAMMA, BREAK_EVEN, check_best_gamma, check_break_even
from .dsi_formulas import DSI_SECONDS, SERVERS, check_dsi_seconds, check_servers
from .duodecoding import DUO_ROUND, SEQUENCES, check_duo_round, check_sequences
from .easyspec_formulas import (
    EASY_ROUND,
    FUZZY_PASS,
    check_easy_round,
    check_fuzzy_pass,
)
from .network import (
    CLOCK,
    NETWORK_GAMMA,
    NETWORK_ROUND,
    check_clock,
    check_network_gamma,
    check_network_round,
)
from .one_draft import (
    ACCEPTANCE,
    DISTRIBUTIONS,
    RESIDUAL,
    SAMPLES,
    check_acceptance,
    check_residual,
    check_samples,
    distribution,
)
from .round_formulas import (
    EXPECTED_TOKENS,
    ROUND,
    SPEED,
    check_expected_tokens,
    check_round,
    check_speed,
)
from .same_devices import SECONDS, check_seconds
from .ssd_formulas import (
    NEXT_GUESS,
    SSD_ROUND,
    check_next_guess,
    check_ssd_round,
)
from .tables import (
    INTERVAL,
    TWO_COUNTS,
    VERDICT,
    check_interval,
    check_two_counts,
    check_verdict,
)

__all__ = [
    "ACCEPTANCE",
    "BATCH_LIMIT",
    "BATCH_ROUND",
    "BEST_GAMMA",
    "BREAK_EVEN",
    "CLOCK",
    "DISTRIBUTIONS",
    "DSI_SECONDS",
    "DUO_ROUND",
    "EASY_ROUND",
    "EXPECTED_TOKENS",
    "FUZZY_PASS",
    "INTERVAL",
    "NETWORK_GAMMA",
    "NETWORK_ROUND",
    "NEXT_GUESS",
    "RESIDUAL",
    "ROUND",
    "SAMPLES",
    "SECONDS",
    "SEQUENCES",
    "SERVERS",
    "SPEED",
    "SSD_ROUND",
    "TWO_COUNTS",
    "VERDICT",
    "check_acceptance",
    "check_batch_limit",
    "check_batch_round",
    "check_best_gamma",
    "check_break_even",
    "check_clock",
    "check_dsi_seconds",
    "check_duo_round",
    "check_easy_round",
    "check_expected_tokens",
    "check_fuzzy_pass",
    "check_interval",
    "check_network_gamma",
    "check_network_round",
    "check_next_guess",
    "check_residual",
    "check_round",
    "check_samples",
    "check_seconds",
    "check_sequences",
    "check_servers",
    "check_speed",
    "check_ssd_round",
    "check_two_counts",
    "check_verdict",
    "distribution",
]
