"""A page for every table of a paper: does it reproduce, and how closely?

``table_page`` decides on a page's contents, ``markdown`` and ``html`` write it, and
``shown`` displays it in a notebook. ``answers`` composes the first sentences by a rule,
``main_quantity`` and ``dot_plot`` make the picture, ``statements`` lists the paper's
claims, ``number_tables`` lists all numbers, and ``written`` formats a number.
"""
