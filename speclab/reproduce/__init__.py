"""``make reproduce``: cells are measured, tables, notebooks and pages are written.

``reproduce`` does all of it, ``order`` says what is measured when. ``book`` opens a
paper for reading, ``notebooks`` runs its notebook, and ``publish`` writes the files
under ``reports/``. ``real_model`` measures SmolLM2, and writes its page. ``site`` makes
a folder of pages of what is committed.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "book",
    "compute_virtual",
    "notebooks",
    "publish",
    "real_model",
    "reproduce",
    "site",
)
