"""What people look at: timelines, widgets, charts, tables, pages.

Reads traces and rows only.
"""
