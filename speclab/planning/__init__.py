"""Measures which method is fastest for a pair on this machine.

Runs are stored as rows, as in any other measurement, and speed-ups are computed from
them as in a paper's tables.
"""

# The door: what other rooms may import. The rest is private to this room.
DOOR = ("plan",)
