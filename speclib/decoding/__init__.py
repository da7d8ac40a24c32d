"""From a prompt to a result: decoding, what-if simulations and replays."""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "auto_settings",
    "batch",
    "compare",
    "decode",
    "open_world",
    "replay",
    "simulate",
    "text_request",
)
