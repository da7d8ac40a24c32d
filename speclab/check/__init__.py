"""Is a rule, or a method, lossless? Decided by enumerating every outcome.

``check`` is the entry point. The lessons' exercises are judged by the same cases.
"""

# The door: what other rooms may import. All else is this room's own.
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
