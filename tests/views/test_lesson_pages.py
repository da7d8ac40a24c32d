"""Pages of lessons: their links lead to pages, and nothing else is changed."""

from __future__ import annotations

import json

import pytest
from helpers import late

from speclab.views.pages.index import index_page
from speclab.views.pages.lessons_page import (
    Lesson,
    describe_lesson,
    lesson_page,
    text_page,
    with_links,
)
from speclib import SpeclibError

HEAD = """# A title: and more

**You learn** why *this* is so, and
how. You also learn that.

**Time** 25 minutes; it runs in seconds."""
ADDRESSES = {
    "notebooks/learn/20_pearl.ipynb": "20_pearl.html",
    "20_pearl.ipynb": "20_pearl.html",
    "reports/index.html": "../index.html",
}


def notebook(head: str = HEAD, *sources: str) -> str:
    cells = [late.nbformat.v4.new_markdown_cell(source) for source in (head, *sources)]
    return late.nbformat.writes(late.nbformat.v4.new_notebook(cells=cells))


def linked(html: str) -> str:
    page = with_links(f"<main>{html}", "notebooks/learn", ADDRESSES)
    return page.removeprefix("<main>")


def test_a_lesson_is_described_by_its_head():
    lesson = describe_lesson(notebook(), "lessons/10_a_title.html")
    assert lesson == Lesson(
        number="10",
        title="A title: and more",
        minutes=25,
        learn="why this is so, and how.",
        page="lessons/10_a_title.html",
    )


@pytest.mark.parametrize("part", ["# A title", "**You learn**", "25 minutes"])
def test_a_head_that_lacks_something_is_an_error_that_names_the_lesson(part):
    with pytest.raises(SpeclibError, match="10_x.html lacks"):
        describe_lesson(notebook(HEAD.replace(part, "x")), "10_x.html")


@pytest.mark.parametrize(
    "html, wanted",
    [
        (
            "<code>20_pearl.ipynb</code>",
            '<a href="20_pearl.html"><code>20_pearl.ipynb</code></a>',
        ),
        (
            "<code>reports/index.html</code>",
            '<a href="../index.html"><code>reports/index.html</code></a>',
        ),
        ("<code>speclib/core/coins.py</code>", "<code>speclib/core/coins.py</code>"),
        (
            '<a href="20_pearl.ipynb#4-move">x</a>',
            '<a href="20_pearl.html#4-move">x</a>',
        ),
        (
            '<a href="../learn/20_pearl.ipynb"><code>20_pearl.ipynb</code></a>',
            '<a href="20_pearl.html"><code>20_pearl.ipynb</code></a>',
        ),
        ('<a href="../../docs/decisions.md">Decisions</a>', "Decisions"),
        ('<a href="https://x.org/a">x</a>', '<a href="https://x.org/a">x</a>'),
        ('<a href="#here">x</a>', '<a href="#here">x</a>'),
    ],
)
def test_names_and_links_lead_to_pages_where_there_are_any(html, wanted):
    assert linked(html) == wanted


def test_a_page_leads_back_to_the_reports_and_says_that_nothing_moves():
    source = "## 1. Next\nSee `notebooks/learn/20_pearl.ipynb`."
    page = lesson_page(notebook(HEAD, source), "T", "notebooks/learn", ADDRESSES)
    assert 'href="../index.html"' in page
    assert 'href="20_pearl.html"' in page
    assert "stored outputs" in page
    assert 'href="#1-next"' in page
    assert "<script" not in page  # there is no chart to draw


def test_a_text_becomes_a_page_with_a_table_of_contents():
    text = "# Title\n\n## A part\n\n[PEARL](learn/20_pearl.ipynb)\n"
    page = text_page(text, "T", "notebooks", ADDRESSES)
    assert '<a class="level-2" href="#a-part">A part</a>' in page
    assert '<a href="20_pearl.html">PEARL</a>' in page


def test_the_index_lists_the_lessons_and_leads_to_them():
    lesson = describe_lesson(notebook(), "lessons/10_a_title.html")
    html = index_page([], {}, lessons=[lesson], lecturers="lessons/lecturers.html")
    assert '<a href="lessons/10_a_title.html">A title: and more</a>' in html
    assert "<td>25</td>" in html
    assert "<td>why this is so, and how.</td>" in html
    assert 'href="lessons/lecturers.html"' in html
    assert '<a href="#lessons"><b>Learn it</b>' in html
    without_lessons = index_page([], {})
    assert '<table class="lessons"' not in without_lessons
    assert 'href="#lessons"' not in without_lessons


def test_a_lesson_whose_source_is_a_list_of_lines_is_read_alike():
    as_text = json.loads(notebook())
    as_text["cells"][0]["source"] = HEAD.splitlines(keepends=True)
    page = "lessons/10_x.html"
    assert describe_lesson(json.dumps(as_text), page) == describe_lesson(
        notebook(), page
    )
