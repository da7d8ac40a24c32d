"""Real models behind a button: a lesson waits for nobody who does not ask for them.

The models run beside the notebook, so that its sliders go on moving. Where nobody can
click, as when lessons are stored, the environment variable SPECLIB_CLICK clicks.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from threading import Event, Lock, Thread
from typing import Any

import ipywidgets as widgets

from speclib.arguments import Count, checked
from speclib.data.pairs import load_pair
from speclib.decoding.decode import Result, decode
from speclib.errors import unknown_name
from speclib.methods import METHODS
from speclib.views.display import NotebookView
from speclib.views.svg import INK, card, text_at
from speclib.views.timeline.run import METHOD_NAMES
from speclib.views.timeline.widget import Timeline
from speclib.worlds.processes import Processes

DEFAULT_METHODS = ("autoregressive", "speculative", "pearl")
NOT_RUN_YET = (
    "Not run yet. The button starts real models in processes of their own. On two "
    "cores of a CPU it takes about a minute. The sliders above go on moving, but what "
    "they compute slows the models down."
)
ONE_AT_A_TIME = Lock()  # two runs on the same cores would slow each other down
SIZE_BEFORE = (900, 60)  # pixels of the still picture, before there is a run


class RealRun(NotebookView, widgets.VBox):
    """A button that runs methods with real models, and the timeline of what they did.

    ``runs``: what is there so far, a result per method. ``error``: why it failed.
    """

    def __init__(
        self, prompt: Any, pair: str, methods: Sequence[str], max_new_tokens: int
    ):
        self.prompt = prompt
        self.pair = pair
        self.methods = methods
        self.max_new_tokens = max_new_tokens
        self.runs: list[Result] = []
        self.error: Exception | None = None
        self.timeline: Timeline | None = None
        self._stop_asked = Event()
        self._thread: Thread | None = None
        self.button = widgets.Button(description="Run it here", icon="play")
        self.button.on_click(lambda _button: self.start_or_stop())
        self.words = widgets.HTML()
        self._say(NOT_RUN_YET)
        super().__init__([self.button, self.words])
        if os.environ.get("SPECLIB_CLICK"):
            self.start_or_stop()
            self.wait()
            if self.error is not None:
                raise self.error

    def start_or_stop(self) -> None:
        """What a click does: starts the models, or stops after the current method."""
        if self._thread is not None and self._thread.is_alive():
            self._stop_asked.set()
            self._say("Stopping after this method.")
            return
        self._stop_asked.clear()
        self.button.description, self.button.icon = "Stop", "stop"
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Waits until the models are done, if they run."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        self.runs = []
        self.error = None
        try:
            with ONE_AT_A_TIME:
                self._run_all()
            self._say(self._outcome())
        except Exception as error:  # whatever it is, a reader is told
            self.error = error
            self._say(f"This did not run. {type(error).__name__}: {error}")
        finally:
            self.button.description, self.button.icon = "Run it again", "play"

    def _run_all(self) -> None:
        """One method after the other, in the same processes."""
        self._say("Starting two processes, each with a model.")
        with Processes(load_pair(self.pair)) as world:
            for method in self.methods:
                if self._stop_asked.is_set():
                    return
                self._say(f"{METHOD_NAMES.get(method, method)} is writing.")
                run = decode(
                    self.prompt,
                    world=world,
                    method=method,
                    max_new_tokens=self.max_new_tokens,
                )
                self.runs.append(run)
                self._show()

    def _show(self) -> None:
        if self.timeline is None:
            self.timeline = Timeline(*self.runs)
            self.children = [self.button, self.words, self.timeline]
        else:
            self.timeline.update(*self.runs)

    def _outcome(self) -> str:
        """Whether the methods wrote the same, and what."""
        if not self.runs:
            return "Stopped before the first method."
        texts = {run.tokens for run in self.runs}
        if len(texts) > 1:
            return f"These methods wrote {len(texts)} different texts: that is a bug."
        text = f"“{self.runs[0].text.strip()}”"
        if len(self.runs) < len(self.methods):
            count = f"{len(self.runs)} of {len(self.methods)} methods"
            return f"Stopped: {count} wrote {text}"
        return f"All methods wrote the same: {text}"

    def _say(self, words: str) -> None:
        self.spoken = words
        style = "font-size: 15px; line-height: 1.4; max-width: 60em"
        self.words.value = (
            f'<div role="status" aria-live="polite" style="{style}">'
            f"{escape(words)}</div>"
        )

    # -- where there are no widgets ----------------------------------------------------
    @property
    def size(self) -> tuple[int, int]:
        return SIZE_BEFORE if self.timeline is None else self.timeline.size

    def picture(self) -> str:
        if self.timeline is not None:
            return self.timeline.picture()
        words = "Not run yet: real models start when somebody clicks."
        return card(text_at(words, 16, 36, fill=INK, font_size=16), *SIZE_BEFORE)

    def text(self) -> str:
        parts = [self.spoken]
        if self.timeline is not None:
            parts.append(self.timeline.text())
        return "\n".join(parts)


@checked
def real_run(
    prompt: Any,
    pair: str,
    *,
    methods: Sequence[str] = DEFAULT_METHODS,
    max_new_tokens: Count = 56,
) -> RealRun:
    """A button that decodes ``prompt`` with each of ``methods`` on real models.

    ``pair``: a name under data/pairs. Raises SpeclibError at once for a pair or a
    method that is not there.
    """
    for method in methods:
        if method not in METHODS:
            raise unknown_name(f"no method {method!r}", method, METHODS)
    load_pair(pair)
    return RealRun(prompt, pair, methods, max_new_tokens)
