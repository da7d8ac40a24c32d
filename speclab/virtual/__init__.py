"""The virtual clock: cells of toys, run when they are asked for, and always the same.

``cells`` runs a ``VirtualSpec``, with the window and the settings that
``settle`` finds for it. Knows no paper, and keeps nothing.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "cells",
    "grid_row",
    "latency_acceptance_grid",
    "outputs",
    "settle",
    "toy_requests",
)
