"""Other libraries' decoding on the same pair, to compare with our methods."""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "external",
    "known_peers",
)
