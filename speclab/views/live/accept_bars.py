"""Shows how a drafted token is tested, with bars for q and p.

    left: a token's two bars              right: what is written, and p
      ┌───┐ q: outline, dashed              ┌───────┐ ┌───────┐
      │///│ q above p: rejected             │ res.  │ │       │
    ┌─┼───┼─┐ p: outline                    ├───────┤ │   p   │
    │ │   │ │ min(p, q): kept               │ kept  │ │       │
    └─┴───┴─┘                               └───────┘ └───────┘

The rejected and the missing parts have the same total, so accepted tokens and
replacements together always fill p. A reader drags the tops of the bars, moves them
with the arrow keys, or changes the temperature. This module uses two distributions,
and no model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from speclab.views.shapes import centred, dots, title_at
from speclab.views.some_numbers import AnyNumbers
from speclab.views.widgets.controls import control, toolbar
from speclib.arguments import checked
from speclib.drawing.numbers import percent
from speclib.drawing.svg import (
    INK,
    KIND_COLOURS,
    PAD,
    QUIET,
    card,
    horizontal_line,
    rectangle,
    rejected_hatch,
    tag,
    text_at,
    unique_name,
)
from speclib.drawing.text_in_pictures import text_width
from speclib.errors import BadValue

from .live_picture import LivePicture, WithSentence

Row = npt.NDArray[np.float64]

TOKENS = ("cat", "dog", "sat", "the")
P = (0.45, 0.15, 0.30, 0.10)
Q = (0.20, 0.45, 0.25, 0.10)

HEIGHT = 390.0
TOP, CHART = 44.0, 236.0  # pixels above the bars, and the chart's height
COLUMNS_SHARE = 0.27  # the share of the width for the two columns on the right
LEAST, MOST = 0.01, 0.97  # probabilities that a reader may set
STEP = 0.01  # the change per key press
KEY_STEPS = {
    "ArrowUp": STEP,
    "ArrowRight": STEP,
    "ArrowDown": -STEP,
    "ArrowLeft": -STEP,
}
LEGEND = (
    ("kept", "kept: min(p, q)"),
    ("rejected", "rejected: q above p"),
    ("missing", "replaced: p above q"),
)


class AcceptBarsPicture(LivePicture):
    """The bars alone; ``AcceptBars`` adds the slider."""

    called = "Bars for p and q with movable tops"

    def __init__(self, p: Row, q: Row, tokens: Sequence[str]):
        self.tokens = tokens
        self.at_temperature_1 = {"p": p, "q": q}
        self.temperature = 1.0
        super().__init__()

    # -- the numbers -------------------------------------------------------------------
    @property
    def p(self) -> Row:
        return tempered(self.at_temperature_1["p"], self.temperature)

    @property
    def q(self) -> Row:
        return tempered(self.at_temperature_1["q"], self.temperature)

    @property
    def accepted(self) -> Row:
        """The probability that each token is drafted and accepted."""
        return np.minimum(self.p, self.q)

    @property
    def missing(self) -> Row:
        """The probability that replacements must add to each token."""
        return np.maximum(self.p - self.q, 0)

    def set_probability(self, name: str, token: int, value: float) -> None:
        """Changes a token's probability at the current temperature.

        The other tokens keep their proportions. ``name``: "p" or "q".
        """
        distribution = self.p if name == "p" else self.q
        value = min(max(value, LEAST), MOST)
        others = distribution.copy()
        others[token] = 0
        changed = others * (1 - value) / others.sum()
        changed[token] = value
        self.at_temperature_1[name] = tempered(changed, 1 / self.temperature)

    # -- what a reader does ------------------------------------------------------------
    def on_drag(self, handle: str, x: float, y: float) -> None:
        name, token = handle.split("-")
        self.set_probability(name, int(token), (TOP + CHART - y) / CHART * self.highest)

    def on_key(self, handle: str, key: str) -> None:
        if handle and key in KEY_STEPS:
            name, number = handle.split("-")
            distribution = self.p if name == "p" else self.q
            value = float(distribution[int(number)]) + KEY_STEPS[key]
            self.set_probability(name, int(number), value)

    # -- words -------------------------------------------------------------------------
    def sentence(self) -> str:
        accepted = float(self.accepted.sum())
        return (
            f"Of 100 drafted tokens, {100 * accepted:.0f} are kept and "
            f"{100 - round(100 * accepted)} are rejected and replaced."
        )

    def text(self) -> str:
        lines = [f"accept bars at temperature {self.temperature:g}: {self.sentence()}"]
        for token, p, q in zip(self.tokens, self.p, self.q, strict=True):
            chance = min(1.0, p / q)
            accepted = f"accepted with probability {chance:.2f}"
            lines.append(f"  {token}: q {q:.2f}, p {p:.2f}, {accepted}")
        return "\n".join(lines)

    # -- the picture -------------------------------------------------------------------
    @property
    def size(self) -> tuple[int, int]:
        return 900, round(HEIGHT)

    @property
    def highest(self) -> float:
        """The probability at the top of the chart."""
        return max(0.5, float(self.p.max()), float(self.q.max()))

    def drawing(self, width: float) -> str:
        name = unique_name("b", (self.p.tolist(), self.q.tolist(), width))
        patterns = tag(
            "defs",
            rejected_hatch(f"{name}-rejected")
            + dots(f"{name}-missing", KIND_COLOURS["score"]),
        )
        columns_width = COLUMNS_SHARE * width
        body = (
            self._bars(PAD, width - columns_width - 2 * PAD, name)
            + self._columns(width - columns_width, columns_width - PAD, name)
            + legend(name, width)
        )
        return card(body, width, HEIGHT, definitions=patterns)

    def _bars(self, left: float, width: float, name: str) -> str:
        """A pair of bars for each token, on a common baseline."""
        bottom = TOP + CHART
        elements = [
            title_at("one drafted token", left, 20, size=16),
            horizontal_line(bottom, left, left + width, stroke=QUIET),
        ]
        step = width / len(self.tokens)
        for token in range(len(self.tokens)):
            elements.append(self._token(token, left + step * token, step, name))
        return "".join(elements)

    def _token(self, token: int, left: float, step: float, name: str) -> str:
        """A token's bars: its accepted part, excess, outlines and handles."""
        p, q = float(self.p[token]), float(self.q[token])
        bottom, pixels = TOP + CHART, CHART / self.highest
        x, bar = left + 0.25 * step, 0.5 * step
        lower, upper = min(p, q) * pixels, max(p, q) * pixels
        over = f"url(#{name}-{'rejected' if q > p else 'missing'})"

        chance = min(1.0, p / q)
        middle = left + step / 2
        word = self.tokens[token]
        numbers = f"q {q:.2f}  p {p:.2f}".replace("0.", ".")
        passing = f"{percent(chance)} accepted"
        if text_width(passing) > step:
            passing = f"{percent(chance)} kept"
        tip = f"a drafted “{word}” is accepted with probability {chance:.2f}"
        elements = [
            rectangle(
                x,
                bottom - lower,
                bar,
                lower,
                fill=KIND_COLOURS["accepted"],
                kind="kept",
                tip=tip,
            ),
            rectangle(
                x, bottom - upper, bar, upper - lower, fill=over, kind="over", tip=tip
            ),
            self._handle("q", token, x, bar, q, bottom - q * pixels),
            self._handle("p", token, x, bar, p, bottom - p * pixels),
            centred(word, middle, bottom + 19, font_size=16),
            centred(numbers, middle, bottom + 38),
            text_at(passing, middle, bottom + 57, text_anchor="middle"),
        ]
        return "".join(elements)

    def _handle(
        self, name: str, token: int, x: float, width: float, value: float, y: float
    ) -> str:
        """The movable top of a bar, as a line with a letter."""
        is_p = name == "p"
        line: dict[str, str | float] = {"stroke": INK, "stroke_width": 3}
        if not is_p:
            line["stroke_dasharray"] = "6 4"
        end = x + width + 12 if is_p else x - 12
        anchor = "start" if is_p else "end"
        letter_x = end + (4 if is_p else -4)
        parts = (
            horizontal_line(y, min(x, end), max(x + width, end), **line)
            + text_at(name, letter_x, y + 5, text_anchor=anchor, fill=INK)
            + rectangle(x - 14, y - 9, width + 28, 18, fill_opacity=0)
        )
        word = self.tokens[token]
        model = "target model" if is_p else "draft model"
        return tag(
            "g",
            parts,
            data_handle=f"{name}-{token}",
            aria_label=f"probability of {word} in the {model}",
            aria_valuenow=round(value, 2),
            aria_valuemin=LEAST,
            aria_valuemax=MOST,
        )

    def _columns(self, left: float, width: float, name: str) -> str:
        """Accepted tokens and replacements, stacked by token, next to p."""
        bottom, bar = TOP + CHART, 0.36 * width
        right = left + width - bar
        elements = [
            title_at("many tokens", left, 20, size=16),
            centred("written", left + bar / 2, bottom + 19),
            centred("p", right + bar / 2, bottom + 19),
        ]
        y = bottom
        for token, word in enumerate(self.tokens):
            accepted = float(self.accepted[token]) * CHART
            missing = float(self.missing[token]) * CHART
            whole = accepted + missing
            y -= whole
            elements += [
                rectangle(
                    left,
                    y + missing,
                    bar,
                    accepted,
                    fill=KIND_COLOURS["accepted"],
                    kind="kept",
                ),
                rectangle(
                    left, y, bar, missing, fill=f"url(#{name}-missing)", kind="missing"
                ),
                rectangle(right, y, bar, whole, fill="none", stroke=INK, kind="p"),
                rectangle(left, y, bar, whole, fill="none", stroke=INK),
            ]
            if whole > 15:
                elements.append(
                    centred(word, (left + bar + right) / 2, y + whole / 2 + 5)
                )
        return "".join(elements)


