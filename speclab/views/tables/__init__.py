"""A page for every table of a paper: does it reproduce, and by how much?

``table_page`` decides what a page says, ``markdown`` and ``html`` write it, and
``shown`` displays it in a notebook. ``answers`` has the rule for the first sentences,
``main_quantity`` and ``dot_plot`` make the picture, ``statements`` has the paper's
claims, ``number_tables`` has all numbers, and ``written`` formats a number.
"""
