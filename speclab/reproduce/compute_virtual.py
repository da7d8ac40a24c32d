"""Computes the virtual numbers missing from ``data``, or recomputes all of them."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable

from speclab.papers import virtual_numbers
from speclab.papers.dsi_figures import compute_grid, grids_file, read_grids
from speclab.papers.fill import Known, fill
from speclab.papers.paper_schema import Paper, Table
from speclab.papers.table_cells import TableCell, cells_to_run
from speclab.papers.table_result import TableResult
from speclab.papers.virtual_numbers import Key
from speclab.progress import Progress
from speclab.runs.rows import Rows
from speclab.runs.spec import VirtualSpec
from speclab.virtual.cells import run, run_all
from speclib.atomic_files import write_atomically


def compute_virtual(papers: Iterable[Paper], recompute: bool = False) -> dict[str, str]:
    """Brings ``data/virtual.csv`` and ``data/virtual-grids.json`` up to date.

    With ``recompute``, everything is computed again, and lines whose cells are no
    longer in any paper are dropped. A failing cell does not affect the others. Returns
    the reason for each failed cell, by the cell's name.
    """
    papers = list(papers)
    lines = {} if recompute else virtual_numbers.read_texts()
    cells = missing_cells(papers, lines)
    errors = {}
    with Progress("virtual cells") as bar:
        bar.grow(len(cells))
        for spec, result in run_all(cells, bar.step):
            if isinstance(result, str):
                errors[spec.name] = result
                continue
            for cell in cells[spec]:
                lines |= virtual_numbers.texts_of(cell, result)
    if cells:
        virtual_numbers.write(lines.values())
    _compute_grids(papers, recompute)
    return errors


def missing_cells(
    papers: Iterable[Paper], lines: Container[Key] | None = None
) -> dict[VirtualSpec, list[TableCell]]:
    """The cells whose numbers are missing from ``lines``, grouped by spec.

    ``lines``: by default, those in ``data/virtual.csv``.
    """
    there = virtual_numbers.read_texts() if lines is None else lines
    cells: dict[VirtualSpec, list[TableCell]] = {}
    for paper in papers:
        for table in paper.tables.values():
            for cell in cells_to_run(table, ("virtual",)):
                spec, keys = cell.spec, virtual_numbers.keys_of(cell)
                if isinstance(spec, VirtualSpec) and not all(k in there for k in keys):
                    cells.setdefault(spec, []).append(cell)
    return cells


def fill_now(table: Table) -> TableResult:
    """Fills in a table with virtual numbers computed now, and stores nothing."""
    cells = cells_to_run(table, ("virtual",))
    numbers = {}
    for cell in cells:
        if isinstance(cell.spec, VirtualSpec):
            for key, line in virtual_numbers.texts_of(cell, run(cell.spec)).items():
                numbers[key] = virtual_numbers.number_in(line)
    known = Known(Rows(()), virtual=numbers)
    return fill(table, cells, known, "", kinds=("virtual",))


def _compute_grids(papers: Iterable[Paper], recompute: bool) -> None:
    grids = {} if recompute else read_grids()
    wanted = set()
    for paper in papers:
        for table in paper.tables.values():
            if table.settings.get("script") == "heatmaps":
                wanted.add(str(table.settings_of().get("lookahead", 1)))
    missing = sorted(wanted - grids.keys())
    if missing:
        grids |= {lookahead: compute_grid(int(lookahead)) for lookahead in missing}
        write_atomically(grids_file(), json.dumps(grids))
