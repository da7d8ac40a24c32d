"""Reads papers as data, fills their tables with our numbers, and judges their claims.

``load_papers`` reads a paper (``load_paper``) into the classes of ``paper_schema``
(``Paper``, ``Table``). ``fill`` adds numbers and verdicts to the printed table, from
rows and from the committed virtual numbers, and returns a ``TableResult`` (see
``table_result``). ``numbers`` computes confidence intervals, ``verdicts`` judges
claims, and ``ledger`` writes numbers and verdicts as CSV.
"""

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "causes",
    "dsi_figures",
    "figures",
    "fill",
    "ledger",
    "load_papers",
    "paper_schema",
    "same_devices",
    "scripts",
    "statistics",
    "table_cells",
    "table_result",
    "verdicts",
    "virtual_numbers",
    "why",
)
