"""Placements behind a button: the same models on the same cores, shared out otherwise.

Each placement is a pair of models with its own processes. Of every method the speed is
measured, and the device-seconds of a token: those of all cores that the run reserves,
busy or waiting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import ipywidgets as widgets
import pandas as pd

from speclib.arguments import Count, checked
from speclib.data.pairs import load_pair
from speclib.decoding.decode import Result, decode, open_world
from speclib.drawing.svg import INK, card, text_at
from speclib.errors import unknown_name
from speclib.methods import METHODS, about

from .behind_button import BehindButton

NOT_RUN_YET = (
    "Not run yet. The button starts real models in processes of their own, one "
    "placement after the other. On two cores of a CPU it takes about two minutes."
)
TOKENS_TO_WARM_UP = 8
COLUMNS = ("tokens per second", "device-seconds per token")
# Pixels of the still picture, of a line in it, and where its columns begin.
WIDTH, LINE, CELLS_LEFT = 900, 26, (16, 260, 520, 690)

# The name of a pair, with the number of cores that its processes reserve.
Placement = tuple[str, int]


class MeasuredPlacement(NamedTuple):
    """A method in a placement, and what it wrote there."""

    placement: Placement
    method: str
    run: Result

    @property
    def speed(self) -> float:
        """Tokens per second."""
        return self.run.stats.decode_speed

    @property
    def device_seconds(self) -> float:
        """Seconds of all reserved cores for a token."""
        _pair, cores = self.placement
        return cores * self.run.stats.tpot

    @property
    def words(self) -> str:
        pair, _cores = self.placement
        return f"{about(self.method).name} in {pair}"


class PlacementsRun(BehindButton):
    """Methods in several placements, one after the other, and a table of them.

    ``measured``: what is there so far.
    """

    def __init__(
        self,
        prompt: Any,
        placements: Mapping[Placement, Sequence[str]],
        max_new_tokens: int,
    ):
        self.prompt = prompt
        self.placements = placements
        self.max_new_tokens = max_new_tokens
        self.measured: list[MeasuredPlacement] = []
        self.table_shown = widgets.HTML()
        super().__init__(NOT_RUN_YET)

    def work(self) -> str:
        self.measured = []
        self.children = [self.button, self.words, self.table_shown]
        for placement, methods in self.placements.items():
            if self.is_stopped:
                break
            self._measure(placement, methods)
        return self._outcome()

    def _measure(self, placement: Placement, methods: Sequence[str]) -> None:
        """All methods of one placement, in the same processes."""
        pair, _cores = placement
        self.say(f"Starting the processes of {pair}.")
        with open_world(pair=load_pair(pair), world="processes") as world:
            for method in methods:
                if self.is_stopped:
                    return
                self.say(f"{about(method).name} is writing in {pair}.")
                for count in (TOKENS_TO_WARM_UP, self.max_new_tokens):
                    run = decode(
                        self.prompt, world=world, method=method, max_new_tokens=count
                    )
                self.measured.append(MeasuredPlacement(placement, method, run))
                self.table_shown.value = self.table().to_html()

    def table(self) -> pd.DataFrame:
        """A row per placement and method, the fastest first."""
        rows = {}
        for entry in self.measured:
            key = entry.placement[0], about(entry.method).name
            rows[key] = (entry.speed, entry.device_seconds)
        table = pd.DataFrame(rows, list(COLUMNS)).T
        table = table.rename_axis(["placement [measured]", "method"]).round(3)
        return table.sort_values(COLUMNS[0], ascending=False)

    def _outcome(self) -> str:
        """Whether all wrote the same, who was fastest, and who took least."""
        if not self.measured:
            return "Stopped before the first method."
        texts = {entry.run.tokens for entry in self.measured}
        if len(texts) > 1:
            return f"These runs wrote {len(texts)} different texts: that is a bug."
        fastest = max(self.measured, key=lambda entry: entry.speed)
        cheapest = min(self.measured, key=lambda entry: entry.device_seconds)
        return (
            f"All {len(self.measured)} wrote the same. The fastest: {fastest.words}. "
            f"The fewest device-seconds: {cheapest.words}."
        )

    # -- where there are no widgets ----------------------------------------------------
    @property
    def size(self) -> tuple[int, int]:
        if not self.measured:
            return super().size
        return WIDTH, 2 * LINE + LINE * len(self.measured)

    def picture(self) -> str:
        """The table as a still picture."""
        if not self.measured:
            return super().picture()
        headings = ("placement [measured]", "method", *COLUMNS)
        lines = [_line(headings, LINE)]
        by_speed = sorted(self.measured, key=lambda entry: -entry.speed)
        for number, entry in enumerate(by_speed, 2):
            pair, _cores = entry.placement
            figures = f"{entry.speed:.1f}", f"{entry.device_seconds:.3f}"
            lines.append(
                _line((pair, about(entry.method).name, *figures), LINE * number)
            )
        return card("".join(lines), *self.size)

    def text(self) -> str:
        if not self.measured:
            return super().text()
        return f"{super().text()}\n{self.table()}"


def _line(cells: Sequence[str], y: float) -> str:
    """A row of the still table, whose text stands at ``y``."""
    parts = []
    for x, cell in zip(CELLS_LEFT, cells, strict=True):
        parts.append(text_at(cell, x, y, fill=INK))
    return "".join(parts)


@checked
def placements_run(
    prompt: Any,
    placements: Any,
    *,
    max_new_tokens: Count = 40,
) -> PlacementsRun:
    """A button that decodes ``prompt`` in several placements of the same models.

    ``placements``: (a pair's name, the cores that it reserves) -> methods. Raises
    SpeclibError at once for a pair or a method that is not there.
    """
    for (pair, _cores), methods in placements.items():
        load_pair(pair)
        for method in methods:
            if method not in METHODS:
                raise unknown_name(f"no method {method!r}", method, METHODS)
    return PlacementsRun(prompt, placements, max_new_tokens)
