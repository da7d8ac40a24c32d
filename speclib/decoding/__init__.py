"""From a prompt to a result: decode, what-ifs, replays."""

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
