"""Notebook files as objects, with the types that nbformat's functions do not state.

nbformat takes long to import, and is imported when a notebook is read or written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode

VERSION = 4  # of the format; an older notebook is converted

# Types of outputs that pages treat in a way of their own.
PLOTLY = "application/vnd.plotly.v1+json"  # a chart as data
WIDGET = "application/vnd.jupyter.widget-view+json"  # needs a kernel to be shown


def read_notebook(path: Path) -> NotebookNode:
    """The notebook in the file ``path``."""
    import nbformat

    read: Callable[..., NotebookNode] = nbformat.read
    return read(path, as_version=VERSION)


def parse_notebook(text: str) -> NotebookNode:
    """The notebook whose JSON is ``text``."""
    import nbformat

    parse: Callable[..., NotebookNode] = nbformat.reads
    return parse(text, as_version=VERSION)


def notebook_json(notebook: NotebookNode) -> str:
    """The notebook as JSON, as it stands in a file but for the last line's end."""
    import nbformat

    write: Callable[[NotebookNode], str] = nbformat.writes
    return write(notebook)
