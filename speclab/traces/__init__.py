"""Extracts from a trace what a report, a lesson or a picture requires."""

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "acceptance",
    "caches",
    "counts",
    "cut_traces",
    "reconcile",
    "rounds",
)
