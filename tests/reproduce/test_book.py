"""A paper opened for reading: what notebooks call."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speclib import SpeclibError, paths
from speclib.experiment.machine import name
from speclib.papers.fill import fill_all
from speclib.papers.ledger import LedgerRow
from speclib.reproduce.book import Book, of_another_machine


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """PEARL with three items filled, virtual only."""
    held, paths.CACHE = paths.CACHE, tmp_path_factory.mktemp("cache")
    try:
        book = Book("pearl", quick=True, measured=False)
        book.filled = fill_all(
            book.paper,
            replace(book.profile, virtual_tokens=1_024),
            ["figure-3", "table-5", "table-9"],
            kinds=book.kinds,
        )
        yield book
    finally:
        paths.CACHE = held


def test_a_page_is_html_in_a_notebook_and_markdown_elsewhere(book):
    page = book.show("table-5")
    bundle = page._repr_mimebundle_()
    assert (
        "<table" in bundle["text/html"]
        and "| pair | gamma | paper |" in bundle["text/plain"]
    )
    assert repr(page) == bundle["text/plain"]
    assert "virtual" in repr(book.summary())


def test_a_timeline_shows_the_runs_behind_a_column_or_the_printed_steps(book):
    text = repr(book.timeline("table-5", "CodeLlama 7&34", tokens=8))
    assert "5 runs" in text and "2, γ = 2" in text and "[virtual]" in text
    assert "7 tokens" in repr(book.timeline("figure-3"))
    assert "18 tokens" in repr(book.timeline("table-9"))


def test_unknown_papers_items_and_columns_list_the_known(book):
    with pytest.raises(SpeclibError, match="no paper 'pearls'.*pearl"):
        Book("pearls")
    with pytest.raises(SpeclibError, match="no 'table-99'; known: .*table-5"):
        book.show("table-99")
    with pytest.raises(SpeclibError, match="no runs in column 'x'; known: CodeLlama"):
        book.timeline("table-5", "x")


def test_only_rows_measured_elsewhere_are_another_machines():
    row = LedgerRow("pearl", "table-1", "a", "b", "speedup", "x", "measured", "", 1.0)
    assert of_another_machine(row._replace(setup="hub/x@other-64c/bfloat16/1"))
    assert not of_another_machine(row._replace(setup=f"embedded/x@{name()}/float32/1"))
    assert not of_another_machine(
        row._replace(kind="virtual", setup="pearl/llama2-7-70")
    )
    assert of_another_machine(
        row._replace(kind="emulated", setup="pearl/llama2-7-70@other-64c")
    )
    assert not of_another_machine(
        row._replace(kind="emulated", setup=f"pearl/x@{name()}")
    )
