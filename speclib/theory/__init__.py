"""Formulas of the papers: a leaf, which knows no method, world or trace."""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "layer_groups",
    "plain_decoding",
)
