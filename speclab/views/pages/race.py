"""A race of methods on a page without Python: a timeline for each stop of its sliders.

The timelines were drawn before the page is written; ``race.js`` shows the one that the
sliders choose, by the timeline widget's own script.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple

from speclib.drawing.timeline.widget import SCRIPT, STYLE

from .layout import read_file, render

Values = tuple[float, ...]  # of the dials, in their order


class Dial(NamedTuple):
    """A slider of a page, over ``stops``; ``first`` is shown first."""

    name: str
    label: str
    stops: tuple[float, ...]
    first: float


class Race(NamedTuple):
    """A timeline for each setting of the dials: its SVG, and what its player tells."""

    title: str
    dials: tuple[Dial, ...]
    pictures: Mapping[Values, tuple[str, dict[str, Any]]]


def race_figure(race: Race, still: str = "") -> str:
    """The HTML of a race; ``still`` is what a reader without scripts sees in it."""
    return render(
        "race.html",
        title=race.title,
        data=packed(race),
        style=STYLE.read_text("utf-8") + read_file("race.css"),
        script=SCRIPT.read_text("utf-8") + read_file("race.js"),
        still=still,
    )


def packed(race: Race) -> str:
    """The timelines as a page holds them: JSON, by gzip, in base64."""
    pictures = {}
    for values, picture in race.pictures.items():
        pictures[",".join(f"{value:g}" for value in values)] = picture
    dials = [dial._asdict() for dial in race.dials]
    text = json.dumps({"dials": dials, "pictures": pictures})
    return b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
