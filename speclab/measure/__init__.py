"""Measures cells on this machine, and records every run as a row.

``measure`` works through a list of steps. Measured cells run real models, and emulated
cells run toy models whose passes last as long as a latency file specifies. ``fit``
sizes a stand-in's draft for this machine. This package does not import ``papers``,
which computes numbers from rows.
"""

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "fit",
    "layer_similarity",
    "measure",
)
