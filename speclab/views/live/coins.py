"""Shows the coins that test drafted tokens, as darts on strips and as a histogram.

    accept?    |██████ accepted ██████████|//// rejected ////|      cut at min(1, p/q)
                            ▲ the coin
    instead    |· cat ·|· · · sat · · ·|                            the residual
                    ▲ a second coin

    written so far, of 10,000 tokens, and p

A token is drawn from q and tested with a coin. If the test fails, a second coin draws
the replacement. Buttons throw once, 100 or 10,000 times. Space throws once, and R
starts again. This module uses two distributions, and no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import ipywidgets as widgets
import numpy as np

from speclab.views.shapes import centred, dots
from speclab.views.some_numbers import AnyNumbers
from speclib.arguments import Seed, checked
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

from .accept_bars import TOKENS, P, Q, Row, check_distributions
from .live_picture import LivePicture, WithSentence

HEIGHT = 424.0
STRIP_HEIGHT = 34.0
ACCEPT_Y, INSTEAD_Y = 64.0, 172.0  # upper edges of the two strips
CHART_TOP, CHART = 252.0, 116.0  # the histogram's upper edge and height
THROWS = (1, 100, 10_000)


class Throw(NamedTuple):
    """A drafted token and its test.

    ``coin`` accepted or rejected the draft. After a rejection, ``second_coin`` drew the
    token that was ``written``.
    """

    drafted: int
    coin: float
    second_coin: float | None
    written: int

    @property
    def is_accepted(self) -> bool:
        return self.second_coin is None


class CoinsPicture(LivePicture):
    """The strips and the histogram; ``CoinThrows`` adds the buttons."""

    called = "Coins that test a draft. Space throws once, R starts again"

    def __init__(self, p: Row, q: Row, tokens: Sequence[str], seed: int):
        self.p = p
        self.q = q
        self.tokens = tokens
        self.seed = seed
        self._begin()
        super().__init__()

    def _begin(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self.counts = np.zeros(len(self.p), int)
        self.last: Throw | None = None

    @property
    def residual(self) -> Row:
        """The distribution that replacements are drawn from."""
        missing = np.maximum(self.p - self.q, 0)
        total = missing.sum()
        return missing / total if total > 0 else self.p

    @property
    def error(self) -> float:
        """The largest difference between a written share and p; 0 before a throw."""
        if not self.counts.sum():
            return 0.0
        return float(np.abs(self.counts / self.counts.sum() - self.p).max())

    # -- what a reader does ------------------------------------------------------------
    def throw(self, times: int) -> None:
        """Drafts, tests and writes ``times`` tokens."""
        for _ in range(times):
            self.last = self._throw_once()
            self.counts[self.last.written] += 1
        self.draw()

    def start_again(self) -> None:
        """Forgets all throws; later throws use new random numbers."""
        self.seed += 1
        self._begin()
        self.draw()

    def on_key(self, handle: str, key: str) -> None:
        if key == " ":
            self.throw(1)
        elif key in ("r", "R"):
            self.start_again()

    def _throw_once(self) -> Throw:
        drafted = _pick(self.q, self._random.random())
        coin = self._random.random()
        if coin < self.p[drafted] / self.q[drafted]:
            return Throw(drafted, coin, None, drafted)
        second_coin = self._random.random()
        written = _pick(self.residual, second_coin)
        return Throw(drafted, coin, second_coin, written)

    # -- words -------------------------------------------------------------------------
    def sentence(self) -> str:
        if self.last is None:
            return "No coin has been thrown yet."
        throw, count = self.last, int(self.counts.sum())
        word = self.tokens[throw.drafted]
        if throw.is_accepted:
            what = (
                f"The draft “{word}” was accepted: the coin landed at {throw.coin:.2f}."
            )
        else:
            what = (
                f"The draft “{word}” was rejected: the coin landed at "
                f"{throw.coin:.2f}. The second coin wrote "
                f"“{self.tokens[throw.written]}” instead."
            )
        return (
            f"{what} After {count:,} tokens the largest difference from p is "
            f"{self.error:.3f}."
        )

    def text(self) -> str:
        lines = [f"coins: {self.sentence()}"]
        for token, p, count in zip(self.tokens, self.p, self.counts, strict=True):
            lines.append(f"  {token}: p {p:.2f}, written {count} times")
        return "\n".join(lines)

    # -- the picture -------------------------------------------------------------------
    @property
    def size(self) -> tuple[int, int]:
        return 900, round(HEIGHT)

    def drawing(self, width: float) -> str:
        facts = (self.p.tolist(), self.counts.tolist(), self.last, width)
        name = unique_name("c", facts)
        patterns = tag(
            "defs",
            rejected_hatch(f"{name}-rejected")
            + dots(f"{name}-missing", KIND_COLOURS["score"]),
        )
        strip_width = width - 2 * PAD
        body = (
            self._accept_strip(strip_width, name)
            + self._instead_strip(strip_width, name)
            + self._histogram(strip_width)
        )
        return card(body, width, HEIGHT, definitions=patterns)

    def _accept_strip(self, strip_width: float, name: str) -> str:
        """A strip from 0 to 1, split at the last draft's acceptance probability."""
        token = 1 if self.last is None else self.last.drafted
        chance = min(1.0, float(self.p[token] / self.q[token]))
        word = self.tokens[token]
        heading = f"The draft is “{word}”. A coin below {chance:.2f} accepts it."
        accepted, rejected = chance * strip_width, (1 - chance) * strip_width
        elements = [
            text_at(heading, PAD, ACCEPT_Y - 34, fill=INK, font_size=16),
            _part(PAD, ACCEPT_Y, accepted, KIND_COLOURS["accepted"], "accepted"),
            _part(
                PAD + accepted, ACCEPT_Y, rejected, f"url(#{name}-rejected)", "rejected"
            ),
            _scale(ACCEPT_Y, strip_width),
        ]
        if self.last is not None:
            elements.append(_dart(PAD + self.last.coin * strip_width, ACCEPT_Y))
        return "".join(elements)

    def _instead_strip(self, strip_width: float, name: str) -> str:
        """The residual as a strip, with a part for each token."""
        heading = "If a draft is rejected, a second coin draws from the residual."
        if self.last is not None and not self.last.is_accepted:
            heading = "It was rejected, so a second coin draws from the residual."
        elements = [text_at(heading, PAD, INSTEAD_Y - 34, fill=INK, font_size=16)]
        x = float(PAD)
        for token, share in enumerate(self.residual):
            length = float(share) * strip_width
            if length > 0:
                fill = f"url(#{name}-missing)"
                elements.append(_part(x, INSTEAD_Y, length, fill, self.tokens[token]))
            x += length
        elements.append(_scale(INSTEAD_Y, strip_width))
        if self.last is not None and self.last.second_coin is not None:
            elements.append(_dart(PAD + self.last.second_coin * strip_width, INSTEAD_Y))
        return "".join(elements)

    def _histogram(self, strip_width: float) -> str:
        """A bar per token for the written share, and a line for p."""
        count = int(self.counts.sum())
        bottom = CHART_TOP + CHART
        highest = max(0.5, float(self.p.max()))
        elements = [horizontal_line(bottom, PAD, PAD + strip_width, stroke=QUIET)]
        step = strip_width / len(self.tokens)
        for token, word in enumerate(self.tokens):
            left = PAD + step * token + 0.25 * step
            bar = 0.5 * step
            share = self.counts[token] / count if count else 0.0
            height = float(share) / highest * CHART
            p_y = bottom - float(self.p[token]) / highest * CHART
            middle = left + bar / 2
            label = f"{word}: p {self.p[token]:.2f}"
            if count:
                label = f"{word}: {share:.3f}, p {self.p[token]:.2f}"
            elements += [
                rectangle(
                    left, bottom - height, bar, height, fill="#7a7a7a", kind="written"
                ),
                horizontal_line(
                    p_y, left - 8, left + bar + 8, stroke=INK, stroke_width=3
                ),
                centred(label, middle, bottom + 19),
            ]
        elements.append(text_at(self._caption(), PAD, bottom + 42, fill=INK))
        return "".join(elements)

    def _caption(self) -> str:
        """The caption of the histogram, with the error after the first throw."""
        count = int(self.counts.sum())
        if not count:
            return "No token is written yet; the lines show p."
        return (
            f"{count:,} tokens written; the lines show p; the largest error is "
            f"{self.error:.3f}"
        )


