"""Where everything in a timeline goes: the one layout that every output draws.

A timeline has one time axis and, stacked above it, one panel per run::

    label, note                                         headline
      draft   [ lane                             ]      facts
      target  [ lane                             ]
              the text as it grows
    (the next run's panel)
              +----------+----------+------------
                          time in ms
    legend

In a narrow picture the facts stand in lines of their own, between the label and the
lanes. A compact one, for a projector, has only labels, headlines, lanes and the axis.

What depends on how far a reader has zoomed in (labels of the axis, the growing text) is
laid out once for each of ``ZOOM_LEVELS``. This module asks ``run``, ``facts`` and
``lanes`` for all that is shown, and ``render`` draws what it returns. Knows no markup
and no notebook. All lengths are pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from speclib.drawing.svg import PAD
from speclib.drawing.text_in_pictures import (
    TextPart,
    end_that_fits,
    one_line,
    text_width,
)
from speclib.errors import BadValue

from .drawn_parts import Lane, Mark, TextEnd, TimeAxis
from .lanes import lay_out_lane, rows_of
from .run import CommittedText, TimelineRun
from .sayings import fact_lines

ZOOM_LEVELS = (1, 3, 9, 27)
LEAST_WIDTH = 480  # pixels
LEAST_ENLARGED, MOST_ENLARGED = 0.75, 2.5  # times, on a small and a large screen

# Heights in pixels.
LEGEND_GAP = 10  # above the legend
LEGEND_ROW_HEIGHT = 24
HEAD_HEIGHT = 25  # of a panel's label, above its lanes
LANE_HEIGHT = 28
LANE_GAP = 4
TEXT_ROW_HEIGHT = 27
AXIS_HEIGHT = 44
PANEL_GAP = 16
FACT_HEIGHT = 20
TITLE_SIZE = 17  # of the letters of a run's name and of its headline
SEQUENCE_HEIGHT = 19  # of a row in a lane that shows several sequences
MOST_SEQUENCES = 4  # rows that make a lane higher; further ones make all rows lower

# What the legend says of each kind of box, and of the text by the model that wrote it.
MEANINGS = {
    "accepted": "draft: accepted",
    "rejected": "rejected",
    "discarded": "discarded untested",
    "dropped": "not on the way",
    "score": "target pass",
    "unused": "unused",
    "message": "message under way",
    "idle": "waiting",
    "lost": "lost",
    "draft": "text by the draft model",
    "target": "text by the target model",
}
RARE_KINDS = (
    "dropped",
    "unused",
    "message",
    "lost",
)  # named only where there are such boxes
LEGEND_KEY_WIDTH = 20
LEGEND_KEY_GAP = 6
LEGEND_ENTRY_GAP = 18

ROUNDING = 1e-6  # pixels by which a mark may stand right of the axis
TAIL_LETTERS = 70  # of the text so far that a commit's tooltip repeats
TEXT_GAP = 5  # pixels between two pieces of the growing text
PATIENCE = 200  # pixels of text row after which dense text is cut


class Panel(NamedTuple):
    """One run in the timeline; ``texts``: the growing text, by zoom level.

    ``facts``: the lines beside the lanes, or above them in a narrow picture; the first
    is the headline. ``head_height``: pixels of what stands above the lanes.
    """

    run: TimelineRun
    y: float
    height: float
    head_height: float
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...]
    texts: dict[int, tuple[TextEnd, ...]]
    facts: tuple[str, ...]

    @property
    def lanes_top(self) -> float:
        return self.y + self.head_height

    @property
    def lanes_bottom(self) -> float:
        """Where the lanes end and the row of text begins."""
        return self.lanes_top + total_height(self.lanes)


class LegendEntry(NamedTuple):
    """What a kind of box, or a colour of the growing text, means; x in pixels."""

    kind: str
    meaning: str
    x: float
    row: int


class Figure(NamedTuple):
    """A whole timeline."""

    axis: TimeAxis
    panels: tuple[Panel, ...]
    axis_title: str
    legend: tuple[LegendEntry, ...]
    height: float

    @property
    def panels_bottom(self) -> float:
        return max(panel.y + panel.height for panel in self.panels)

    @property
    def legend_top(self) -> float:
        return self.panels_bottom + AXIS_HEIGHT + LEGEND_GAP


def layout(
    runs: Sequence[TimelineRun],
    width: float = 1100,
    until: float | None = None,
    compact: bool = False,
) -> Figure:
    """The timeline of ``runs``, ``width`` pixels wide.

    ``until``: seconds that the axis shows, at most the longest makespan, which is also
    the default. ``compact``: facts, growing text and legend are left out. Raises
    SpeclibError where there is nothing to show or the size makes no sense.
    """
    check_arguments(runs, width, until)
    axis = TimeAxis(width, span_of(runs, until))
    runs = with_kinds_named(runs)

    panels = []
    y: float = PAD
    for run in runs:
        lay_out = lay_out_compactly if compact else lay_out_panel
        panel = lay_out(run, runs, y, axis)
        panels.append(panel)
        y += panel.height + PANEL_GAP

    height = y - PANEL_GAP + AXIS_HEIGHT + PAD
    legend: tuple[LegendEntry, ...] = ()
    if not compact:
        legend = lay_out_legend(panels, width - 2 * PAD)
        rows = 1 + max(entry.row for entry in legend)
        height += LEGEND_GAP + rows * LEGEND_ROW_HEIGHT
    return Figure(axis, tuple(panels), axis_title(runs, axis), legend, height)


def layout_for_screen(
    runs: Sequence[TimelineRun],
    width: float,
    height: float,
    until: float | None = None,
) -> Figure:
    """The compact timeline whose form is that of a screen, which it is to fill.

    On a high screen it is laid out narrower than that, to be shown enlarged, and on a
    low one wider; the height of a compact timeline does not depend on its width.
    """
    height_as_drawn = layout(runs, max(width, LEAST_WIDTH), until, compact=True).height
    enlarged = min(max(height / height_as_drawn, LEAST_ENLARGED), MOST_ENLARGED)
    return layout(runs, max(width / enlarged, LEAST_WIDTH), until, compact=True)


def span_of(runs: Sequence[TimelineRun], until: float | None) -> float:
    """Seconds of the axis: those of the longest run, ``until`` at most."""
    longest = max(run.seconds for run in runs)
    return min(until or longest, longest) or 1.0


def check_arguments(
    runs: Sequence[TimelineRun], width: float, until: float | None
) -> None:
    if not runs:
        raise BadValue("a timeline of nothing: give at least one result or trace")
    if until is not None and not until > 0:
        raise BadValue(f"until is {until}: give the axis a length in seconds, above 0")
    if width < LEAST_WIDTH:
        raise BadValue(
            f"width is {width}: a readable timeline needs at least {LEAST_WIDTH} pixels"
        )


def with_kinds_named(runs: Sequence[TimelineRun]) -> list[TimelineRun]:
    """The runs, with the kind of their numbers in the note where kinds differ."""
    if len({run.kind for run in runs}) == 1:
        return list(runs)

    named = []
    for run in runs:
        note = f"{run.note}, {run.kind}" if run.note else run.kind
        named.append(replace(run, note=note))
    return named


def axis_title(runs: Sequence[TimelineRun], axis: TimeAxis) -> str:
    """The unit and the kind of number; kinds never share an axis unnamed."""
    kinds = ", ".join(dict.fromkeys(run.kind for run in runs))
    longest = max(run.seconds for run in runs)
    is_cut_off = longest > axis.span * (1 + 1e-9)
    warning = "; cut off here, the figures beside it are of whole runs"
    return f"time in {axis.unit.name} ({kinds}{warning if is_cut_off else ''})"


def lay_out_panel(
    run: TimelineRun, runs: Sequence[TimelineRun], y: float, axis: TimeAxis
) -> Panel:
    """The panel of one of ``runs``; ``y`` is its upper edge."""
    facts = fact_lines(run, runs, axis.unit)
    head_height: float = HEAD_HEIGHT
    if axis.is_narrow:
        headline, *others = facts
        title_width = text_width(f"{run.title} {headline}", TITLE_SIZE)
        if title_width > axis.plot:  # the headline becomes a line like the others
            headline, others = "", [headline, *others]
        facts = (headline, *lines_that_fit(others, axis.plot))
        head_height += FACT_HEIGHT * (len(facts) - 1)
    lanes = lay_out_lanes(run, y + head_height, axis)
    committed = run.committed_texts()
    texts = {zoom: growing_text(committed, axis, zoom) for zoom in ZOOM_LEVELS}

    # Where there is no lane, the panel has the height of one.
    lanes_height = max(total_height(lanes), LANE_HEIGHT + LANE_GAP)
    plot_height = head_height + lanes_height + TEXT_ROW_HEIGHT
    facts_height = 0 if axis.is_narrow else FACT_HEIGHT * len(facts) + 6
    return Panel(
        run=run,
        y=y,
        height=max(plot_height, facts_height),
        head_height=head_height,
        lanes=lanes,
        marks=lay_out_marks(run, committed, axis),
        texts=texts,
        facts=facts,
    )


def lay_out_compactly(
    run: TimelineRun, runs: Sequence[TimelineRun], y: float, axis: TimeAxis
) -> Panel:
    """The panel of a run with its label, its headline and its lanes alone."""
    headline, *_ = fact_lines(run, runs, axis.unit)
    lanes = lay_out_lanes(run, y + HEAD_HEIGHT, axis)
    lanes_height = max(total_height(lanes), LANE_HEIGHT + LANE_GAP)
    return Panel(
        run=run,
        y=y,
        height=HEAD_HEIGHT + lanes_height,
        head_height=HEAD_HEIGHT,
        lanes=lanes,
        marks=lay_out_marks(run, run.committed_texts(), axis),
        texts={zoom: () for zoom in ZOOM_LEVELS},
        facts=(headline,),
    )


def lines_that_fit(facts: Sequence[str], most_width: float) -> list[str]:
    """Facts with dots between them, in as few lines as they take."""
    lines: list[str] = []
    for fact in facts:
        longer = f"{lines[-1]} · {fact}" if lines else fact
        if lines and text_width(longer) > most_width:
            lines.append(fact)
        else:
            lines[-1:] = [longer]
    return lines


def lay_out_legend(
    panels: Sequence[Panel], most_width: float
) -> tuple[LegendEntry, ...]:
    """What must be explained, in rows that are ``most_width`` pixels long at most."""
    kinds: set[str] = set()
    for panel in panels:
        for of_device in panel.lanes:
            kinds.update(box.kind for box in of_device.boxes)

    entries = []
    x, row = 0.0, 0
    for kind, meaning in MEANINGS.items():
        if kind in RARE_KINDS and kind not in kinds:
            continue
        width = LEGEND_KEY_WIDTH + LEGEND_KEY_GAP + text_width(meaning)
        if x and x + width > most_width:
            x, row = 0.0, row + 1
        entries.append(LegendEntry(kind, meaning, x, row))
        x += width + LEGEND_ENTRY_GAP
    return tuple(entries)


def lay_out_lanes(run: TimelineRun, top: float, axis: TimeAxis) -> tuple[Lane, ...]:
    """One under the other; higher where sequences are stacked."""
    lanes = []
    for device in run.devices:
        events = [event for event in run.trace.operations if event.device == device]
        rows = min(rows_of(events), MOST_SEQUENCES)
        height = max(LANE_HEIGHT, SEQUENCE_HEIGHT * rows)
        lanes.append(lay_out_lane(run, device, top, height, axis))
        top += height + LANE_GAP
    return tuple(lanes)


def total_height(lanes: Sequence[Lane]) -> float:
    """Height of all lanes together, with the gap below each."""
    return sum(lane.height + LANE_GAP for lane in lanes)


def lay_out_marks(
    run: TimelineRun, committed: Sequence[CommittedText], axis: TimeAxis
) -> tuple[Mark, ...]:
    """A hairline where each round starts, a tick at each commit, a line at the end.

    The end is the moment at which the text is complete; work in flight may go on.
    """
    gap_per_commit = axis.x(run.seconds) / max(1, len(committed))
    marks = round_marks(run, axis, gap_per_commit)
    marks += commit_marks(committed, axis, gap_per_commit)
    text_complete = run.stats.seconds or run.seconds
    marks.append(Mark("end", axis.x(text_complete), "", axis.plot))
    return tuple(mark for mark in marks if mark.x <= axis.plot + ROUNDING)


def round_marks(run: TimelineRun, axis: TimeAxis, most_gap: float) -> list[Mark]:
    """A mark at each round's first operation, but for a round that starts at 0."""
    starts: dict[int, float] = {}
    for event in run.trace.operations:
        starts[event.round] = min(event.ts, starts.get(event.round, event.ts))

    marks = []
    previous_x = 0.0
    for x in sorted(axis.x(start) for start in starts.values() if start):
        marks.append(Mark("round", x, "", min(most_gap, x - previous_x)))
        previous_x = x
    return marks


