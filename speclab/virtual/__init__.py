"""Cells on the virtual clock: run on demand with toy models, and deterministic.

``cells`` runs a ``VirtualSpec`` with the window and the settings that ``settle`` finds
for it. Knows no paper, and stores nothing.
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
