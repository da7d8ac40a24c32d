"""How often drafts pass, place by place in their window: from the cache, or run.

Knows no paper.
"""

from __future__ import annotations

from speclab.experiment.cells.task_prompts import Turn, load_prompts
from speclab.experiment.cells.window_places import PlaceCounts, place_counts
from speclib.data.pairs import load_pair
from speclib.models.open_pair import open_pair

from .of_prompts import load_or_compute_of_prompts

# Modules that enter the key, with all that they import.
CODE = (
    "speclab.experiment.cells.window_places",
    "speclab.experiment.cells.task_prompts",
)


def counts_by_text(
    pair: str, task: str, n: int, gamma: int, tokens: int
) -> list[PlaceCounts]:
    """The counts of the first ``n`` prompts of a task (see ``place_counts``)."""
    found = load_or_compute_of_prompts(
        "places",
        pair,
        task,
        (n, gamma, tokens),
        CODE,
        lambda: _compute(pair, task, n, gamma, tokens),
    )
    return [PlaceCounts(*counts) for counts in found]


def _compute(
    pair: str, task: str, n: int, gamma: int, tokens: int
) -> list[PlaceCounts]:
    opened = open_pair(load_pair(pair))
    asked = load_prompts(task, None, n, opened.tokenizer)
    # A later turn needs the target's own replies.
    texts = [text for text in asked if not isinstance(text, Turn)]
    return place_counts(opened.pair, texts, gamma, tokens)
