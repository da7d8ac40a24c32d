"""Makes the students' lessons from the lessons with solutions.

A lesson is written once, in ``notebooks/solutions``. A solution is between
otter-grader's two markers:

    def acceptance(p, q, token):
        # BEGIN SOLUTION
        return min(1.0, p[token] / q[token])
        # END SOLUTION

The students' lesson, in ``notebooks/learn``, has ``...`` instead.
"""

from __future__ import annotations

import re
from pathlib import Path

from nbformat import NotebookNode

from speclab.views.notebook_files import notebook_json, read_notebook
from speclib.atomic_files import write_atomically
from speclib.paths import ROOT

NOTEBOOKS = ROOT / "notebooks"
SOLUTION = re.compile(r"^( *)# BEGIN SOLUTION\n.*?# END SOLUTION$", re.M | re.S)
TO_DO = "...  # your code"


def write_lessons(folder: Path = NOTEBOOKS) -> list[Path]:
    """Writes a lesson for every notebook in ``folder``/solutions; returns their paths.

    Unchanged cells keep their stored outputs.
    """
    written = []
    for source in sorted((folder / "solutions").glob("*.ipynb")):
        notebook = read_notebook(source)
        path = folder / "learn" / source.name
        stored = _code_cells(path)
        for cell in notebook.cells:
            if cell.cell_type != "code":
                continue
            cell.source = SOLUTION.sub(rf"\1{TO_DO}", cell.source)
            unchanged = stored.get(cell.source, cell)
            cell.outputs = unchanged.outputs
            cell.execution_count = unchanged.execution_count
        write_atomically(path, notebook_json(notebook) + "\n")
        written.append(path)
    return written


def _code_cells(path: Path) -> dict[str, NotebookNode]:
    """The code cells of a notebook, by source; {} if it does not exist."""
    if not path.is_file():
        return {}
    cells = read_notebook(path).cells
    return {cell.source: cell for cell in cells if cell.cell_type == "code"}
