"""What people look at: timelines, widgets, charts, tables, pages."""
