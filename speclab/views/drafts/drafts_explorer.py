"""A picture of a round's draft, with a slider that chooses the round.

It shows several sequences (``sequences_picture``), a tree (``tree_picture``) or
branches (``fork_picture``). This module uses no method and no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as widgets

from speclab.views.widgets.controls import side_by_side
from speclib.drawing.display import NotebookView
from speclib.drawing.timeline.run import timeline_run
from speclib.errors import BadValue

from .draft_rounds import (
    DraftedRound,
    ForkRound,
    SequencesRound,
    TreeRound,
    drafted_rounds,
)
from .fork_picture import fork_height, fork_svg
from .parts import WIDTH
from .sequences_picture import sequences_height, sequences_svg
from .tree_picture import tree_height, tree_svg

# For each kind of round, the functions for its picture and the picture's height.
DRAW: dict[type[DraftedRound], Callable[[Any], str]] = {
    SequencesRound: sequences_svg,
    TreeRound: tree_svg,
    ForkRound: fork_svg,
}
HEIGHT: dict[type[DraftedRound], Callable[[Any], int]] = {
    SequencesRound: sequences_height,
    TreeRound: tree_height,
    ForkRound: fork_height,
}


class Sequences(NotebookView, widgets.VBox):  # type: ignore[misc]  # untyped
    """The sequences, trees or branches that a run drafted, round by round.

    ``duodecoding`` drafts several sequences, ``tree`` and ``easyspec`` draft trees, and
    ``ssd`` drafts a branch for each outcome. A slider above the picture chooses the
    round.

    ``shown``: a result or trace, or a dict of them. The keys of the dict are the values
    of the setting in which the runs differ, and ``by`` is its name. A second slider
    then chooses the run. When it moves, the picture shows the new run's round whose
    position in the text is nearest to that of the last round shown.

    ``round``: the first round to show; by default the one with the widest draft.

    Raises SpeclibError if a run has no such drafts, or for an unknown round.
    """

    def __init__(self, shown: Any, round: int | None = None, by: str = "run"):
        runs = dict(shown) if isinstance(shown, Mapping) else {"": shown}
        if not runs:
            raise BadValue("no run to show: give at least one result or trace")
        self.rounds: dict[Any, list[DraftedRound]] = {}
        for value, run in runs.items():
            self.rounds[value] = drafted_rounds(timeline_run(run))
        self._greatest_height = max(
            HEIGHT[type(drafted)](drafted)
            for rounds in self.rounds.values()
            for drafted in rounds
        )

        rounds_of_first_run = next(iter(self.rounds.values()))
        self.slider = _round_slider(rounds_of_first_run, round)
        self.chooser = widgets.SelectionSlider(
            options=list(self.rounds), description=by, layout={"width": "340px"}
        )
        self.image = widgets.HTML()
        self._render_again()
        self.slider.observe(self._render_again, "value")
        self.chooser.observe(self._show_nearest_round, "value")

        sliders = {"round": self.slider}
        if len(runs) > 1:
            sliders[by] = self.chooser
        super().__init__([side_by_side(sliders), self.image])

    @property
    def round(self) -> DraftedRound:
        """The round that the sliders choose."""
        rounds = self.rounds[self.chooser.value]
        return _numbered(rounds, self.slider.value)

    @property
    def size(self) -> tuple[int, int]:
        return WIDTH, HEIGHT[type(self.round)](self.round)

    def picture(self) -> str:
        return DRAW[type(self.round)](self.round)

    def text(self) -> str:
        """The round in words."""
        run = ""
        if len(self.rounds) > 1:
            run = f"{self.chooser.description} = {self.chooser.value}: "
        number_of_rounds = len(self.rounds[self.chooser.value])
        lines = [f"tree, {run}{number_of_rounds} rounds", *self.round.lines()]
        return "\n".join(lines)

    def _render_again(self, _change: object = None) -> None:
        """Updates the picture; its height never changes, so that nothing jumps."""
        style = f"min-height: {self._greatest_height}px"
        self.image.value = f'<div style="{style}">{self.picture()}</div>'

    def _show_nearest_round(self, change: dict[str, Any]) -> None:
        """Moves the round slider to the round nearest to the position shown before."""
        rounds_before = self.rounds[change["old"]]
        rounds = self.rounds[change["new"]]
        position = _numbered(rounds_before, self.slider.value).position
        nearest = min(rounds, key=lambda drafted: abs(drafted.position - position))

        self.slider.options = [drafted.number for drafted in rounds]
        self.slider.value = nearest.number
        self._render_again()


sequences = Sequences  # its name in lessons


def _round_slider(
    rounds: list[DraftedRound], first_shown: int | None
) -> widgets.SelectionSlider:
    """A slider over ``rounds`` that starts at ``first_shown`` or at the widest."""
    numbers = [drafted.number for drafted in rounds]
    if first_shown is None:
        widest = max(rounds, key=lambda drafted: drafted.width)
        first_shown = widest.number
    if first_shown not in numbers:
        raise BadValue(
            f"round is {first_shown}: this run drafted in rounds {numbers[0]} to "
            f"{numbers[-1]}"
        )
    return widgets.SelectionSlider(
        options=numbers,
        value=first_shown,
        description="round",
        layout={"width": "420px"},
    )


def _numbered(rounds: list[DraftedRound], number: int) -> DraftedRound:
    return next(drafted for drafted in rounds if drafted.number == number)
