"""Where methods run: the seam, the virtual clock, real processes, clusters."""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "batch_world",
    "cluster.cluster_world",
    "cost_ratio",
    "devices",
    "enumerator",
    "owner",
    "performer",
    "process_batch",
    "processes",
    "virtual",
    "virtual_batch",
    "worker",
    "world",
)
