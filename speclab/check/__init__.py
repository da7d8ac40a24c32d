"""Checks whether a rule or a method is lossless, by enumerating every outcome.

``check`` is the entry point. The lessons' exercises are judged by the same cases.
"""

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "calls",
    "candidate_mistakes",
    "candidates",
    "case",
    "check",
    "coin",
    "from_file",
    "line",
    "line_mistakes",
    "mistakes",
    "pages",
)
