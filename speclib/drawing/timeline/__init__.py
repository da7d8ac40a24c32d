"""The timeline: what every device did, and when.

``run`` is a trace with its words, ``lanes`` and ``facts`` say what is shown of it,
``layout`` puts it all in its place, ``render`` writes the SVG, and ``widget`` shows it.
"""
