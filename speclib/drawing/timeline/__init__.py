"""The timeline: what every device did, and when.

``run`` is a trace with its labels. ``lanes`` and ``sayings`` choose what to show of it,
``picture`` lays it out along the ``axis``, and ``widget`` shows it.
"""
