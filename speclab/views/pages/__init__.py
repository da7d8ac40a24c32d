"""Pages of the reports: executed notebooks, and the index over all papers.

No page loads or links anything outside its folder.
"""
