"""What a device can be asked to do: each operation has an import and a line here.

A registered operation is traced and drawn in timelines. To have it tested, add an
example of it to the tests.
"""

from .draft_dynamic_tree import DraftDynamicTree
from .draft_phrase import DraftPhrase
from .draft_sequences import DraftSequences
from .draft_tree import DraftTree
from .fork import Fork
from .operation import Operation
from .propose import Propose
from .score import Score, ScoreTree, ScoreTreeFeatures

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
