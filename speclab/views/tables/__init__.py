"""A paper's tables as HTML and as Markdown, with the kinds of number side by side.

``grid`` decides what every cell shows, ``section`` gathers all that is known of one
table, and ``html`` and ``markdown`` put that into the files of ``templates/``.
"""
