"""Papers as data, and their tables filled: a number per cell and kind, claims judged.

``load_papers`` reads a paper (``load_paper``) as the values of ``paper_schema``
(``Paper``, ``Table``). ``fill`` puts numbers and verdicts beside its print, of rows and
of the committed numbers of the virtual clock, and ``table_result`` is what comes of a
table (``TableResult``). ``numbers`` says how sure a number is, ``verdicts`` whether a
claim holds, and ``ledger`` writes and reads all of it as CSV.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
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
