"""Draws a run as a timeline, and the text, numbers and shapes of any picture."""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "display",
    "numbers",
    "svg",
    "text_in_pictures",
    "timeline.axis",
    "timeline.run",
    "timeline.sayings",
    "timeline.widget",
)
