"""PEARL's formulas and printed steps, worked out: nothing here is left to chance.

The formulas assume that each tested draft is accepted with the same probability, and
that a pass takes as long whatever it is fed.
"""

from __future__ import annotations

from speclab.audit.quantity import Quantities, Quantity
from speclab.papers.load_papers import load_paper
from speclab.papers.pearl_figures import replay_steps
from speclab.theory.closed_forms import (
    pearl_best,
    pearl_speed,
    pearl_tokens,
    run_tokens,
    theorem_2,
)
from speclib.data.latency import load_latency
from speclib.errors import BadValue

from .pearl_counts import (
    DRAFT_OF_PEARL,
    TARGET_OF_PEARL,
    count_of_passes,
    tokens_of_full_texts,
)

RATES = tuple(percent / 100 for percent in range(2, 100, 2))  # of acceptance, all tried
NEGLIGIBLE = 1e-15  # a chance below which longer runs add nothing


def whole_cost_ratios(requests: int, largest: int) -> Quantities:
    """How far a window of c is from the best window, where c is a whole number.

    All c from 1 to ``largest`` are tried, with acceptance rates from 0.02 to 0.98. The
    quantity is the worst of them: PEARL's speed at c over its speed at the best window.
    """
    worst = 1.0
    for c in range(1, largest + 1):
        for alpha in RATES:
            best = pearl_best(alpha, draft=1.0, target=float(c))
            at_c = pearl_speed(alpha, c, draft=1.0, target=float(c))
            at_best = pearl_speed(alpha, best, draft=1.0, target=float(c))
            worst = min(worst, at_c / at_best)
    return {"speed at c over the best, at worst": Quantity.exact(worst, "arithmetic")}


def rounded_cost_ratio(requests: int, latency: str, alpha: str) -> Quantities:
    """The rounded c of a pair of models, and the window that the formula puts first.

    ``alpha`` is a calibration of PEARL's paper.
    """
    times = load_latency(latency)
    draft, target = times.draft(1), times.target(1)
    rate = load_paper("pearl").alpha(alpha)
    best = pearl_best(rate, draft, target)
    rounded = round(target / draft)
    speeds = [pearl_speed(rate, gamma, draft, target) for gamma in (rounded, best)]
    return {
        "c": Quantity.exact(target / draft, "paper"),
        "c rounded": Quantity.exact(rounded, "paper"),
        "best window": Quantity.exact(best, "paper"),
        "speed at c rounded over the best": Quantity.exact(
            speeds[0] / speeds[1], "paper"
        ),
    }


def tokens_of_a_run(requests: int, alpha: float) -> Quantities:
    """Tokens from one rejection to the next, by their chances and by Theorem 2.

    A run of k accepted drafts has the chance alpha^k (1 - alpha); after it the target's
    own token stands for the rejected draft.
    """
    accepted = 0.0
    length, chance = 0, 1 - alpha
    while chance > NEGLIGIBLE:
        accepted += length * chance
        length, chance = length + 1, chance * alpha

    accepted_after_pre_verify = accepted / alpha if alpha else 1.0
    return {
        "by the theorem": Quantity.exact(theorem_2(alpha), "arithmetic"),
        "accepted drafts": Quantity.exact(accepted, "arithmetic"),
        "accepted drafts and the target's token": Quantity.exact(
            accepted + 1, "arithmetic"
        ),
        "the same, where the first draft has passed": Quantity.exact(
            accepted_after_pre_verify + 1, "arithmetic"
        ),
    }


def unfinished_runs(requests: int, row: str, column: str) -> Quantities:
    """The share of tokens after a text's last rejection that explains Table 11.

    The published code notes the length of a run when it ends with a rejection. So
    tokens after the last one enter no mean, and a block of them takes one pass. All
    other tokens are in runs of Table 7's mean length, whose chance is geometric.
    """
    passes = count_of_passes(row, TARGET_OF_PEARL)
    gamma = round(count_of_passes(row, DRAFT_OF_PEARL) / passes)
    length = load_paper("pearl").printed("table-7", "Ours", column)
    if length is None:
        raise BadValue(f"PEARL's Table 7 has no column {column!r}")

    alpha = length / (length + 1)
    tokens = tokens_of_full_texts()
    with_rejections = tokens / pearl_tokens(alpha, gamma)
    without = tokens / gamma
    share = (with_rejections - passes) / (with_rejections - without)
    return {
        "passes by Table 7's length": Quantity.exact(with_rejections, "paper"),
        "printed passes": Quantity.exact(passes, "paper"),
        "tokens per run": Quantity.exact(run_tokens(alpha), "paper"),
        "share of tokens after the last rejection": Quantity.exact(share, "paper"),
    }


def printed_steps(requests: int, item: str) -> Quantities:
    """How many printed steps the method's own code takes as they are printed.

    Both models say what the steps print of them, so there is one outcome only.
    """
    table = load_paper("pearl").table(item)
    replayed = replay_steps(table)
    same = 0
    for step, committed in zip(table.steps, replayed.committed, strict=True):
        same += tuple(step.committed) == committed
    return {
        "printed steps": Quantity.exact(len(table.steps), "paper"),
        "steps that commit the printed tokens": Quantity.exact(same),
    }
