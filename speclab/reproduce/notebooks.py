"""Runs notebooks strictly: unknown parameters fail, and no incomplete output remains.

Papermill's own command merely warns about a parameter that the notebook does not have.
"""

from __future__ import annotations

import ast
import os
import sys
import warnings
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from speclab.pool import on_every_core
from speclab.views.notebook_files import WIDGET, notebook_json, read_notebook
from speclib import paths
from speclib.atomic_files import write_atomically
from speclib.errors import BadValue, SpeclibError, unknown_name

if TYPE_CHECKING:
    from nbformat import NotebookNode

KERNEL = "python3"
PNG = "image/png"


def notebook_of(key: str) -> Path:
    """The notebook from which a paper's page is made."""
    return paths.ROOT / "notebooks" / "reproduce" / f"{key}.ipynb"


def run_notebook(
    path: Path,
    out: Path,
    parameters: Mapping[str, object] | None = None,
    *,
    bar: bool = True,
) -> Path:
    """Runs the notebook ``path`` and writes the executed notebook to ``out``.

    ``bar``: whether to show a progress bar in a terminal.

    Raises SpeclibError for a parameter that the notebook does not have, and for a
    failing cell. After an error, ``out`` is unchanged, and ``out``.part contains the
    notebook up to the failing cell.
    """
    parameters = dict(parameters or {})
    if not path.is_file():
        raise BadValue(f"no notebook {path}: give the path of an .ipynb file")
    _check_parameters(path, parameters)

    # Charts are stored as data, which the pages render.
    os.environ["PLOTLY_RENDERER"] = "plotly_mimetype"
    part = out.with_name(f"{out.name}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    _execute(path, part, parameters, bar)
    write_atomically(out, part.read_text("utf-8"))
    part.unlink()
    return out


class NotebookToRun(NamedTuple):
    """A notebook to run, the path for its executed copy, and a name for it."""

    name: str
    path: Path
    out: Path
    parameters: Mapping[str, object]


def run_notebooks(
    to_run: Sequence[NotebookToRun],
) -> Iterator[tuple[str, str | None]]:
    """Runs notebooks in parallel, one per core.

    When a notebook ends, yields its name, and the reason if it failed or None.
    """
    running = {notebook.name for notebook in to_run}
    try:
        for name, reason in on_every_core(_run_one, to_run):
            running.remove(name)
            yield name, reason
    except SpeclibError:
        for name in sorted(running):
            yield name, "a process that ran notebooks was killed; run the command again"


def _run_one(notebook: NotebookToRun) -> tuple[str, str | None]:
    """Runs a notebook in a worker process; returns its name, and why it failed."""
    try:
        run_notebook(notebook.path, notebook.out, notebook.parameters, bar=False)
    except Exception as error:  # a kernel that dies, for instance
        return notebook.name, in_words(error)
    return notebook.name, None


def in_words(error: Exception) -> str:
    """An error's text, with its type if the text alone may not be clear."""
    if isinstance(error, SpeclibError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def store_lecture(path: Path) -> Path:
    """Runs a lecture in place, with its default parameters, and cleans it for storing.

    Keeps outputs that a page can show: text, tables, pictures. Drops execution times,
    and widgets, whose state would be missing. Buttons that run real models are clicked.
    """
    os.environ["SPECLIB_CLICK"] = "1"
    try:
        notebook = read_notebook(run_notebook(path, path))
    finally:
        del os.environ["SPECLIB_CLICK"]
    _keep_what_pages_show(notebook, path.stem)
    write_atomically(path, notebook_json(notebook) + "\n")
    return path


def _keep_what_pages_show(notebook: NotebookNode, name: str) -> None:
    """Removes everything that changes from run to run, or needs a kernel."""
    metadata = {"language_info": {"name": "python"}}
    if "kernelspec" in notebook.metadata:
        metadata["kernelspec"] = notebook.metadata["kernelspec"]
    notebook.metadata = metadata

    for number, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags")
        cell.metadata = {"tags": tags} if tags else {}
        cell.id = f"{name}-{number:02d}"
        for output in cell.get("outputs", ()):
            forms = output.get("data", {})
            forms.pop(WIDGET, None)
            if PNG in forms:
                picture = with_palette(b64decode(forms[PNG]))
                forms[PNG] = b64encode(picture).decode()


def with_palette(png: bytes) -> bytes:
    """The picture in 256 colours on white, which takes less than half the bytes.

    Our pictures use a few flat colours, and their rounded corners are transparent. This
    function requires Pillow, which is installed wherever lessons are stored.
    """
    from PIL import Image

    picture = Image.open(BytesIO(png)).convert("RGBA")
    on_white = Image.new("RGBA", picture.size, "white")
    on_white.alpha_composite(picture)
    reduced = on_white.convert("RGB").quantize(
        256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
    )
    smaller = BytesIO()
    reduced.save(smaller, "PNG", optimize=True)
    return min(png, smaller.getvalue(), key=len)


# -- parameters ------------------------------------------------------------------------
def list_parameters(path: Path) -> list[str]:
    """The names of a notebook's parameters.

    They are assigned in the cell tagged ``parameters``. Raises SpeclibError unless
    exactly one cell has this tag.
    """
    cells = []
    for cell in read_notebook(path).cells:
        if "parameters" in cell.metadata.get("tags", []):
            cells.append(cell)
    if len(cells) != 1:
        raise BadValue(
            f"{path} has {len(cells)} cells tagged `parameters`: give this tag to the "
            "one cell that sets the parameters"
        )

    names = []
    for statement in ast.parse(cells[0].source).body:
        for target in _targets(statement):
            if isinstance(target, ast.Name):
                names.append(target.id)
    return names


def _targets(statement: ast.stmt) -> list[ast.expr]:
    """The targets of an assignment; empty for other statements."""
    if isinstance(statement, ast.Assign):
        return statement.targets
    if isinstance(statement, ast.AnnAssign):
        return [statement.target]
    return []


def _check_parameters(path: Path, parameters: Mapping[str, object]) -> None:
    """Raises UnknownName for a parameter that the notebook does not have."""
    known = list_parameters(path)
    for name in parameters:
        if name not in known:
            raise unknown_name(f"{path} has no parameter {name!r}", name, known)


# -- execution -------------------------------------------------------------------------
def _execute(path: Path, part: Path, parameters: dict[str, object], bar: bool) -> None:
    """Runs a notebook with papermill, which writes ``part`` after every cell."""
    import papermill
    from papermill.exceptions import PapermillExecutionError

    # papermill warns about the ending .part
    warnings.filterwarnings("ignore", message=".*does not end in one of")
    try:
        papermill.execute_notebook(
            str(path),
            str(part),
            parameters,
            kernel_name=KERNEL,
            language="python",
            cwd=str(path.parent),
            progress_bar=bar and sys.stderr.isatty(),
            extra_arguments=["--IPKernelApp.log_level=50"],
        )
    except PapermillExecutionError as error:
        raise SpeclibError(
            f"{path.name} failed in cell {error.cell_index}: {error.ename}: "
            f"{error.evalue}; see {part}"
        ) from error
