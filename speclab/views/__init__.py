"""What people look at: widgets, pictures, charts, tables."""

# The door: what other rooms may import. All else is this room's own.
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
