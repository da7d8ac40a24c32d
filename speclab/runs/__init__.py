"""Runs as data: what a cell specifies, and the rows that record its runs.

``spec`` defines what to run (``Spec``). A timed run is recorded as a row (``rows``) in
``.cache/runs``; published rows are in ``data/runs``, one file per machine. This package
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
