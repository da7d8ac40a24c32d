"""Running notebooks strictly: unknown parameters fail, and no half-written result stays behind.

Papermill's own command only warns about a parameter that the notebook does not have.
"""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

from speclib.errors import SpeclibError, unknown_name
from speclib.experiment.atomic_files import write_atomically

KERNEL = "python3"


def parameters(path: Path) -> list[str]:
    """Names of the notebook's parameters. Raises SpeclibError if no cell has the tag."""
    import nbformat

    cells = [
        cell
        for cell in nbformat.read(path, as_version=4).cells
        if "parameters" in cell.metadata.get("tags", [])
    ]
    if len(cells) != 1:
        raise SpeclibError(
            f"{path} has {len(cells)} parameters cells: tag the one cell that sets "
            "them `parameters`"
        )
    names = []
    for line in ast.parse(cells[0].source).body:
        targets = (
            line.targets
            if isinstance(line, ast.Assign)
            else [getattr(line, "target", None)]
        )
        names += [t.id for t in targets if isinstance(t, ast.Name)]
    return names


def run(path: Path, out: Path, given: dict[str, object] | None = None) -> Path:
    """Runs ``path`` with ``given`` parameters and writes the executed notebook to ``out``.

    On an error ``out`` is left as it was; the notebook up to the failing cell is in ``out``.part.
    """
    if not path.is_file():
        raise SpeclibError(f"no notebook {path}: give the path of an .ipynb file")
    known = parameters(path)
    for name in given or {}:
        if name not in known:
            raise unknown_name(f"{path} has no parameter {name!r}", name, known)
    os.environ["PLOTLY_RENDERER"] = "plotly_mimetype"  # charts as data: pages draw them
    part = out.with_name(f"{out.name}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    _execute(path, part, given or {})
    write_atomically(out, part.read_text("utf-8"))
    part.unlink()
    return out


def _execute(path: Path, part: Path, given: dict) -> None:
    import warnings

    import papermill
    from papermill.exceptions import PapermillExecutionError

    warnings.filterwarnings("ignore", message=".*does not end in one of")  # our .part
    try:
        papermill.execute_notebook(
            str(path),
            str(part),
            given,
            kernel_name=KERNEL,
            language="python",
            cwd=str(path.parent),
            progress_bar=sys.stderr.isatty(),
            extra_arguments=["--IPKernelApp.log_level=50"],
        )
    except PapermillExecutionError as error:
        raise SpeclibError(
            f"{path.name} failed in cell {error.cell_index}: {error.ename}: "
            f"{error.evalue}; see {part}"
        ) from error


WIDGET = "application/vnd.jupyter.widget-view+json"


def store(path: Path) -> Path:
    """Runs a lecture in place, with its default parameters, and keeps what its pages can show:
    text, tables, pictures; no widget, whose state would be missing, and no times of execution."""
    import nbformat

    notebook = nbformat.read(run(path, path), as_version=4)
    notebook.metadata = {
        k: notebook.metadata[k]
        for k in ("kernelspec", "language_info")
        if k in notebook.metadata
    }
    notebook.metadata["language_info"] = {"name": "python"}
    for number, cell in enumerate(notebook.cells):
        cell.metadata = {k: v for k, v in cell.metadata.items() if k == "tags" and v}
        cell.id = f"{path.stem}-{number:02d}"
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(WIDGET, None)
    write_atomically(path, nbformat.writes(notebook) + "\n")
    return path
