"""What people look at: widgets, pictures, charts, tables, pages."""
