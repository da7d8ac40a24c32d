"""Draws an animated race of methods, on a page without Python.

The timelines for all positions of the slider are drawn when the page is written; the
timeline widget's own script shows and plays them. A page has at most one race.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from speclab.views.widgets.timeline_explorer import explorer
from speclib.decoding.compare import compare
from speclib.drawing.timeline.widget import SCRIPT, STYLE

RACE_SCRIPT = Path(__file__).with_name("race.js")
RATES = (0.0, 0.2, 0.4, 0.45, 0.5, 0.6, 0.8, 0.9, 1.0)  # acceptance rates
FIRST_RATE = 0.8
WIDTH = 860  # pixels; the picture shrinks on a narrower page
FIGURE = """
<figure class="race" id="race">
<figcaption>{title}</figcaption>
<label>α, the acceptance rate: <output></output>
<input type="range" min="0" step="1"></label>
<div class="speclib-timeline"></div>
<p>The words that the draft model gets right are random. All numbers are virtual: the
methods' own code ran on a simulated clock.</p>
</figure>
<style>{style}</style>
<script type="module">
{script}
showRace(document.getElementById("race"), {pictures}, "{first}");
</script>
"""


class Race(NamedTuple):
    """Plain decoding, speculative decoding, and ``method`` if it is neither."""

    title: str
    method: str
    settings: dict[str, Any]


TWO_WAYS = Race("The race", "speculative", {"tokens": 20, "gamma": 4, "c": 5.0})
THREE_WAYS = Race(
    "Three ways to write the same text", "pearl", {"tokens": 24, "gamma": 5, "c": 5.0}
)
OF_LESSONS = {"00_start_here": TWO_WAYS, "20_pearl": THREE_WAYS}


def race_html(race: Race) -> str:
    """A race's figure as HTML, with its style, script and data."""
    simulated = partial(compare, race.method, **race.settings)
    rates = {"alpha": (0.0, 1.0, 0.01, FIRST_RATE)}
    shown = explorer(simulated, rates, typical=True, width=WIDTH)
    pictures = {}
    for rate in RATES:
        shown.set_values(alpha=rate)
        pictures[f"{rate:g}"] = (shown.timeline.picture(), shown.timeline.story)
    html = FIGURE.format(
        title=race.title,
        style=STYLE.read_text("utf-8"),
        script=SCRIPT.read_text("utf-8") + RACE_SCRIPT.read_text("utf-8"),
        pictures=json.dumps(pictures).replace("<", "\\u003c"),
        first=f"{FIRST_RATE:g}",
    )
    # In Markdown, an empty line would end the HTML.
    return "\n".join(line for line in html.splitlines() if line.strip())
