"""Measuring: cells are run on this machine, and every run leaves a row.

``measure`` works through a list of steps. Measured cells run real models, emulated ones
toys that take as long as a latency file says. ``fit`` sizes a stand-in's draft for this
machine. Knows no paper, and computes no number of a table.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "fit",
    "layer_similarity",
    "measure",
)
