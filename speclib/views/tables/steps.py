"""A printed step-by-step example beside the same steps done by the method's own code."""

from __future__ import annotations

import pandas as pd

from speclib.papers.load import load_paper
from speclib.papers.pearl_figures import replay_steps


def steps(paper: str, item: str) -> pd.DataFrame:
    """Kind virtual: a row per printed step of ``item`` (a table with ``steps``): what the draft
    proposes, what the paper's step commits, what the method's code commits, whether they agree."""
    table = load_paper(paper).tables[item]
    here = [" ".join(tokens) for tokens in replay_steps(table).committed]
    rows = []
    for step, ours in zip(table.steps, here, strict=False):
        printed = " ".join(step.committed)
        rows.append(
            {
                "step": step.step,
                "mode": step.mode,
                "window": " ".join(step.block),
                "drafted meanwhile": " ".join(step.draft),
                "printed": printed,
                "here": ours,
                "agrees": "yes" if printed == ours else "no",
            }
        )
    return pd.DataFrame(rows).set_index("step")
