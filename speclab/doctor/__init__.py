"""Shows what this machine can run, and what it lacks for the papers' pairs.

checks of the machine                 ->  machine_checks
the memory that each pair needs       ->  pair_report
both, as tables or as JSON            ->  report, show

Nothing is downloaded, and no weights are read.
"""

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "report",
    "show",
)
