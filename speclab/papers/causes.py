"""The causes on the way from a printed speed-up to the measured one, in words."""

from __future__ import annotations

CONTRADICTIONS = ("conflict", "ceiling")  # errata with a different number for a cell

CAUSES = {
    # From print to prediction.
    "its own tables": "other numbers of the paper give a different one for the cell, "
    "or a limit that it exceeds",
    "plain decoding": "the printed seconds of plain decoding, replaced by those at the "
    "paper's own speeds",
    "drafting": "the printed seconds of drafting, replaced by the predicted ones",
    "verification": "the printed seconds of verification, replaced by the predicted "
    "ones, which are for a pass over a single token",
    "unexplained by its tables": "the rest of the step to our prediction",
    # From prediction to measurement.
    "window": "gamma, which here follows from the c measured here",
    "short texts": "a text of few tokens ends within a round",
    "tensor parallelism": "a target pass on several devices, compared with one on a "
    "single device: here these are two cores that share memory",
    "cost ratio": "c, from passes timed while the other model is idle",
    "approximate passes": "draft passes that compute several layers at once, for "
    "several branches of a tree, compared with exact ones",
    "acceptance": "the number of tokens that a round commits",
    "longer passes": "a pass over several tokens takes longer than over one",
    "both at work": "draft and target slow each other down, since they share memory",
    "uneven passes": "a round waits for whichever model is slower in it",
    "messages": "the time of a round in which no model works",
    "not explained": "everything else",
}
