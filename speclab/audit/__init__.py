"""The audit: what papers print and published code does, checked against the sources.

``items`` reads the findings, the table of what is lossless and the slips of code under
``data/audit``, and ``page`` writes them as one page. ``readings`` looks up in clones
the lines of code that they rest on. ``counted_tokens`` and ``dsi_table_1`` compute
what two findings need beyond plain arithmetic on printed numbers, which is in
``tests/audit``.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "items",
    "page",
    "readings",
)
