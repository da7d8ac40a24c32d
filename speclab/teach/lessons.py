"""A lesson is written once, with its solutions, and becomes two versions.

In ``notebooks/source`` the cells with the tag ``exercise`` hold a solution between two
marks, as otter-grader has them:

    def acceptance(p, q, token):
        # BEGIN SOLUTION
        return min(1.0, p[token] / q[token])
        # END SOLUTION

The student's version goes to ``notebooks/learn``, with dots in its place, and the
lecturer's to ``notebooks/solutions``, without the marks. Beside it stands a test file
for each exercise that otter-grader can read: it asks the lesson's own check.
"""

from __future__ import annotations

import re
from pathlib import Path

from nbformat import NotebookNode

from speclab.views.notebook_files import notebook_json, read_notebook
from speclib.atomic_files import write_atomically
from speclib.errors import BadValue
from speclib.paths import ROOT

NOTEBOOKS = ROOT / "notebooks"
EXERCISE = "exercise"
BEGIN, END = "# BEGIN SOLUTION", "# END SOLUTION"
TO_DO = "...  # your code"
CHECK = re.compile(r"teach\.check_(\w+)\((\w+)\)")  # the cell after an exercise
# A test as otter-grader reads it: doctests, run where the student's cells have run.
GRADER_TEST = """OK_FORMAT = True

test = {{
    "name": "{name}",
    "points": 1,
    "suites": [
        {{
            "cases": [{{"code": {code!r}, "hidden": False, "locked": False}}],
            "scored": True,
            "setup": "",
            "teardown": "",
            "type": "doctest",
        }}
    ],
}}
"""


def write_versions(folder: Path = NOTEBOOKS) -> list[Path]:
    """Writes the versions of every lesson in ``folder``/source; returns their paths.

    A lesson without exercises has no lecturer's version. A version that is up to date
    is left alone, with the outputs that it stores.
    """
    written = []
    for source in sorted((folder / "source").glob("*.ipynb")):
        written.append(_write(source, folder / "learn", keeps_solutions=False))
        if exercises_of(read_notebook(source)):
            written.append(_write(source, folder / "solutions", keeps_solutions=True))
            written += _write_grader_tests(source, folder / "solutions" / "tests")
    return written


def _write(source: Path, folder: Path, keeps_solutions: bool) -> Path:
    notebook = read_notebook(source)
    for cell in exercises_of(notebook):
        cell.source = version_of_cell(cell.source, keeps_solutions)
    path = folder / source.name
    if _sources_of(path) != [cell.source for cell in notebook.cells]:
        write_atomically(path, notebook_json(notebook) + "\n")
    return path


def _sources_of(path: Path) -> list[str]:
    """What stands in a notebook's cells; nothing where there is no notebook."""
    if not path.is_file():
        return []
    return [cell.source for cell in read_notebook(path).cells]


def _write_grader_tests(source: Path, folder: Path) -> list[Path]:
    """Writes a file per exercise whose check stands in a cell of its own."""
    written = []
    for cell in read_notebook(source).cells:
        check = CHECK.fullmatch(cell.source.strip())
        if cell.cell_type == "code" and check is not None:
            name, function = check.groups()
            path = folder / f"{name}.py"
            write_atomically(path, grader_test(name, function))
            written.append(path)
    return written


def grader_test(name: str, function: str) -> str:
    """The test file of an exercise; where it fails, it shows the card."""
    code = (
        ">>> from speclab import teach\n"
        f">>> card = teach.check_{name}({function})\n"
        ">>> assert card.is_right, card"
    )
    return GRADER_TEST.format(name=name, code=code)


def exercises_of(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that a student is to fill."""
    return [
        cell for cell in notebook.cells if EXERCISE in cell.metadata.get("tags", [])
    ]


def version_of_cell(source: str, keeps_solutions: bool) -> str:
    """An exercise with its solution, or with dots in its place.

    Raises BadValue where the marks do not stand in pairs.
    """
    lines: list[str] = []
    is_inside = False
    for line in source.splitlines():
        mark = line.strip()
        if mark in (BEGIN, END):
            if is_inside == (mark == BEGIN):
                raise BadValue(f"the marks of a solution do not match:\n{source}")
            is_inside = mark == BEGIN
            if is_inside and not keeps_solutions:
                indent = line[: len(line) - len(line.lstrip())]
                lines.append(indent + TO_DO)
        elif keeps_solutions or not is_inside:
            lines.append(line)
    if is_inside:
        raise BadValue(f"a solution is not ended by {END}:\n{source}")
    return "\n".join(lines)
