"""The timeline: what every device did, and when.

``run`` is a trace with its words, ``lanes`` and ``sayings`` say what is shown of it,
``picture`` puts it all in its place along the ``axis``, and ``widget`` shows it.
"""
