"""Fixtures for tests of views: some of PEARL's tables, with made-up numbers."""

from __future__ import annotations

from itertools import count

import pytest

from speclab.papers import virtual_numbers
from speclab.papers.fill import Known, fill_all
from speclab.papers.load_papers import load_paper
from speclab.papers.numbers import mean_number
from speclab.papers.table_cells import cells_to_run
from speclab.papers.virtual_numbers import VirtualNumber
from speclab.runs.rows import Rows

ITEMS = (
    "figure-2b",
    "table-1",
    "table-4",
    "table-5",
    "table-9",
    "table-15",
    "theorem-2",
)


@pytest.fixture(scope="session")
def results():
    """Tables of every form with virtual numbers, by item.

    Each number is 4 % above the printed one, or 2 if none is printed. It is the mean of
    three requests that differ by 3 %; the highest one changes from cell to cell.
    """
    pearl = load_paper("pearl")
    virtual = {}
    signs = count()
    for item in ITEMS:
        for cell in cells_to_run(pearl.table(item), ("virtual",)):
            printed = pearl.table(item).printed(cell.row, cell.column)
            value = 1.04 * printed if printed else 2.0
            change = 0.03 * (-1) ** next(signs) * value
            number = mean_number([value - change, value, value + change])
            for key in virtual_numbers.keys_of(cell):
                virtual[key] = VirtualNumber(number, 3, 2.66, "", {})
    return fill_all(pearl, Known(Rows([]), (), virtual), ITEMS, kinds=("virtual",))
