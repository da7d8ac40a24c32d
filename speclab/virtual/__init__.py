"""Runs cells on the virtual clock, with toy models and deterministic results.

``cells`` runs a ``VirtualSpec`` with the window and the settings that ``settle``
chooses for it. This folder does not import ``papers``, and stores nothing.
"""

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "cells",
    "grid_row",
    "latency_acceptance_grid",
    "outputs",
    "settle",
    "toy_requests",
)
