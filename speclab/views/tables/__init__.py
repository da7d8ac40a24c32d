"""A page for every table of a paper: does it reproduce, and by how much?

``table_page`` decides what a page says, ``markdown`` and ``html`` write it, and
``shown`` displays it in a notebook. Its parts: ``answers`` has the rule for its first
sentences, ``main_quantity`` and ``dot_plot`` its picture, ``statements`` what the paper
says, ``number_tables`` all numbers, and ``written`` how a number is written.
"""
