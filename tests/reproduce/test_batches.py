"""What is run together: every cell of a paper once, those of its main table apart."""

from __future__ import annotations

import pytest

from speclab.reproduce.batches import batches_of, main_item
from speclab.reproduce.book import Book


@pytest.fixture(scope="module")
def pearl() -> Book:
    return Book("pearl", quick=True, run=False)


def test_every_cell_is_in_one_batch_and_the_main_tables_are_in_its_own(pearl):
    cells = pearl.cells()
    item = main_item(pearl.paper.facts, cells)
    assert item == "table-1"

    batches = batches_of("pearl", cells, item)
    in_batches = [spec for batch in batches for spec in batch.specs]
    assert len(set(in_batches)) == len(in_batches)
    wanted = {spec for own in cells.values() for cell in own for spec in cell.specs}
    assert set(in_batches) == wanted

    of_main = {spec for cell in cells[item] for spec in cell.specs}
    for batch in batches:
        if batch.is_main:
            assert of_main.issuperset(batch.specs)
        else:
            assert of_main.isdisjoint(batch.specs)


def test_what_is_measured_together_shares_workers_task_and_length(pearl):
    cells = pearl.cells()
    for batch in batches_of("pearl", cells, "table-1"):
        assert {spec.kind for spec in batch.specs} == {batch.kind}
        if batch.kind == "measured":
            (_,) = {(s.worker_pool, s.task, s.tokens, s.length) for s in batch.specs}


def test_a_paper_that_names_no_main_table_has_the_one_with_most_kinds(pearl):
    cells = pearl.cells()
    few = [cell for cell in cells["table-1"] if cell.kind == "virtual"]
    assert main_item({}, {"table-5": few, "table-1": cells["table-1"]}) == "table-1"
