"""Reads and writes notebook files, with the types that nbformat does not declare.

nbformat is slow to import, so only these functions import it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode

VERSION = 4  # the format's version; older notebooks are converted

# Output types that pages treat specially.
PLOTLY = "application/vnd.plotly.v1+json"  # a chart as data
WIDGET = "application/vnd.jupyter.widget-view+json"  # only a kernel can show it


def read_notebook(path: Path) -> NotebookNode:
    """Reads the notebook in the file ``path``."""
    import nbformat

    read: Callable[..., NotebookNode] = nbformat.read
    return read(path, as_version=VERSION)


def parse_notebook(text: str) -> NotebookNode:
    """Parses a notebook from the JSON ``text``."""
    import nbformat

    parse: Callable[..., NotebookNode] = nbformat.reads
    return parse(text, as_version=VERSION)


def notebook_json(notebook: NotebookNode) -> str:
    """The notebook as JSON: its file's contents without the final newline."""
    import nbformat

    write: Callable[[NotebookNode], str] = nbformat.writes
    return write(notebook)
