"""Pages of all lessons in the reports: there, linked with each other, left alone."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest
from helpers.reproduce_home import REPRODUCE, enter, make_home, run

from speclab.reproduce.lesson_pages import (
    lecturers_address,
    list_lessons,
    write_lesson_pages,
)

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted(path.stem for path in (ROOT / "notebooks" / "learn").glob("*.ipynb"))


def copy_lessons(home: Path) -> None:
    """Puts the lessons and the page for lecturers into a home."""
    notebooks = home / "notebooks"
    shutil.copytree(ROOT / "notebooks" / "learn", notebooks / "learn")
    shutil.copy(ROOT / "notebooks" / "LECTURERS.md", notebooks)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with the lessons, and one paper's page and notebook beside the ledger."""
    copy_lessons(tmp_path)
    reproduce = tmp_path / "notebooks" / "reproduce"
    reproduce.mkdir()
    (reproduce / "pearl.ipynb").touch()
    (reproduce / "dsi.ipynb").touch()  # its page was not made
    reports = tmp_path / "reports"
    reports.mkdir()
    for name in ("pearl.html", "ledger.csv", "index.html"):
        (reports / name).touch()
    enter(tmp_path, monkeypatch)
    return tmp_path


def pages(home: Path) -> list[Path]:
    return sorted((home / "reports" / "lessons").glob("*.html"))


def ids_of(html: str) -> set[str]:
    return set(re.findall(r' id="([^"]+)"', html))


def dead_links(page: Path) -> list[str]:
    """The links of a page that lead to no file, or to no anchor in one."""
    html = page.read_text("utf-8")
    dead = []
    for address in re.findall(r'<a\b[^>]*href="([^"]*)"', html):
        file, _, anchor = unquote(address).partition("#")
        target = page.parent / file if file else page
        is_there = target.is_file()
        if is_there and anchor:
            is_there = anchor in ids_of(target.read_text("utf-8"))
        if not is_there:
            dead.append(address)
    return dead


def test_every_lesson_and_the_page_for_lecturers_is_there(home):
    assert write_lesson_pages() == {}
    names = sorted([*LESSONS, "lecturers"])
    assert [page.stem for page in pages(home)] == names
    assert [Path(lesson.page).stem for lesson in list_lessons()] == LESSONS
    assert lecturers_address() == "lessons/lecturers.html"


def test_every_link_of_every_page_leads_somewhere(home):
    write_lesson_pages()
    for page in pages(home):
        assert dead_links(page) == [], page.name

    of_pearl = (home / "reports" / "lessons" / "20_pearl.html").read_text("utf-8")
    leads_to = set(re.findall(r'href="([^"#]+)', of_pearl))
    assert {"../index.html", "../pearl.html", "10_speculative_decoding.html"} <= (
        leads_to
    )
    of_dsi = (home / "reports" / "lessons" / "30_dsi.html").read_text("utf-8")
    assert "<code>notebooks/reproduce/dsi.ipynb</code>" in of_dsi
    assert "dsi.html" not in set(re.findall(r'href="([^"#]+)', of_dsi))


def test_every_file_that_a_lesson_names_as_code_is_a_link_if_it_has_a_page(home):
    write_lesson_pages()
    made = {page.stem for page in pages(home)}
    for page in pages(home):
        main = page.read_text("utf-8").partition("<main>")[2]
        without_links = re.sub(r"<a\b.*?</a>", "", main, flags=re.S)
        for name in re.findall(r"<code>(?:[\w/]*/)?(\w+)\.ipynb</code>", without_links):
            assert name not in made, (page.name, name)


def test_pages_load_nothing_from_anywhere(home):
    write_lesson_pages()
    for page in pages(home):
        html = page.read_text("utf-8")
        assert not re.findall(r'<(?:link|script|iframe|img)[^>]*"https?:', html)
        assert not re.findall(r'src="(?!data:)', html)


def test_a_damaged_lesson_is_named_and_all_others_are_made(home):
    damaged = home / "notebooks" / "learn" / f"{LESSONS[1]}.ipynb"
    damaged.write_text("{")
    assert list(write_lesson_pages()) == [damaged.name]
    others = [LESSONS[0], *LESSONS[2:]]
    assert [Path(lesson.page).stem for lesson in list_lessons()] == others


@pytest.mark.slow
def test_make_reproduce_lists_the_lessons_on_its_index(tmp_path):
    home = make_home(tmp_path / "home", virtual=["table-9"])
    copy_lessons(home)
    run(home, *REPRODUCE)
    index = home / "reports" / "index.html"
    html = index.read_text("utf-8")
    for lesson in LESSONS:
        assert f'href="lessons/{lesson}.html"' in html
    links_to_lessons = [link for link in dead_links(index) if "lessons" in link]
    assert links_to_lessons == []
