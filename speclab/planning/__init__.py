"""Which method is fastest for a pair on this machine? ``plan`` measures them.

The rows that ``measure`` appends are those of every measurement, and speed-ups are
computed from them as a paper's tables are.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = ("plan",)
