"""Shows a run round by round: the window, the new drafts, and the target's rows.

::

    text          … the first
                  ┌ window ──────────┐   new drafts
    draft model   │ book   .    Then │  ⌈it⌉  reads  the  last
                  └──────────────────┘
                     ↑     ↑     ↑        ↑
    target model   row 1 row 2 row 3    row 4
    test           passes passes fails  unused
    written        book   .    “and”

    on the clock  draft  |it|reads|the|last|
                  target |  one pass, 4 rows |

A ring marks the window, and a dashed ring the draft that is tested while it is being
written. Arrow keys step, Space plays. This module reads a trace and the texts of its
tokens. It uses no method, model or clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from speclab.traces.rounds import WindowRound, window_rounds
from speclab.views.shapes import centred, start_that_fits, title_at
from speclib.arguments import checked
from speclib.drawing.numbers import MILLISECONDS, SECONDS, duration
from speclib.drawing.svg import (
    INK,
    KIND_COLOURS,
    OUTLINES,
    PAD,
    QUIET,
    WRITER_COLOURS,
    WRITER_MARKS,
    card,
    hatch_patterns,
    rectangle,
    tag,
    text_at,
    unique_name,
    vertical_line,
)
from speclib.drawing.text_in_pictures import (
    TextPart,
    end_that_fits,
    one_line,
    text_width,
    token_label,
)
from speclib.drawing.timeline.run import TimelineRun, timeline_run

from .stepped_picture import KEYS, SteppedPicture, SteppedView

SECONDS_OF_STEP = 2.5  # while playing, long enough to read a sentence
WIDEST_CELL = 96.0  # maximum width of a draft, in pixels
GROUP_GAP = 30.0  # pixels between the window and the new drafts
RING = 6.0  # pixels between a ring and its cells

# Pixels from the top.
TITLE_Y, TEXT_Y, CAPTION_Y = 28, 60, 96
DRAFTS_Y, ROWS_Y = 110.0, 172.0
CELL_HEIGHT = 34.0
TESTS_Y, WRITTEN_Y = 228, 254
CLOCK_Y, LANE_HEIGHT, LANE_STEP = 276.0, 20.0, 25.0
TIMES_Y = 344
LEGEND_Y, LEGEND_ROW = 358.0, 24.0

LABELS = ("draft model", "target model", "on the clock")
VERDICTS = {
    "accepted": ("passes", "yes"),
    "rejected": ("fails", "no"),
    "discarded": ("unused", "–"),
    "waiting": ("unused", "–"),
}
LEGEND = (
    ("accepted", "accepted"),
    ("rejected", "rejected"),
    ("discarded", "discarded"),
    ("waiting", "to be tested in the next round"),
    ("score", "a row of the target pass"),
    ("early", "tested while it is written"),
)


# Maps a time in the run, in seconds, to its x in the picture, in pixels.
XOfSecond: TypeAlias = Callable[[float], float]


class Column(NamedTuple):
    """A draft's column in the picture: its left edge and its width, in pixels."""

    x: float
    width: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


