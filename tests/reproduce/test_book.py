"""A paper opened for reading: what notebooks call."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speclab.papers.fill import fill_all
from speclab.papers.ledger import LedgerLine
from speclab.reproduce.book import Book, of_another_machine
from speclib import SpeclibError, machine, paths

pytestmark = pytest.mark.slow

ITEMS = ("figure-3", "table-5", "table-9")


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """PEARL with three items filled, virtual only."""
    cache_before = paths.CACHE
    paths.CACHE = tmp_path_factory.mktemp("cache")
    try:
        book = Book("pearl", quick=True, measured=False)
        short = replace(book.profile, virtual_tokens=64)
        book.filled = fill_all(book.paper, short, ITEMS, kinds=("paper", "virtual"))
        yield book
    finally:
        paths.CACHE = cache_before


def test_a_page_is_html_in_a_notebook_and_markdown_elsewhere(book):
    page = book.show("table-5")
    bundle = page._repr_mimebundle_()
    assert "<table" in bundle["text/html"]
    assert "| pair | gamma | paper |" in bundle["text/plain"]
    assert repr(page) == bundle["text/plain"]
    assert "virtual" in repr(book.summary())


def test_a_timeline_shows_the_runs_behind_a_column_or_the_printed_steps(book):
    text = repr(book.timeline("table-5", "CodeLlama 7&34", tokens=8))
    assert "5 runs" in text
    assert "2, γ = 2" in text
    assert "[virtual]" in text
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
    measured = LedgerLine(
        paper="pearl",
        item="table-1",
        row="a",
        column="b",
        metric="speedup",
        unit="x",
        kind="measured",
        setup="",
        value=1.0,
    )
    virtual = measured._replace(kind="virtual")
    emulated = measured._replace(kind="emulated")
    here = machine.name()

    elsewhere = "hub/x@other-64c/bfloat16/1"
    assert of_another_machine(measured._replace(setup=elsewhere))
    own = f"embedded/x@{here}/float32/1"
    assert not of_another_machine(measured._replace(setup=own))

    assert not of_another_machine(virtual._replace(setup="pearl/llama2-7-70"))

    elsewhere = "pearl/llama2-7-70@other-64c"
    assert of_another_machine(emulated._replace(setup=elsewhere))
    assert not of_another_machine(emulated._replace(setup=f"pearl/x@{here}"))


def test_a_table_is_filled_alone_and_not_again_with_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    book = Book("easyspec", quick=True, measured=False, run=False)
    alone = book.item("table-1")
    assert alone.left_out
    assert list(book.filled) == list(book.paper.tables)
    assert book.filled["table-1"] is alone


def test_a_column_that_was_not_run_is_drawn_as_its_virtual_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    book = Book("pearl", quick=True, run=False)
    text = repr(book.timeline("table-1", "Llama2 7&70B"))
    assert "[virtual]" in text
    assert "PEARL" in text
    assert "not run yet" in repr(book.timeline("table-16", "1024"))
