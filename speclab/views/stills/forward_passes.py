"""The time that passes over a few tokens take to read the weights, and to compute.

This module uses a device's data sheet, and no model or clock.

::

    title
      1 token   ██████████████████ reads 13.5 GB: 6.6 ms
                ▏ computes 13.5 billion operations: 0.043 ms
      5 tokens  ██████████████████ reads 13.5 GB: 6.6 ms
                ▏ computes 67.4 billion operations: 0.22 ms
"""

from __future__ import annotations

from speclab.theory.hardware import ForwardPass, forward_pass
from speclab.views.shapes import Still, title_at
from speclib.arguments import Count, checked
from speclib.drawing.svg import INK, KIND_COLOURS, PAD, rectangle, text_at
from speclib.errors import BadValue

WEIGHTS = 6.74e9  # in Llama 2 7B
TITLE = "A pass of Llama 2 7B on an A100 [formula, from the data sheet]"
COLOURS = {"reading": KIND_COLOURS["score"], "computing": KIND_COLOURS["rejected"]}
WIDTH, TOP, LEFT, LONGEST_BAR = 560, PAD + 38, PAD + 84, 300  # pixels
BAR, ROW = 18, 62  # heights, in pixels


class ForwardPasses(Still):
    """Two bars for each pass: the time it takes to read, and to compute."""

    def __init__(self, passes: list[ForwardPass]):
        self.passes = passes
        self.longest = max(max(each.reading, each.computing) for each in passes)
        self.size = (WIDTH, TOP + ROW * len(passes) + PAD // 2)

    def drawing(self) -> str:
        elements = [title_at(TITLE, PAD, PAD + 14)]
        for number, each in enumerate(self.passes):
            y = TOP + ROW * number
            name_at = LEFT - 12, y + BAR + 5
            name = text_at(tokens_of(each), *name_at, text_anchor="end", fill=INK)
            elements.append(name)
            elements.append(self._bar("reading", each.reading, reading_of(each), y))
            y += BAR + 4
            words = computing_of(each)
            elements.append(self._bar("computing", each.computing, words, y))
        return "".join(elements)

    def _bar(self, kind: str, seconds: float, words: str, y: float) -> str:
        """A bar whose length is its time, with ``words`` at its end."""
        width = max(1.0, LONGEST_BAR * seconds / self.longest)
        bar = rectangle(LEFT, y, width, BAR, fill=COLOURS[kind], kind=kind)
        return bar + text_at(words, LEFT + width + 8, y + BAR - 4, fill=INK)

    def __repr__(self) -> str:
        lines = [TITLE]
        for each in self.passes:
            words = f"{reading_of(each)}; {computing_of(each)}"
            lines.append(f"  {tokens_of(each)}: {words}")
        return "\n".join(lines)


def tokens_of(each: ForwardPass) -> str:
    """The number of tokens: "1 token" or "5 tokens"."""
    return "1 token" if each.tokens == 1 else f"{each.tokens} tokens"


def reading_of(each: ForwardPass) -> str:
    """The number of bytes read, and the time that this takes."""
    return f"reads {each.bytes_read / 1e9:.3g} GB: {1000 * each.reading:.1f} ms"


def computing_of(each: ForwardPass) -> str:
    """The number of operations, and the time that this takes."""
    billions, milliseconds = each.operations / 1e9, 1000 * each.computing
    return f"computes {billions:.3g} billion operations: {milliseconds:.2g} ms"


@checked
def forward_passes(*tokens: Count) -> ForwardPasses:
    """Draws the time of a pass of Llama 2 7B on an A100 for each number of tokens.

    Raises BadValue without a number of tokens.
    """
    if not tokens:
        raise BadValue("no pass to draw: give numbers of tokens, such as 1, 5, 50")
    return ForwardPasses([forward_pass(each, WEIGHTS, "a100") for each in tokens])