class RoundsPicture(SteppedPicture):
    """The round at one ``step`` of a run; ``Rounds`` adds the slider.

    The first round shown is the first with a window and an early test, if any.
    """

    called = f"A run, round by round. {KEYS}"

    def __init__(self, run: TimelineRun):
        self.run = run
        self.rounds = window_rounds(run.trace)
        super().__init__(self._first_with_window())

    def _first_with_window(self) -> int:
        for step, shown in enumerate(self.rounds, 1):
            if shown.window and shown.early is not None:
                return step
        return 1

    @property
    def steps(self) -> int:
        return len(self.rounds)

    @property
    def round(self) -> WindowRound:
        """The round that is shown."""
        return self.rounds[self.step - 1]

    def word(self, token: int) -> str:
        """A token's label in its cell."""
        return token_label(self.run.piece(token))

    # -- words -------------------------------------------------------------------------
    def sentence(self) -> str:
        return f"{self._tests_in_words()} {self._outcome_in_words()}"

    def phase(self) -> str:
        """PEARL's name for this kind of round; "" if it has none."""
        if self.round.early is None:
            return ""
        return "post-verify" if self.round.window else "pre-verify"

    def _tests_in_words(self) -> str:
        shown, phase = self.round, self.phase()
        title = f"Round {shown.number}, {phase}:" if phase else f"Round {shown.number}:"
        if not shown.rows:
            return f"{title} the target model makes no pass."
        result = f"the target model's pass returns {_counted(shown.rows, 'row')}"
        if shown.early is not None:
            first = f"“{self.word(shown.drafted[0])}”"
            if not shown.window:
                return f"{title} {result}, which tests {first} while it is written."
            window = _counted(len(shown.window), "draft")
            return (
                f"{title} {result}, for the {window} in the window and for {first}, "
                "which is being written."
            )
        return f"{title} {result} for {_counted(len(shown.drafts), 'draft')}."

    def _outcome_in_words(self) -> str:
        shown = self.round
        accepted = shown.outcomes.count("accepted")
        parts = [f"{_counted(accepted, 'draft')} accepted"]
        if "rejected" in shown.outcomes:
            rejected = shown.drafts[shown.outcomes.index("rejected")]
            parts.append(f"“{self.word(rejected)}” rejected")
        if shown.own is not None:
            parts.append(f"the target model writes “{self.word(shown.own)}”")
        discarded = shown.outcomes.count("discarded")
        if discarded:
            parts.append(f"{discarded} discarded")
        waiting = shown.outcomes.count("waiting")
        if waiting:
            parts.append(f"{waiting} left for the next window")
        elif self.step < self.steps:
            parts.append("the next window is empty")
        else:
            parts.append("the text is complete")
        return f"{', '.join(parts)}."

    def text(self) -> str:
        lines = [f"round {self.step} of {self.steps}, {self.run.title}"]
        lines.append(f"  {self.sentence()}")
        lines.append(f"  window: {self._spelled(self.round.window) or 'empty'}")
        lines.append(f"  new drafts: {self._spelled(self.round.drafted) or 'none'}")
        lines.append(f"  written: {self._spelled(self.round.committed) or 'nothing'}")
        return "\n".join(lines)

    def _spelled(self, tokens: tuple[int, ...]) -> str:
        return " | ".join(map(self.word, tokens))

    # -- the picture -------------------------------------------------------------------
    @property
    def size(self) -> tuple[int, int]:
        return 900, round(self._height(900))

    def _height(self, width: float) -> float:
        rows = 1 + max(row for _, _, row in _legend_layout(width))
        return LEGEND_Y + LEGEND_ROW * rows + PAD / 2

    def drawing(self, width: float) -> str:
        name = unique_name("w", (self.step, self.run.title, width))
        columns = self._columns(width)
        body = (
            self._heading(width)
            + self._captions(columns)
            + self._drafts(columns, name)
            + self._rows(columns)
            + self._written(columns)
            + self._clock(width, name)
            + _legend(width, name)
        )
        height = self._height(width)
        return card(body, width, height, definitions=hatch_patterns(name))

    def _left(self) -> float:
        """The left edge of the first draft, to the right of the labels and a ring."""
        return PAD + max(map(text_width, LABELS)) + 14 + RING

    def _columns(self, width: float) -> list[Column]:
        """A column for each draft, and one for the row that tests no draft, if any."""
        shown = self.round
        count = max(len(shown.drafts), shown.rows)
        gaps = [0.0] * count
        if shown.window and count > len(shown.window):
            gaps[len(shown.window)] = GROUP_GAP
        if shown.early is not None and count > shown.early + 1:
            gaps[shown.early + 1] = RING

        free = width - self._left() - PAD - RING - sum(gaps)
        cell = min(WIDEST_CELL, free / max(1, count))
        columns = []
        x = self._left()
        for gap in gaps:
            x += gap
            columns.append(Column(x, cell))
            x += cell
        return columns

    def _heading(self, width: float) -> str:
        """The round's number and phase, and below them the text so far."""
        title = f"{self.run.title}: round {self.step} of {self.steps}"
        if self.phase():
            title += f", {self.phase()}"
        parts = []
        for token in self.round.before:
            parts.append(TextPart("text", one_line(self.run.piece(token))))
        shown = end_that_fits(parts, width - self._left() - PAD)
        text = "".join(part.text for part in shown).strip("\u00a0")
        return (
            title_at(title, PAD, TITLE_Y)
            + text_at("text", PAD, TEXT_Y, fill=INK)
            + text_at(text or "(nothing yet)", self._left(), TEXT_Y, fill=INK)
        )

    def _captions(self, columns: list[Column]) -> str:
        """Captions over the drafts: the window, and the new drafts of this round."""
        shown = self.round
        split = len(shown.window)
        groups = [
            (columns[:split], "window: drafted one round earlier", "window"),
            (columns[split : len(shown.drafts)], self._newly_drafted(), "new drafts"),
        ]
        elements = []
        for group, words, few_words in groups:
            if group:
                free = group[-1].x + group[-1].width - group[0].x + GROUP_GAP / 2
                caption = words if text_width(words) <= free else few_words
                elements.append(text_at(caption, group[0].x, CAPTION_Y, fill=INK))
        return "".join(elements)

    def _newly_drafted(self) -> str:
        if self.round.is_at_once:
            return "being drafted in this round"
        return "drafted in this round"

    def _drafts(self, columns: list[Column], name: str) -> str:
        """A cell per draft in its outcome's colour, and the rings."""
        shown = self.round
        elements = [text_at("draft model", PAD, DRAFTS_Y + 22, fill=INK)]
        for index, token in enumerate(shown.drafts):
            outcome = shown.outcomes[index]
            tip = f"draft “{self.word(token)}”: {outcome}"
            cell = _cell(columns[index], DRAFTS_Y, outcome, name, tip)
            elements.append(cell + _label(self.word(token), columns[index], outcome))
        if shown.window:
            ends = columns[0], columns[len(shown.window) - 1]
            elements.append(_ring("window", *ends, stroke=INK))
        if shown.early is not None:
            early = columns[shown.early]
            blue = KIND_COLOURS["score"]
            dashed = {"stroke": blue, "stroke_dasharray": "7 4"}
            elements.append(_ring("early", early, early, **dashed))
        return "".join(elements)

    def _rows(self, columns: list[Column]) -> str:
        """The pass's rows, each below the draft that it tests, and the results."""
        shown = self.round
        elements = [
            text_at("target model", PAD, ROWS_Y + 22, fill=INK),
            text_at("test", PAD, TESTS_Y, fill=INK),
        ]
        if not shown.rows:
            elements.append(text_at("no pass", self._left(), ROWS_Y + 22))
        for row in range(shown.rows):
            column = columns[row]
            tests = row < len(shown.drafts)
            outcome = shown.outcomes[row] if tests else "own"
            is_used = outcome in ("accepted", "rejected") or row == self._row_of_own()
            tip = self._row_in_words(row)
            kind = "score" if is_used else "unused"
            label = f"row {row + 1}"
            label = label if text_width(label) <= column.width - 6 else f"{row + 1}"
            elements += [
                _cell(column, ROWS_Y, kind, "", tip),
                centred(
                    label, column.middle, ROWS_Y + 22, fill="#fff" if is_used else INK
                ),
            ]
            if tests:
                elements.append(_arrow(column.middle))
                elements.append(_verdict(outcome, column))
        return "".join(elements)

    def _row_of_own(self) -> int | None:
        """The row that the target's own token was drawn from; None without one."""
        if self.round.own is None:
            return None
        return len(self.round.committed) - 1

    def _row_in_words(self, row: int) -> str:
        shown = self.round
        reads = "the text"
        if row:
            reads += f" and {_counted(row, 'draft')}"
        if row < len(shown.drafts):
            return (
                f"row {row + 1}, after {reads}: tests “{self.word(shown.drafts[row])}”"
            )
        return f"row {row + 1}, after {reads}: for the bonus token"

    def _written(self, columns: list[Column]) -> str:
        """The committed tokens, each below its row and marked with its model."""
        elements = [text_at("written", PAD, WRITTEN_Y, fill=INK)]
        for index, token in enumerate(self.round.committed):
            writer = "target" if index == self._row_of_own() else "draft"
            column = columns[index]
            word = start_that_fits(self.word(token), column.width)
            elements.append(
                centred(
                    word,
                    column.middle,
                    WRITTEN_Y,
                    cls=f"written-{writer}",
                    fill=WRITER_COLOURS[writer],
                    font_weight="600",
                    **WRITER_MARKS.get(writer, {}),
                )
            )
        return "".join(elements)

    # -- the round on the clock --------------------------------------------------------
    def _clock(self, width: float, name: str) -> str:
        """Both models' work in this round, on a common time axis."""
        shown = self.round
        events = [e for e in (shown.drafting, shown.target_pass) if e is not None]
        start = min(event.ts for event in events)
        end = max(event.end for event in events)
        left, length = self._left(), width - self._left() - PAD

        def x(seconds: float) -> float:
            return left + (seconds - start) / (end - start) * length

        lanes = [self._drafting_lane(x, name), self._pass_lane(x)]
        unit = MILLISECONDS if end < 2 else SECONDS
        kind = self.run.kind
        times = text_at(duration(start, unit), left, TIMES_Y) + text_at(
            f"{duration(end, unit)} [{kind}]", left + length, TIMES_Y, text_anchor="end"
        )
        ground = ""
        for lane in range(2):
            y = CLOCK_Y + LANE_STEP * lane
            fill = f"url(#{name}-idle)"
            ground += rectangle(left, y, length, LANE_HEIGHT, kind="idle", fill=fill)
        label = text_at("on the clock", PAD, CLOCK_Y + 28, fill=INK)
        return label + ground + "".join(lanes) + times

    def _drafting_lane(self, x: XOfSecond, name: str) -> str:
        """The new drafts, one after another."""
        shown, drafting = self.round, self.round.drafting
        if drafting is None:
            return ""
        cells = []
        count = len(shown.drafted)
        for number, token in enumerate(shown.drafted):
            start = drafting.ts + drafting.dur * number / count
            column = Column(x(start), x(start + drafting.dur / count) - x(start))
            outcome = shown.outcomes[len(shown.window) + number]
            cells.append(
                _cell(column, CLOCK_Y, outcome, name, self.word(token), LANE_HEIGHT)
            )
            word = start_that_fits(self.word(token), column.width - 6)
            cells.append(centred(word, column.middle, CLOCK_Y + 15, fill="#000"))
        return "".join(cells)

    def _pass_lane(self, x: XOfSecond) -> str:
        """The target's pass and its number of rows."""
        target_pass = self.round.target_pass
        if target_pass is None:
            return ""
        y = CLOCK_Y + LANE_STEP
        column = Column(x(target_pass.ts), x(target_pass.end) - x(target_pass.ts))
        words = f"one pass: {_counted(self.round.rows, 'row')}"
        word = start_that_fits(words, column.width - 6)
        return _cell(column, y, "score", "", words, LANE_HEIGHT) + centred(
            word, column.middle, y + 15, fill="#fff"
        )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _cell(
    column: Column,
    y: float,
    kind: str,
    name: str,
    tip: str,
    height: float = CELL_HEIGHT,
) -> str:
    """A box in a column, in its kind's colour."""
    if kind in ("discarded", "rejected"):
        fill = f"url(#{name}-{kind})"
    else:
        fill = KIND_COLOURS.get(kind, "#fff")
    return rectangle(
        column.x + 1.5,
        y,
        column.width - 3,
        height,
        kind=kind,
        tip=tip,
        fill=fill,
        stroke=OUTLINES.get(kind, INK),
        stroke_width=0.75,
    )


