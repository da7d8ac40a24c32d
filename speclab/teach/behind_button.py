"""A button that starts slow work in the background.

*Run all* does not wait for the work, and the sliders stay responsive. The environment
variable SPECLIB_CLICK clicks the button when lessons are stored.
"""

from __future__ import annotations

import os
from html import escape
from threading import Event, Lock, Thread

import ipywidgets as widgets

from speclib.drawing.display import NotebookView
from speclib.drawing.svg import INK, card, text_at

ONE_AT_A_TIME = Lock()  # two runs on the same cores would slow each other down
SIZE_BEFORE = (900, 60)  # of the still picture before a run, in pixels


class BehindButton(NotebookView, widgets.VBox):  # type: ignore[misc]  # untyped
    """A button, and the work that it starts.

    A subclass defines ``work``. ``error``: the last run's error, or None. ``spoken``:
    the sentence below the button. ``clicks_itself``: whether SPECLIB_CLICK clicks it.
    """

    clicks_itself = True

    def __init__(self, before: str):
        self.error: Exception | None = None
        self._stop_asked = Event()
        self._thread: Thread | None = None
        self.button = widgets.Button(description="Run it here", icon="play")
        self.button.on_click(lambda _button: self.start_or_stop())
        self.words = widgets.HTML()
        self.say(before)
        super().__init__([self.button, self.words])
        if self.clicks_itself and os.environ.get("SPECLIB_CLICK"):
            self.start_or_stop()
            self.wait()
            if self.error is not None:
                raise self.error

    def work(self) -> str:
        """Does the work, and returns the sentence to show afterwards.

        It checks ``is_stopped`` wherever it can stop.
        """
        raise NotImplementedError

    @property
    def is_stopped(self) -> bool:
        """Whether the reader clicked the button again."""
        return self._stop_asked.is_set()

    def start_or_stop(self) -> None:
        """Starts the work, or asks it to stop."""
        if self._thread is not None and self._thread.is_alive():
            self._stop_asked.set()
            self.say("Stopping after this method.")
            return
        self._stop_asked.clear()
        self.button.description, self.button.icon = "Stop", "stop"
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Waits until the work is done, if it was started."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        self.error = None
        try:
            with ONE_AT_A_TIME:
                self.say(self.work())
        except Exception as error:  # shown to the reader
            self.error = error
            self.say(f"The run failed. {type(error).__name__}: {error}")
        finally:
            self.button.description, self.button.icon = "Run it again", "play"

    def say(self, words: str) -> None:
        """Shows a sentence below the button; screen readers read it aloud."""
        self.spoken = words
        style = "font-size: 15px; line-height: 1.4; max-width: 60em"
        self.words.value = (
            f'<div role="status" aria-live="polite" style="{style}">'
            f"{escape(words)}</div>"
        )

    # -- without widgets ----------------------------------------------------
    @property
    def size(self) -> tuple[int, int]:
        return SIZE_BEFORE

    def picture(self) -> str:
        words = "Not run yet: the button starts real models."
        return card(text_at(words, 16, 36, fill=INK, font_size=16), *SIZE_BEFORE)

    def text(self) -> str:
        return self.spoken
