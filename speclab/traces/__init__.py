"""What is read off a trace for a report, a lesson or a picture."""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "acceptance",
    "caches",
    "counts",
    "cut_traces",
    "reconcile",
    "rounds",
)
