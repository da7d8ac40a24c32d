"""Decoding by others on the same pair, to stand beside our methods."""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "external",
    "known_peers",
)
