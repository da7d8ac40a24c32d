"""``make reproduce``: measures cells, then writes tables, notebooks and pages.

``reproduce`` runs everything, and ``order`` defines the order of measurements. ``book``
opens a paper for reading, ``notebooks`` runs the paper's notebook, and ``publish``
writes the files under ``reports/``. ``real_model`` measures SmolLM2 and writes its
page. ``site`` builds a web site from the committed files.
"""

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "book",
    "compute_virtual",
    "notebooks",
    "publish",
    "real_model",
    "reproduce",
    "site",
)
