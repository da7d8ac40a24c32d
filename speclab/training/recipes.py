"""What is trained: the embedded models' architectures, and how each draft learns."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd

from .fit import ZooArchitecture

TARGET = ZooArchitecture(layers=6, width=256, heads=4, ffn=688)
DRAFT = ZooArchitecture(layers=3, width=192, heads=3, ffn=512)
# Deep enough for groups of 2 to 5 layers that share an input.
DEEP = ZooArchitecture(layers=10, width=128, heads=2, ffn=352)
# Small, as it computes all tokens of a window in one pass.
ONCE = ZooArchitecture(layers=3, width=128, heads=2, ffn=256)
QWEN_TARGET = ZooArchitecture(layers=6, width=128, heads=2, ffn=352, family="qwen2")
QWEN = ZooArchitecture(layers=10, width=96, heads=2, ffn=176, family="qwen2")


@dataclass(frozen=True)
class DraftRecipe:
    """How one draft is made.

    teacher: the checkpoint that it learns to agree with.
    learns_from_output: it has a second pass, on what its teacher wrote. The drafts for
        EasySpec have none: with it they would be better than the paper's.
    snapshots: worse drafts, each a copy of this one at a step of its first pass.
    masks: it learns to write tokens in one pass, too, behind so many masks at most (see
        ``speclib.operations.propose``). 0: it writes one after the other.
    """

    architecture: ZooArchitecture
    teacher: str = "target"
    learns_from_output: bool = False
    snapshots: dict[str, int] = field(default_factory=dict)
    masks: int = 0


# In the order in which they are trained: target-qwen, the teacher of draft-qwen, is
# itself a draft of zoo/target. A draft's index in this order is part of its seed.
DRAFTS = {
    "draft-good": DraftRecipe(
        DRAFT,
        learns_from_output=True,
        snapshots={"draft-fair": 500, "draft-plain": 400, "draft-poor": 200},
    ),
    "draft-deep": DraftRecipe(DEEP),
    "target-qwen": DraftRecipe(QWEN_TARGET),
    "draft-qwen": DraftRecipe(QWEN, teacher="target-qwen"),
    "draft-once": DraftRecipe(ONCE, learns_from_output=True, masks=7),
}


def steps_between_savings() -> int:
    """How often a fit has to save its model so that no snapshot is missed."""
    steps: list[int] = []
    for recipe in DRAFTS.values():
        steps += recipe.snapshots.values()
    return gcd(*steps)
