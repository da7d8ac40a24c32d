"""What can this machine run, and what does it lack for the rest?

the machine, check by check           ->  machine_checks
every pair of the papers, in memory   ->  pair_report
both, as tables or as JSON            ->  report, show

Nothing is downloaded, and no weights are read.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "report",
    "show",
)
