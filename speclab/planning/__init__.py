"""Which method is fastest for a pair on this machine? ``plan`` measures them.

``measure`` appends the same rows as for any measurement, and speed-ups are computed
from them as in a paper's tables.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = ("plan",)
