"""From a prompt to a result: decode, what-ifs, replays, others' methods beside ours."""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "auto_settings",
    "batch",
    "decode",
    "encode",
    "replay",
    "simulate",
)
