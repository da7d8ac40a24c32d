"""A live picture of one step of a run, chosen with a slider, a player or keys.

The left and right arrow keys step, Home and End go to the ends, Space plays. This
module does not depend on the data: a subclass decides what a step shows.
"""

from __future__ import annotations

import ipywidgets as widgets
import traitlets

from .live_picture import LivePicture, WithSentence

KEYS = "The left and right arrow keys step, Space plays"


class SteppedPicture(LivePicture):
    """A picture of one ``step``, counted from 1; ``SteppedView`` adds the slider.

    A subclass also defines ``steps``, the number of steps.
    """

    step = traitlets.Int(1)
    playing = traitlets.Bool(False)

    def __init__(self, first: int) -> None:
        self.step = first
        super().__init__()
        self.observe(lambda _change: self.draw(), "step")

    @property
    def steps(self) -> int:
        """The number of steps."""
        raise NotImplementedError

    def on_key(self, handle: str, key: str) -> None:
        moved_to = {
            "ArrowLeft": max(self.step - 1, 1),
            "ArrowRight": min(self.step + 1, self.steps),
            "Home": 1,
            "End": self.steps,
        }
        if key in moved_to:
            self.step = moved_to[key]
        elif key == " ":
            self.playing = not self.playing


class SteppedView(WithSentence):
    """A stepped picture with a player and a slider above, and a sentence below.

    ``what``: the slider's label. ``seconds``: how long a step is shown while playing.
    """

    def __init__(self, picture: SteppedPicture, what: str, seconds: float):
        self.slider = widgets.IntSlider(
            value=picture.step,
            min=1,
            max=picture.steps,
            description=what,
            layout={"width": "420px"},
        )
        self.player = widgets.Play(
            value=picture.step, min=1, max=picture.steps, interval=round(1000 * seconds)
        )
        traitlets.link((self.slider, "value"), (picture, "step"))
        traitlets.link((self.player, "value"), (picture, "step"))
        traitlets.link((self.player, "playing"), (picture, "playing"))
        row = widgets.Box([self.player, self.slider], layout={"flex_flow": "row wrap"})
        row.add_class("speclib-toolbar")
        super().__init__(row, picture)
