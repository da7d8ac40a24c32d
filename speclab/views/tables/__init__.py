"""The page of each table of a paper: does it reproduce, and how closely?

``table_page`` assembles a page, ``markdown`` and ``html`` format it, and ``shown``
displays it in a notebook. ``answers`` writes the first sentences, ``main_quantity`` and
``dot_plot`` make the picture, ``statements`` lists the paper's claims,
``number_tables`` lists all numbers, and ``written`` formats a number.
"""
