"""Everything that people look at: widgets, pictures, charts and tables."""

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "drafts.drafts_explorer",
    "live.accept_bars",
    "live.coins",
    "live.kv_ribbon",
    "live.live_picture",
    "live.outcome_tree",
    "live.rounds",
    "notebook_files",
    "stills.curves",
    "stills.forward_passes",
    "tables.markdown",
    "tables.shown",
    "tables.table_page",
    "widgets.controls",
    "widgets.dsi_regions",
    "widgets.layer_schedule_widget",
    "widgets.timeline_explorer",
)