def _label(word: str, column: Column, outcome: str) -> str:
    """A draft's token in its cell, on a white background if the cell is striped."""
    shown = start_that_fits(word, column.width - 8)
    struck = {"text_decoration": "line-through"} if outcome == "rejected" else {}
    text = centred(shown, column.middle, DRAFTS_Y + 22, fill="#000", **struck)
    if outcome not in ("rejected", "discarded"):
        return text
    width = text_width(shown) + 4
    plate = rectangle(
        column.middle - width / 2, DRAFTS_Y + 8, width, 19, fill="#fff", rx=3
    )
    return plate + text


def _ring(kind: str, first: Column, last: Column, **style: str) -> str:
    """A ring around the drafts from column ``first`` to ``last``."""
    return rectangle(
        first.x - RING + 2,
        DRAFTS_Y - RING,
        last.x + last.width - first.x + 2 * RING - 4,
        CELL_HEIGHT + 2 * RING,
        kind=f"ring-{kind}",
        fill="none",
        rx=10,
        stroke_width=3,
        **style,
    )


def _arrow(x: float) -> str:
    """An arrow from a row up to the draft that it tests."""
    top, bottom = DRAFTS_Y + CELL_HEIGHT + RING + 3, ROWS_Y - 2
    head = f"{x - 4},{top + 7} {x + 4},{top + 7} {x},{top}"
    line = vertical_line(x, top + 6, bottom, stroke=QUIET, stroke_width=1.5)
    return line + tag("polygon", points=head, fill=QUIET)


