"""Questions where no widget can run, such as on a page: their answers unfold.

A saved notebook loses its widgets, and ipywidgets cuts the text that is stored in their
place after 110 letters. So a question is also stored as HTML that needs no script, and
as its whole text.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any, NamedTuple


class Fold(NamedTuple):
    """A line that can be clicked, and what it then shows below itself."""

    line: str
    below: str


def folded_html(question: str, folds: Iterable[Fold]) -> str:
    """A question and its folds, in HTML without a script."""
    parts = [f"<p><b>{escape(question)}</b></p>"]
    for fold in folds:
        summary = f"<summary>{escape(fold.line)}</summary>"
        parts.append(f"<details>{summary}<p>{escape(fold.below)}</p></details>")
    return f'<div class="speclib-question">{"".join(parts)}</div>'


class Foldable:
    """A widget that a notebook stores as HTML and as text, too.

    A subclass is a widget, and defines ``question``, ``folds()`` and a ``repr``.
    """

    model_id: str  # the widget's, by which the notebook finds it
    question: str

    def folds(self) -> list[Fold]:
        """The lines below the question."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        """The three forms by MIME type."""
        return {
            "text/plain": repr(self),
            "text/html": folded_html(self.question, self.folds()),
            "application/vnd.jupyter.widget-view+json": {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self.model_id,
            },
        }
