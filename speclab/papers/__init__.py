"""Papers as data, and their tables filled: a number per cell and kind, claims judged.

``load`` reads a paper (``load_paper``) as the values of ``schema`` (``Paper``,
``Table``), ``fill`` runs and judges its tables (``fill``, ``fill_all``),
``table_result`` is what comes of one (``TableResult``), and ``ledger`` writes and reads
all of it as CSV.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "bootstrap",
    "claim_numbers",
    "claims",
    "comparisons",
    "earlier",
    "estimates",
    "figures",
    "fill",
    "ledger",
    "load_papers",
    "paper_schema",
    "pearl_figures",
    "reach",
    "scripts",
    "table_cells",
    "table_result",
)
