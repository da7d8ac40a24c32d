"""Notebook files as objects, with the types that nbformat does not declare.

nbformat is slow to import, so it is imported only to read or write a notebook.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode

VERSION = 4  # of the format; older notebooks are converted

# Output types that pages treat specially.
PLOTLY = "application/vnd.plotly.v1+json"  # a chart as data
WIDGET = "application/vnd.jupyter.widget-view+json"  # only a kernel can show it


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
    """The notebook as JSON: its file's content without the final newline."""
    import nbformat

    write: Callable[[NotebookNode], str] = nbformat.writes
    return write(notebook)
