"""What every device did and when: events and their statistics."""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "events",
    "metrics",
)