def commit_marks(
    committed: Sequence[CommittedText], axis: TimeAxis, gap: float
) -> list[Mark]:
    """A mark at each commit, with the text until then in its tooltip."""
    marks = []
    tail = ""
    for commit, parts in committed:
        new_text = "".join(part.text for part in parts)
        tail = (tail + new_text)[-TAIL_LETTERS:]
        tip = (
            f"commit of {len(parts)} at {axis.time(commit.end)}: “{one_line(new_text)}”"
            f"\n…{one_line(tail)}"
        )
        marks.append(Mark("commit", axis.x(commit.end), tip, gap))
    return marks


def growing_text(
    committed: Sequence[CommittedText], axis: TimeAxis, zoom: int
) -> tuple[TextEnd, ...]:
    """The committed text, each piece of it ending where it was committed.

    Commits closer together than their text is wide are joined to the next one, so
    nothing appears before its own time. Where the text is still too dense after
    ``PATIENCE`` pixels, its latest words stand for all of it.
    """
    visible = []
    for commit, parts in committed:
        x = axis.x(commit.end)
        if parts and x <= axis.plot + ROUNDING:
            visible.append((x * zoom, parts))

    pieces = []
    waiting: list[TextPart] = []
    width = 0.0  # of what is waiting
    free = 0.0  # where the last piece ended
    for i, (x, parts) in enumerate(visible):
        new_parts = [TextPart(part.kind, one_line(part.text)) for part in parts]
        waiting += new_parts
        width += sum(text_width(part.text) for part in new_parts)

        free_width = x - free
        is_last = i + 1 == len(visible)
        if width > free_width and free_width < PATIENCE and not is_last:
            continue
        fitting_parts = end_that_fits(waiting, free_width)
        if fitting_parts:
            pieces.append(TextEnd(x / zoom, tuple(fitting_parts)))
        waiting = []
        width = 0.0
        free = x + TEXT_GAP
    return tuple(pieces)