def _verdict(outcome: str, column: Column) -> str:
    """The result of a test; in the long form only if all results fit."""
    long, short = VERDICTS[outcome]
    fits = max(text_width(words) for words, _ in VERDICTS.values()) <= column.width
    word = long if fits else short
    strong = {"fill": INK, "font_weight": "600"} if outcome != "discarded" else {}
    return text_at(word, column.middle, TESTS_Y, text_anchor="middle", **strong)


def _legend_layout(width: float) -> list[tuple[str, float, int]]:
    """The kinds in the legend, each with its x and its row."""
    layout = []
    x, row = float(PAD), 0
    for kind, words in LEGEND:
        needed = 26 + text_width(words) + 20
        if x > PAD and x + needed > width:
            x, row = float(PAD), row + 1
        layout.append((kind, x, row))
        x += needed
    return layout


def _legend(width: float, name: str) -> str:
    """The legend of the fills and the dashed ring."""
    words = dict(LEGEND)
    elements = []
    for kind, x, row in _legend_layout(width):
        y = LEGEND_Y + LEGEND_ROW * row
        if kind == "early":
            elements.append(
                rectangle(
                    x,
                    y,
                    20,
                    16,
                    fill="none",
                    rx=5,
                    stroke=KIND_COLOURS["score"],
                    stroke_width=2,
                    stroke_dasharray="4 2",
                )
            )
        else:
            elements.append(_cell(Column(x - 1.5, 23), y, kind, name, "", 16))
        elements.append(text_at(words[kind], x + 26, y + 13))
    return "".join(elements)


class Rounds(SteppedView):
    """The rounds with a slider above, and a sentence below."""

    def __init__(self, run: TimelineRun):
        super().__init__(RoundsPicture(run), "round", SECONDS_OF_STEP)


@checked
def rounds(result: object, label: str | None = None) -> Rounds:
    """Shows a run round by round: the drafts that the target tests, and the results.

    ``result``: a result from ``speclib.decode``, ``simulate`` or ``compare``, or a
    trace. ``label``: replaces the method's name. Raises SpeclibError for anything else,
    and for runs with several drafts or passes at once in a round.
    """
    return Rounds(timeline_run(result, label))
