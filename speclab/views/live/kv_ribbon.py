"""The KV caches of a run as ribbons: a row per device, a slot per position in the text.

    text     The  model  reads  the  first     ...
    draft    ■    ■      ■      ▨    ▨
    target   ■    ■      ■      ▨

    ■ exact   □ fuzzy   ▨ stale, until the device cuts it off   ┆ just cut off

A step is the end of an operation, or a commit. Arrow keys step, Space plays. This
module reads a trace and the texts of its tokens. It uses no method, model or clock.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from speclab.traces.caches import EXACT, FUZZY, STALE, CacheMoment, cache_moments
from speclab.views.shapes import centred, dots, start_that_fits
from speclib.arguments import checked
from speclib.drawing.svg import (
    INK,
    KIND_COLOURS,
    PAD,
    QUIET,
    card,
    rectangle,
    rejected_hatch,
    tag,
    text_at,
    unique_name,
)
from speclib.drawing.text_in_pictures import text_width, token_label
from speclib.drawing.timeline.run import TimelineRun, timeline_run
from speclib.trace.events import COMMIT

from .stepped_picture import KEYS, SteppedPicture, SteppedView

CELL = 48.0  # width of a position in the text, in pixels
ROW, GAP = 34.0, 10.0  # height of a row, and distance between rows, in pixels
TOP = 62.0  # pixels above the row of the text
SHIFT = 8  # positions that the ribbons scroll at a time, so that they scroll rarely
SECONDS_OF_STEP = 1.2  # while playing
CUT = "cut"
LEGEND = (
    (EXACT, "exact"),
    (FUZZY, "fuzzy"),
    (STALE, "stale: after a token that is not in the text"),
    (CUT, "just cut off"),
)


class KvRibbonPicture(SteppedPicture):
    """The ribbons at one ``step`` of a run; ``KvRibbon`` adds the slider.

    The first step shown is the first with a stale slot, if any.
    """

    called = f"KV caches, step by step. {KEYS}"

    def __init__(self, run: TimelineRun):
        self.run = run
        self.moments = cache_moments(run.trace)
        self.pieces: list[str] = []  # the text after the prompt, token by token
        for committed in run.committed_texts():
            self.pieces += [part.text for part in committed.parts]
        super().__init__(self._first_stale_step())

    @property
    def steps(self) -> int:
        return len(self.moments)

    def _first_stale_step(self) -> int:
        for step, moment in enumerate(self.moments, 1):
            if any(STALE in kinds for kinds in moment.kinds.values()):
                return step
        return 1

    # -- words -------------------------------------------------------------------------
    @property
    def moment(self) -> CacheMoment:
        return self.moments[self.step - 1]

    def sentence(self) -> str:
        event = self.moment.event
        if event.op == COMMIT:
            return self._commit_in_words()
        if event.lost:
            return f"{event.device} is lost, and its cache with it."
        words = [f"{event.device}: "]
        if self.moment.cut:
            words.append(f"cuts off {_counted_slots(self.moment.cut)}, then ")
        words.append(f"adds {_counted_slots(self.moment.added)}")
        if event.cancelled:
            words.append(" until it is cancelled")
        fuzzy = event.payload.fuzzy_slots
        if fuzzy:
            words.append(f", {fuzzy} of them fuzzy")
            if event.payload.drops_fuzzy_slots:
                words.append(", which the pass drops when it ends")
        return "".join(words) + "."

    def _commit_in_words(self) -> str:
        """The tokens that the text gained, and the caches that no longer match it."""
        count = len(self.moment.event.tokens)
        words = f"The text grows by {count} token{'' if count == 1 else 's'}. "
        stale = []
        for device, kinds in self.moment.kinds.items():
            if STALE in kinds:
                stale.append(f"{_counted_slots(kinds.count(STALE))} of {device}")
        if not stale:
            return words + "Every cache matches it."
        return words + f"Stale: {', '.join(stale)}."

    def text(self) -> str:
        lines = [f"KV caches, step {self.step} of {len(self.moments)}"]
        lines[0] += f": {self.sentence()}"
        for device, kinds in self.moment.kinds.items():
            counts = [f"{kinds.count(kind)} {kind}" for kind in (EXACT, FUZZY, STALE)]
            lines.append(f"  {device}: {', '.join(counts)}")
        return "\n".join(lines)

    # -- the picture -------------------------------------------------------------------
    @property
    def height(self) -> float:
        rows = 1 + len(self.moment.kinds)
        return TOP + rows * (ROW + GAP) + 44

    @property
    def size(self) -> tuple[int, int]:
        return 900, round(self.height)

    def drawing(self, width: float) -> str:
        name = unique_name("k", (self.step, self.run.title, width))
        patterns = tag(
            "defs",
            rejected_hatch(f"{name}-stale")
            + dots(f"{name}-fuzzy", KIND_COLOURS["score"]),
        )
        left = PAD + self._label_width()
        columns = max(1, int((width - left - PAD) // CELL))
        first = self._first_position(columns)
        body = self._heading(width) + self._text_row(left, first, columns)
        y = TOP + ROW + GAP
        for device in self.moment.kinds:
            body += self._ribbon(device, left, y, first, columns, name)
            y += ROW + GAP
        body += _legend(y + 8, name, self._kinds)
        return card(body, width, self.height, definitions=patterns)

    @cached_property
    def _kinds(self) -> set[str]:
        """The kinds of slot in the run, including slots just cut off."""
        kinds = {EXACT, CUT}
        for moment in self.moments:
            for slots in moment.kinds.values():
                kinds.update(slots)
        return kinds

    def _label_width(self) -> float:
        names = ["text", *self.moment.kinds]
        return max(text_width(name) for name in names) + 14

    def _first_position(self, columns: int) -> int:
        """The leftmost position shown, chosen so that the newest are always visible."""
        longest = self.moment.text_length
        for kinds in self.moment.kinds.values():
            longest = max(longest, len(kinds) + self._cut_of_now())
        start = max(0, self.run.trace.prompt_length - 2)
        while longest - start > columns:
            start += SHIFT
        return start

    def _cut_of_now(self) -> int:
        """The number of removed slots whose outlines reach beyond the new slots."""
        return max(0, self.moment.cut - self.moment.added)

    def _heading(self, width: float) -> str:
        title = f"{self.run.title}: step {self.step} of {len(self.moments)}"
        note = "a column is a position in the text"
        return text_at(title, PAD, 28, fill=INK, font_size=16) + text_at(
            note, width - PAD, 28, text_anchor="end"
        )

    def _text_row(self, left: float, first: int, columns: int) -> str:
        """The tokens of the text so far."""
        prompt_length = self.run.trace.prompt_length
        y = TOP + ROW / 2 + 5
        elements = [text_at("text", PAD, y, fill=INK)]
        last = min(first + columns, self.moment.text_length)
        for position in range(first, last):
            middle = left + (position - first + 0.5) * CELL
            if position < prompt_length:
                label, tip = "·", "a prompt token"
            else:
                tip = self.pieces[position - prompt_length]
                word = token_label(tip)
                label = start_that_fits(word, CELL - 4)
                if label != word:
                    label = f"{start_that_fits(word, CELL - 14)}…"
            elements.append(centred(label, middle, y))
        return "".join(elements)

    def _ribbon(
        self, device: str, left: float, y: float, first: int, columns: int, name: str
    ) -> str:
        """A device's slots, and those that it has just cut off."""
        kinds = self.moment.kinds[device]
        elements = [text_at(device, PAD, y + ROW / 2 + 5, fill=INK)]
        is_own = self.moment.event.device == device
        newest = len(kinds) - (self.moment.added if is_own else 0)
        for position in range(first, min(first + columns, len(kinds))):
            elements.append(
                _slot(
                    left + (position - first) * CELL + 1.5,
                    y,
                    CELL - 3,
                    ROW,
                    kinds[position],
                    name,
                    is_new=position >= newest,
                    tip=f"position {position + 1}: {kinds[position]}",
                )
            )
        if is_own and self.moment.cut:
            end = min(first + columns, newest + self.moment.cut)
            for position in range(max(first, len(kinds)), end):
                x = left + (position - first) * CELL + 1.5
                elements.append(_cut_off(x, y, CELL - 3, ROW))
            if newest >= first:
                elements.append(_scissors(left + (newest - first) * CELL, y))
        return "".join(elements)


