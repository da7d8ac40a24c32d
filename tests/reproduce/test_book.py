"""A paper opened for reading, as notebooks do it."""

from __future__ import annotations

import pytest

from speclab.reproduce.book import Book
from speclib import paths


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """PEARL in a fresh clone, without runs of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "CACHE", tmp_path_factory.mktemp("cache"))
        yield Book("pearl")


def test_a_page_is_text_a_figure_and_text_in_a_notebook_and_markdown_elsewhere(book):
    shown = book.show("table-5")  # it has no causes, which take seconds
    first, figure, rest = (part._repr_mimebundle_() for part in shown.parts)
    assert "does it reproduce?</h1>" in first["text/html"]
    assert "application/vnd.plotly.v1+json" in figure
    assert "<table" in rest["text/html"]
    texts = [part["text/plain"] for part in (first, figure, rest)]
    assert repr(shown).startswith("\n\n".join(texts[:2]))


def test_a_timeline_shows_a_columns_virtual_runs_or_the_printed_steps(book):
    text = repr(book.timeline("table-5", "CodeLlama 7&34", tokens=8))
    assert "5 runs" in text
    assert "2, γ = 2" in text
    assert "[virtual]" in text
    assert "PEARL" in repr(book.timeline("table-1", "Llama2 7&70B"))
    assert "7 tokens" in repr(book.timeline("figure-3"))
    assert "18 tokens" in repr(book.timeline("table-9"))
    assert book.timeline("table-16", "1024") is None


def test_a_fresh_clone_shows_every_table_and_whose_machine_was_timed(book):
    """No virtual number is missing, and each timed one names its machine."""
    for result in book.filled.values():
        virtual = {key for key in result.left_out if key[2] == "virtual"}
        assert not virtual, result.table.item
    timed = [
        line
        for result in book.filled.values()
        for line in result.lines
        if line.kind in ("measured", "emulated") and line.value is not None
    ]
    assert timed
    assert all("@" in line.setup for line in timed)
