"""Runs that move on a page without Python: what a script shows, and where it stands.

The runs were computed before the page is written, for a grid of settings. The script
``moving.js`` shows those of one setting at a time, as a race of methods or as the
rounds of one method, and reads every bar and every number that it says off them. Knows
no clock, and does not ask how runs are computed.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from speclib.drawing.text_in_pictures import one_line
from speclib.drawing.timeline.cells import is_tree, way_through
from speclib.drawing.timeline.run import TimelineRun
from speclib.errors import BadValue
from speclib.trace.events import Event

from .layout import read_file, render

# A token's text is written once; in a run, one of these letters stands for it. Those
# that JSON would have to escape are not among them.
LETTERS = "".join(chr(code) for code in range(33, 127) if chr(code) not in '"\\')
# What became of a draft, and who wrote a token: "c" is the target's correction.
OUTCOME_LETTERS = {"accepted": "a", "rejected": "r", "discarded": "d"}
Values = tuple[float, ...]  # of the dials, in their order


class Dial(NamedTuple):
    """A slider of a page, from ``low`` to ``high``.

    ``stops`` are the values for which there are runs. At another value the script shows
    the next stop, and says so. ``first`` is shown first.
    """

    name: str
    label: str
    low: float
    high: float
    step: float
    first: float
    stops: tuple[float, ...]


class Try(NamedTuple):
    """A button that sets a dial: its text, the dial and the value."""

    text: str
    dial: str
    value: float


class Tries(NamedTuple):
    """Buttons for settings that are worth a look, and the words before them."""

    words: str
    buttons: tuple[Try, ...]


class Contestant(NamedTuple):
    """A run, and the speed over plain decoding expected of it in a long text.

    ``expected`` is not-a-number where no theory says it.
    """

    run: TimelineRun
    expected: float


@dataclass(frozen=True)
class MovingRuns:
    """The runs of every setting of a grid; plain decoding comes first in each.

    ``name``: by which a page finds them. ``draws``: a sentence on which of many draws
    they are.
    """

    name: str
    dials: tuple[Dial, ...]
    runs: Mapping[Values, Sequence[Contestant]]
    draws: str
    tries: Tries


class Place(NamedTuple):
    """Where runs move on a page, and how.

    ``view``: "race", or "rounds" of the last run of each setting. ``title`` stands
    above it.
    """

    runs: MovingRuns
    view: str
    title: str


# -- HTML ------------------------------------------------------------------------------
def moving_figure(place: Place, still: str = "") -> str:
    """The HTML of a place; ``still`` is what a reader without scripts sees in it."""
    return render("moving.html", place=place, still=still)


def moving_scripts(places: Iterable[Place]) -> str:
    """What a page needs once for all its places: their runs, packed, and the script."""
    runs = {place.runs.name: place.runs for place in places}
    if not runs:
        return ""
    return render(
        "moving_scripts.html",
        data={name: packed(of_name) for name, of_name in runs.items()},
        script=read_file("moving.js"),
    )


def packed(moving: MovingRuns) -> str:
    """The runs as a page holds them: JSON, by gzip, in base64."""
    return b64encode(gzip.compress(as_json(moving).encode(), 9, mtime=0)).decode()


# -- data ------------------------------------------------------------------------------
def as_json(moving: MovingRuns) -> str:
    """All that the script knows of the runs."""
    words = Words()
    stored: dict[str, int] = {}  # the JSON of a run -> its place among the runs
    settings: dict[str, list[Any]] = {}
    for values, contestants in moving.runs.items():
        places, expected = [], []
        for contestant in contestants:
            text = _to_json(_describe_run(contestant.run, words))
            places.append(stored.setdefault(text, len(stored)))
            expected.append(_rounded(contestant.expected, 2))
        settings[key_of(values)] = [places, expected]

    parts = {
        "dials": _to_json([dial._asdict() for dial in moving.dials]),
        "tries": _to_json(moving.tries._asdict()),
        "draws": _to_json(moving.draws),
        "letters": _to_json(LETTERS),
        "words": _to_json(words.spelled),
        "settings": _to_json(settings),
        "runs": f"[{','.join(stored)}]",
    }
    members = [f'"{name}":{text}' for name, text in parts.items()]
    return "{" + ",\n".join(members) + "}"


def key_of(values: Values) -> str:
    """The dials' values as one text, as the script writes them: "0.8,5"."""
    return ",".join(f"{value:g}" for value in values)


class Words:
    """The texts of tokens, in the order in which they were first met."""

    def __init__(self) -> None:
        self.spelled: list[str] = []

    def letters(self, run: TimelineRun, tokens: Sequence[int]) -> str:
        """One letter for each token."""
        return "".join(self._letter(one_line(run.piece(token))) for token in tokens)

    def _letter(self, text: str) -> str:
        text = text.strip("\u00a0")
        if text not in self.spelled:
            self.spelled.append(text)
        if len(self.spelled) > len(LETTERS):
            raise BadValue(
                f"more than {len(LETTERS)} different tokens: let runs write less"
            )
        return LETTERS[self.spelled.index(text)]


def _describe_run(run: TimelineRun, words: Words) -> list[Any]:
    """[label, note, names of lanes, boxes, commits]; times in milliseconds."""
    lanes = run.devices
    boxes = [
        _describe_box(run, event, lanes, words)
        for event in run.trace.operations
        if event.is_scoring or event.tokens or event.dur  # else it drafted nothing
    ]
    return [run.label, run.note, lanes, boxes, _describe_commits(run, words)]


def _describe_box(
    run: TimelineRun, event: Event, lanes: Sequence[str], words: Words
) -> list[Any]:
    """[lane, round, start, duration, words, outcomes], and how many drafts are left
    out, if any.

    Words are those drafted, or those that a pass of the target model tests. A pass has
    no outcomes. Of a tree, or of branches, one way is shown.
    """
    tokens, became = event.tokens, event.outcome
    if event.is_scoring:
        tokens = tokens[len(tokens) - event.candidates :]
    left_out: list[int] = []
    if event.is_drafting and is_tree(event):
        way = way_through(event)
        tokens = tuple(event.tokens[node] for node in way)
        became = tuple(event.outcome[node] for node in way)
        left_out = [len(event.tokens) - len(way)]
    outcomes = "".join(OUTCOME_LETTERS[outcome] for outcome in became)
    return [
        lanes.index(event.device),
        event.round,
        _milliseconds(event.ts),
        _milliseconds(event.dur),
        words.letters(run, tokens),
        outcomes,
        *left_out,
    ]


def _describe_commits(run: TimelineRun, words: Words) -> list[list[Any]]:
    """[round, end, words, writers] of each: "d" draft, "t" target, "c" corrected."""
    rejected = run.draft_positions("rejected")
    position = run.trace.prompt_length
    commits: list[list[Any]] = []
    for commit, parts in run.committed_texts():
        writers = ""
        for part in parts:
            is_correction = part.kind == "target" and position in rejected
            writers += "c" if is_correction else part.kind[0]
            position += 1
        letters = words.letters(run, commit.tokens)
        commits.append([commit.round, _milliseconds(commit.end), letters, writers])
    return commits


def _milliseconds(seconds: float) -> float | int | None:
    return _rounded(1000 * seconds, 3)


def _rounded(value: float, digits: int) -> float | int | None:
    """A number as short as JSON can have it; None for not-a-number."""
    if not isfinite(value):
        return None
    rounded = round(value, digits)
    return int(rounded) if rounded == int(rounded) else rounded


def _to_json(value: object) -> str:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
