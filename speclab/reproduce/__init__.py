"""``make reproduce``: stale cells are run; tables, notebooks and pages are written.

``regenerate`` decides what to do, ``book`` fills a paper's tables, ``notebooks`` runs
its notebook, and ``publish`` writes the files under ``reports/``. ``site`` makes a
folder of pages of what is committed, for ``make site``.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "audit_book",
    "book",
    "budget",
    "notebooks",
    "publish",
    "regenerate",
    "site",
)
