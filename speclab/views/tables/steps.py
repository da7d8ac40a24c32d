"""A printed step-by-step example beside the same steps by the method's own code."""

from __future__ import annotations

import pandas as pd

from speclab.papers.load_papers import load_paper
from speclab.papers.pearl_figures import replay_steps
from speclib.arguments import checked


@checked
def steps(paper: str, item: str) -> pd.DataFrame:
    """A row per printed step of ``item``, of the kind virtual.

    ``item`` is a table of ``paper`` that has ``steps``. A row says what the draft model
    proposes, what the paper's step commits, what the method's code commits, and whether
    the two agree.

    A printed block begins with a draft that the step before has tested and committed.
    What follows it is the window: the drafts that are still to be tested.
    """
    table = load_paper(paper).table(item)
    rows = []
    for step, tokens in zip(table.steps, replay_steps(table).committed, strict=False):
        printed = " ".join(step.committed)
        committed = " ".join(tokens)
        row = {
            "step": step.step,
            "mode": step.mode,
            "window": " ".join(step.block[1:]),
            "drafted meanwhile": " ".join(step.draft),
            "printed": printed,
            "here": committed,
            "agrees": "yes" if printed == committed else "no",
        }
        rows.append(row)
    return pd.DataFrame(rows).set_index("step")
