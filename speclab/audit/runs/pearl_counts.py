"""Arithmetic on PEARL's Table 11, which counts the passes of both models."""

from __future__ import annotations

from speclab.audit.quantity import Quantities, Quantity
from speclab.papers.load_papers import load_paper
from speclab.theory.closed_forms import (
    alpha_from_accepted,
    alpha_from_run_ratio,
    run_tokens,
    sd_tokens,
)
from speclib.errors import BadValue

TARGET_OF_SD, TARGET_OF_PEARL = "Target Model (SD)", "Target Model (PEARL)"
DRAFT_OF_SD, DRAFT_OF_PEARL = "Draft Model (SD)", "Draft Model (PEARL)"


def count_of_passes(row: str, column: str) -> float:
    """A count of Table 11."""
    count = load_paper("pearl").printed("table-11", row, column)
    if count is None:
        raise BadValue(f"PEARL's Table 11 has no {[row, column]}")
    return count


def tokens_of_full_texts() -> float:
    """Tokens of all prompts of HumanEval, if each text is as long as it may be."""
    task = load_paper("pearl").facts["tasks"]["humaneval"]
    return float(task["prompts"] * task["max_new_tokens"])


def length_by_counts(requests: int, row: str, column: str) -> Quantities:
    """Accepted drafts between two rejections of PEARL: printed, and by Table 11.

    Two acceptance rates follow from Table 11, if each draft is accepted with the same
    probability: one from the passes of speculative decoding, if all texts have full
    length, and one from PEARL's passes over these, which needs no length.
    """
    gamma = round(
        count_of_passes(row, DRAFT_OF_SD) / count_of_passes(row, TARGET_OF_SD)
    )
    ratio = count_of_passes(row, TARGET_OF_PEARL) / count_of_passes(row, TARGET_OF_SD)
    alpha = alpha_from_run_ratio(ratio, gamma)
    tokens = tokens_of_full_texts() / count_of_passes(row, TARGET_OF_SD)
    alpha_of_baseline = alpha_from_accepted(tokens - 1, gamma)
    printed = load_paper("pearl").printed("table-7", "Ours", column)
    if printed is None:
        raise BadValue(f"PEARL's Table 7 has no column {column!r}")
    return {
        "draft length": Quantity.exact(gamma, "paper"),
        "length by the baseline's counts": Quantity.exact(
            run_tokens(alpha_of_baseline) - 1, "paper"
        ),
        "length by both counts": Quantity.exact(run_tokens(alpha) - 1, "paper"),
        "length by Table 7": Quantity.exact(printed, "paper"),
    }


def tokens_per_pass(requests: int, row: str, alpha: str) -> Quantities:
    """Tokens of a pass of speculative decoding: by its acceptance rate, and by counts.

    ``alpha`` is a calibration, from Table 7's accepted drafts. The counts are Table
    11's, if every text had as many tokens as Appendix C.1 allows, or half as many.
    """
    paper = load_paper("pearl")
    passes = count_of_passes(row, TARGET_OF_SD)
    gamma = round(count_of_passes(row, DRAFT_OF_SD) / passes)
    by_counts = tokens_of_full_texts() / passes
    by_rate = sd_tokens(paper.alpha(alpha), gamma)
    return {
        "by Table 7's acceptance": Quantity.exact(by_rate, "paper"),
        "by counts, texts of full length": Quantity.exact(by_counts, "paper"),
        "by counts, texts of half that length": Quantity.exact(by_counts / 2, "paper"),
    }
