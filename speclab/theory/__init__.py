"""Formulas that only the workbench uses. They do not depend on a method or world."""

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "closed_forms",
    "dsi_accounting",
    "dsi_heatmaps",
    "hardware",
    "layer_schedule",
    "plain_decoding",
)
