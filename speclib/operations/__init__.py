"""What a device can be asked to do: one file an operation, and one line here.

Being registered, an operation is tested, traced and drawn in timelines.
"""

from .draft_dynamic_tree import DraftDynamicTree
from .draft_phrase import DraftPhrase
from .draft_sequences import DraftSequences
from .draft_tree import DraftTree
from .fork import Fork
from .operation import Operation
from .propose import Propose
from .score import Score
from .score_tree import ScoreTree
from .score_tree_features import ScoreTreeFeatures

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "draft_dynamic_tree",
    "draft_phrase",
    "draft_sequences",
    "draft_tree",
    "fork",
    "model",
    "operation",
    "payload",
    "propose",
    "score",
    "score_tree",
    "score_tree_features",
)

OPERATIONS: dict[str, type[Operation]] = {
    operation.name: operation
    for operation in (
        Propose,
        DraftPhrase,
        DraftSequences,
        DraftTree,
        DraftDynamicTree,
        Fork,
        Score,
        ScoreTree,
        ScoreTreeFeatures,
    )
}
