"""Runs as data: what a cell specifies, and the rows that its runs leave.

``spec`` defines what to run (``Spec``). A timed run leaves a row (``rows``) in
``.cache/runs``; published rows are in ``data/runs``, one file per machine. This room
runs nothing, and does not import ``papers``.
"""

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "official_prompts",
    "rows",
    "spec",
    "this_machine",
    "values",
)
