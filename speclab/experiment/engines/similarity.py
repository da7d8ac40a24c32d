"""How near a draft's fuzzy states are to its exact ones: from the cache, or run.

Knows no paper and no network.
"""

from __future__ import annotations

from speclab.experiment.cells.layer_similarity import Similarities, similarities
from speclab.experiment.cells.task_prompts import load_prompts
from speclib.data.pairs import Pair, load_pair
from speclib.models.open_pair import open_pair

from .of_prompts import load_or_compute_of_prompts

# Modules that enter the key, with all that they import.
CODE = (
    "speclab.experiment.cells.layer_similarity",
    "speclab.experiment.cells.task_prompts",
)


def draft_similarities(
    pair: str, task: str, length: int, n: int, lp: int
) -> list[Similarities]:
    """How near the fuzzy states of a pair's draft are to its exact ones, for each text.

    pair    its draft is taken as it was trained
    task    the ``n`` texts are its prompts, joined and cut to ``length`` tokens
    lp      layers to a group, at most (see ``similarities``)
    """
    return load_or_compute_of_prompts(
        "similar",
        pair,
        task,
        (length, n, lp),
        CODE,
        lambda: compute_similarities(load_pair(pair), task, length, n, lp),
    )


def compute_similarities(
    pair: Pair, task: str, length: int, n: int, lp: int
) -> list[Similarities]:
    """The same, computed."""
    results = []
    for text in load_prompts(task, length, n, open_pair(pair).tokenizer):
        assert isinstance(text, str)  # as each prompt of a given length is
        results.append(similarities(pair, text, lp))
    return results
