"""What every device did and when: events, their statistics, their rounds."""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "events",
    "metrics",
)