def tempered(distribution: Row, temperature: float) -> Row:
    """The normalised probabilities to the power of 1 / ``temperature``."""
    powers: Row = distribution ** (1 / temperature)
    normalised: Row = powers / powers.sum()
    return normalised


def legend(name: str, width: float) -> str:
    """The legend of the three fills."""
    fills = {
        "kept": KIND_COLOURS["accepted"],
        "rejected": f"url(#{name}-rejected)",
        "missing": f"url(#{name}-missing)",
    }
    elements = []
    x, y = float(PAD), TOP + CHART + 76
    step = (width - 2 * PAD) / len(LEGEND)
    for kind, meaning in LEGEND:
        elements.append(
            rectangle(x, y, 20, 16, fill=fills[kind], stroke=QUIET, stroke_width=0.75)
        )
        elements.append(text_at(meaning, x + 27, y + 13, fill=INK))
        x += step
    return "".join(elements)


class AcceptBars(WithSentence):
    """The bars with a temperature slider above and a sentence below."""

    def __init__(self, p: Row, q: Row, tokens: Sequence[str]):
        self.bars = AcceptBarsPicture(p, q, tokens)
        self.temperature = control("temperature", (0.2, 3.0, 0.1, 1.0))
        self.temperature.observe(self._on_temperature, "value")
        super().__init__(toolbar({"temperature": self.temperature}), self.bars)

    def _on_temperature(self, _change: object) -> None:
        self.bars.temperature = self.temperature.value
        self.bars.draw()


def check_distributions(p: AnyNumbers, q: AnyNumbers, tokens: Sequence[str]) -> None:
    """Raises BadValue unless ``p`` and ``q`` are distributions over ``tokens``."""
    for name, shares in (("p", p), ("q", q)):
        if len(shares) != len(tokens):
            raise BadValue(
                f"{name} has {len(shares)} probabilities for {len(tokens)} tokens: "
                "give one each"
            )
        if not all(0 < share < 1 for share in shares) or abs(sum(shares) - 1) > 1e-6:
            raise BadValue(
                f"{name} is {tuple(shares)}: give probabilities above 0 that sum to 1"
            )


@checked
def accept_bars(
    p: AnyNumbers = P, q: AnyNumbers = Q, tokens: Sequence[str] = TOKENS
) -> AcceptBars:
    """Shows how drafted tokens are tested, with bars whose tops can be dragged.

    ``p``: the target model's probabilities of a few tokens. ``q``: the draft model's.
    ``tokens``: their names. Raises SpeclibError for invalid probabilities.
    """
    check_distributions(p, q, tokens)
    return AcceptBars(np.array(p, float), np.array(q, float), tokens)
