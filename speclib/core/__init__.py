"""Tokens and chance: what every method, world and model is built on.

Nothing here knows about time or devices.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "candidate_tree",
    "certain_rows",
    "features",
    "kv_prefix",
    "penalties",
    "sampling",
    "settings",
    "text",
    "verification",
)
