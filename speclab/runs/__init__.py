"""Runs as data: what a cell asks for, and the rows that runs of it leave.

``spec`` says what should be run (``Spec``). A timed run leaves a row (``rows``) in
``.cache/runs``; those that are published lie in ``data/runs``, a file a machine. This
room runs nothing and knows no paper.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "official_prompts",
    "rows",
    "spec",
    "this_machine",
    "values",
)