def _counted_slots(count: int) -> str:
    return f"{count} slot{'' if count == 1 else 's'}"


def _slot(
    x: float,
    y: float,
    width: float,
    height: float,
    kind: str,
    name: str,
    *,
    is_new: bool = False,
    tip: str = "",
) -> str:
    """A slot's box, with a thick outline if it is new."""
    fill = f"url(#{name}-{kind})" if kind in (FUZZY, STALE) else KIND_COLOURS["score"]
    return rectangle(
        x,
        y,
        width,
        height,
        kind=kind,
        fill=fill,
        stroke=INK,
        stroke_width=3 if is_new else 0.75,
        tip=tip,
    )


def _cut_off(x: float, y: float, width: float, height: float) -> str:
    """The outline of a removed slot."""
    return rectangle(
        x, y, width, height, kind=CUT, fill="none", stroke=QUIET, stroke_dasharray="4 3"
    )


def _scissors(x: float, y: float) -> str:
    """A thick line where a cache was cut."""
    return rectangle(
        x - 2, y - 5, 4, ROW + 10, kind="scissors", fill=KIND_COLOURS["rejected"]
    )


def _legend(y: float, name: str, kinds: Collection[str]) -> str:
    """A legend of the fills that occur in the run."""
    elements = []
    x = float(PAD)
    for kind, words in LEGEND:
        if kind not in kinds:
            continue
        if kind == CUT:
            elements.append(_cut_off(x, y, 18, 17))
        else:
            elements.append(_slot(x, y, 18, 17, kind, name))
        elements.append(text_at(words, x + 26, y + 14))
        x += 26 + text_width(words) + 22
    return "".join(elements)


class KvRibbon(SteppedView):
    """The ribbons with a slider for the step above, and a sentence below."""

    def __init__(self, run: TimelineRun):
        super().__init__(KvRibbonPicture(run), "step", SECONDS_OF_STEP)


@checked
def kv_ribbon(result: object, label: str | None = None) -> KvRibbon:
    """Shows the contents of every device's KV cache, step by step.

    ``result``: a result from ``speclib.decode``, ``simulate`` or ``compare``, or a
    trace. ``label``: replaces the method's name. Raises SpeclibError for anything else,
    and for trees and several sequences, whose slots are not positions in the text.
    """
    return KvRibbon(timeline_run(result, label))