def _pick(distribution: Row, u: float) -> int:
    """The token in ``distribution`` that a number in [0, 1) selects."""
    token = int(np.searchsorted(np.cumsum(distribution), u, side="right"))
    return min(token, len(distribution) - 1)


def _part(x: float, y: float, width: float, fill: str, label: str) -> str:
    """A part of a strip, with its label if it fits."""
    box = rectangle(
        x, y, width, STRIP_HEIGHT, fill=fill, stroke=INK, stroke_width=0.75, kind=label
    )
    needed = text_width(label, 16) + 12
    if needed > width:
        return box
    middle = x + width / 2
    plate = rectangle(
        middle - needed / 2, y + 5, needed, STRIP_HEIGHT - 10, fill="#fff", rx=3
    )
    word = centred(label, middle, y + 23, font_size=16)
    return box + plate + word


def _scale(y: float, strip_width: float) -> str:
    """The numbers 0, 0.5 and 1 under a strip."""
    labels = []
    for value, anchor in ((0, "start"), (0.5, "middle"), (1, "end")):
        x = PAD + value * strip_width
        labels.append(
            text_at(f"{value:g}", x, y + STRIP_HEIGHT + 17, text_anchor=anchor)
        )
    return "".join(labels)


def _dart(x: float, y: float) -> str:
    """A triangle that points at a spot on a strip, with a line through the spot."""
    triangle = f"{x - 8},{y - 20} {x + 8},{y - 20} {x},{y - 3}"
    return tag("polygon", points=triangle, fill=INK, cls="dart") + tag(
        "line", x1=x, x2=x, y1=y - 4, y2=y + STRIP_HEIGHT, stroke=INK, stroke_width=2
    )


class CoinThrows(WithSentence):
    """The strips with buttons above and a sentence below."""

    def __init__(self, p: Row, q: Row, tokens: Sequence[str], seed: int):
        self.coins = CoinsPicture(p, q, tokens, seed)
        again = widgets.Button(description="Start again", tooltip="Key: R")
        again.on_click(lambda _button: self.coins.start_again())
        buttons = [self._button(f"Throw × {times:,}", times) for times in THROWS]
        row = widgets.Box([*buttons, again], layout={"flex_flow": "row wrap"})
        row.add_class("speclib-toolbar")
        super().__init__(row, self.coins)

    def _button(self, label: str, times: int) -> widgets.Button:
        button = widgets.Button(description=label, tooltip="Key: Space throws once")
        button.on_click(lambda _button: self.coins.throw(times))
        return button


@checked
def coins(
    p: AnyNumbers = P, q: AnyNumbers = Q, tokens: Sequence[str] = TOKENS, seed: Seed = 0
) -> CoinThrows:
    """Shows the coins that test a drafted token, thrown once or many times.

    ``p`` and ``q``: the target's and the draft's probabilities of a few tokens.
    ``tokens``: their names. Raises SpeclibError for invalid probabilities.
    """
    check_distributions(p, q, tokens)
    return CoinThrows(np.array(p, float), np.array(q, float), tokens, seed)
