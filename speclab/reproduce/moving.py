"""The picture that moves on pages without Python: runs computed beforehand.

The widget's own module draws it. A page has it once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from speclib.decoding.simulate import compare
from speclib.drawing.timeline.widget import Timeline, timeline

GLUE = Path(__file__).with_name("moving.js")
RATES = (0.0, 0.5, 0.8, 1.0)  # how often the draft model is right
FIRST_RATE = 0.8
WIDTHS = (660, 330)  # pixels: of a page's column, and of a phone
FIGURE = """
<figure class="moving" id="moving"><figcaption>{title}</figcaption>
<label>α, how often the draft model is right: <input type="range" min="0" step="1">
<output></output></label><div class="speclib-stage"></div></figure>
<style>{style}</style>
<script type="module">
{module}
{glue}
showMoving(document.getElementById("moving"), {data}, "{first}");
</script>
"""


class Race(NamedTuple):
    """What is simulated: plain decoding, speculative decoding, and ``method``."""

    title: str
    method: str
    settings: dict[str, Any]


RACES = {
    "index": Race("Three ways to write the same text", "pearl", {"gamma": 5, "c": 5.0}),
    "00_start_here": Race("The race", "speculative", {"gamma": 4, "c": 5.0}),
    "10_speculative_decoding": Race(
        "Two ways to write the same text", "speculative", {"gamma": 4, "c": 5.0}
    ),
    "20_pearl": Race("PEARL beside the others", "pearl", {"gamma": 5, "c": 5.0}),
    "30_dsi": Race(
        "DSI beside the others", "dsi", {"servers": 3, "lookahead": 2, "c": 5.0}
    ),
    "35_answer_or_enumerate": Race(
        "SSD beside the others", "ssd", {"gamma": 4, "c": 8.0, "fan": 2, "doubt": 0.8}
    ),
    "40_duodecoding": Race(
        "DuoDecoding beside the others",
        "duodecoding",
        {"gamma": 6, "c": 6.0, "doubt": 0.6},
    ),
    "90_several_machines": Race(
        "Over a network: what no model does is waiting, or a message's way",
        "pearl",
        {"gamma": 5, "c": 5.0, "network": 0.02},
    ),
}


def moving_picture(race: Race, tokens: int = 20) -> str:
    """HTML of the race, with all that it needs."""
    data = {}
    for alpha in RATES:
        results = compare(race.method, tokens=tokens, alpha=alpha, **race.settings)
        widget = timeline(*results)
        pictures = {}
        for width in WIDTHS:
            widget.page_width = width
            pictures[width] = widget.svg
        data[f"{alpha:g}"] = {"story": widget.story, "pictures": pictures}
    html = FIGURE.format(
        title=race.title,
        style=Timeline._css,
        module=Timeline._esm,
        glue=GLUE.read_text("utf-8"),
        data=json.dumps(data).replace("<", "\\u003c"),
        first=f"{FIRST_RATE:g}",
    )
    # In Markdown, HTML would end at an empty line.
    return "\n".join(line for line in html.splitlines() if line.strip())
