"""The audit: what papers print and published code does, checked against the sources.

``items`` reads the findings, the table of lossless code and the slips from
``data/audit``, and ``page`` writes them as one page. ``readings`` looks up the cited
lines of code in clones. ``counted_tokens`` and ``dsi_table_1`` compute numbers for two
findings. The other findings need only arithmetic on printed numbers, which
``tests/audit`` contains.
"""

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "items",
    "page",
    "readings",
)
