"""Measures cells on this machine; every run leaves a row.

``measure`` works through a list of steps. Measured cells run real models, and emulated
cells run toys that take a latency file's times. ``fit`` sizes a stand-in's draft for
this machine. This room does not import ``papers``, which computes numbers from rows.
"""

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "fit",
    "layer_similarity",
    "measure",
)
