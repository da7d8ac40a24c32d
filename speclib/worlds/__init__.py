"""Where methods run: the seam, the virtual clock, real processes, clusters."""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "cluster.cluster_world",
    "cluster.nodes",
    "cost_ratio",
    "devices",
    "enumerator",
    "lockstep",
    "lockstep_processes",
    "lockstep_virtual",
    "owner",
    "processes",
    "virtual",
    "worker",
    "worker_process",
    "world",
)
