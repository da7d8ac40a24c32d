"""Runs other libraries' decoding on the same pair, to compare with our methods."""

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "external",
    "known_peers",
)
