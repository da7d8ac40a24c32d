"""Pages without Python, in a browser, from disk: runs move, quizzes answer, phones fit.

What is to be seen is compared with what the package says of the same runs. Each page is
opened once.
"""

from __future__ import annotations

import re
import time

import pytest
from helpers.browser import PHONE, check_letters_and_width

from speclab.reproduce.book import Book
from speclab.reproduce.lesson_pages import list_lessons, write_lesson_pages
from speclab.reproduce.races import FRONT, START, choose_draw, compute, simulate
from speclab.views.pages.index import index_page, summary
from speclib import paths
from speclib.drawing.timeline.axis import TimeAxis
from speclib.drawing.timeline.run import timeline_run
from speclib.drawing.timeline.sayings import fact_lines

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("moving pages")]

SCALES_OF_PICTURES = (
    "all => all.map((img) => img.clientWidth / img.getAttribute('width'))"
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The pages of all lessons, and an index of two papers."""
    home = tmp_path_factory.mktemp("home")
    patch = pytest.MonkeyPatch()
    patch.setattr(paths, "REPORTS", home / "reports")
    patch.setattr(paths, "CACHE", home / ".cache")
    assert write_lesson_pages() == {}
    entries = [summary(book.paper, book.filled) for book in map(Book, ("pearl", "dsi"))]
    index = index_page(entries, {}, race=compute(FRONT), lessons=list_lessons())
    (home / "reports" / "index.html").write_text(index)
    patch.undo()
    return home / "reports"


def open_page(page, path) -> float:
    """Opens a page from disk; seconds until its runs can be moved."""
    began = time.monotonic()
    page.goto(path.as_uri())
    for figure in page.locator(".race").all():
        figure.and_(page.locator("[data-ready]")).wait_for()
    return time.monotonic() - began


def set_dial(figure, grid, number: int, value: float) -> None:
    """Moves a slider as a key or a mouse would."""
    stop = grid.dials[number].stops.index(value)
    figure.locator("input[type=range]").nth(number).fill(str(stop))


def check_race(figure, grid, values) -> None:
    """Compares what a race says with what the package says of its own runs."""
    results = simulate(grid, values, choose_draw(grid, values[0]))
    runs = [timeline_run(result) for result in results]
    unit = TimeAxis(1000, max(run.seconds for run in runs)).unit
    shown = figure.locator("svg").first.text_content()
    assert figure.locator("g.run").count() == len(runs)
    for run in runs:
        assert run.label in shown
        for fact in fact_lines(run, runs, unit):
            assert fact in shown


def check_quiz(page, name: str) -> None:
    """Every choice of a quiz answers when it is clicked, once it was silent."""
    from speclab.teach.lesson_files import find_quiz

    quiz = find_quiz(name)
    box = page.locator(".speclib-question", has_text=quiz.question)
    for choice in quiz.choices:
        reason = box.get_by_text(choice.why)
        assert not reason.is_visible()
        box.get_by_text(choice.text, exact=True).click()
        assert reason.is_visible()
        says_yes = reason.text_content().startswith("✓ Yes.")
        assert says_yes == choice.is_right


def test_the_race_of_lesson_00_moves_says_what_it_draws_and_quizzes_answer(
    pages, offline
):
    path = pages / "lessons" / "00_start_here.html"
    assert open_page(offline, path) < 5  # seconds; one, on a machine at rest
    race = offline.locator("#race")
    check_race(race, START, (0.8,))
    for alpha in (0.0, 0.45, 1.0):
        set_dial(race, START, 0, alpha)
        check_race(race, START, (alpha,))

    written = race.locator(".speclib-text code").last
    race.get_by_role("button", name="Step ▶").click()
    lengths = [len(written.text_content())]
    race.locator(".speclib-timeline").focus()
    for _ in range(3):
        offline.keyboard.press("ArrowRight")
        lengths.append(len(written.text_content()))
    assert lengths == sorted(lengths)
    assert lengths[-1] > lengths[0]
    offline.keyboard.press("ArrowLeft")
    assert len(written.text_content()) == lengths[-2]
    assert "round" in race.locator(".speclib-sentence").text_content()

    race.get_by_role("button", name="▶ Play").click()
    race.get_by_role("button", name="❚❚ Pause").wait_for()
    race.get_by_role("button", name="▶ Play").wait_for(timeout=20_000)
    assert len(set(race.locator(".speclib-text code").all_text_contents())) == 1

    box = race.locator(".plot .lane rect").nth(1)
    width = float(box.get_attribute("width"))
    race.locator(".speclib-timeline").focus()
    offline.keyboard.press("+")
    assert float(box.get_attribute("width")) == pytest.approx(1.5 * width, rel=0.1)
    offline.keyboard.press("0")
    box.hover()
    assert "target pass" in race.locator(".speclib-tip").text_content()

    offline.get_by_role("button", name="0.45", exact=True).click()  # in the text
    check_race(race, START, (0.45,))
    for name in ("a-pass", "rejected", "who-waits"):
        check_quiz(offline, name)
    check_letters_and_width(offline)


def test_the_race_of_lesson_20_is_the_first_pages(pages, offline):
    open_page(offline, pages / "lessons" / "20_pearl.html")
    race = offline.locator("#race")
    check_race(race, FRONT, (0.8, 5.0))
    set_dial(race, FRONT, 1, 10.0)
    check_race(race, FRONT, (0.8, 10.0))


def test_the_index_leads_three_ways_races_and_is_not_empty_after_no_run_at_all(
    pages, offline
):
    offline.set_viewport_size(PHONE)
    assert open_page(offline, pages / "index.html") < 5
    doors = offline.locator(".doors a").evaluate_all("all => all.map(a => a.hash)")
    assert doors == ["#lessons", "#race", "#claims"]
    order = [".words", ".doors", "#race", "figure.headlines", "#lessons", "#claims"]
    tops = [offline.locator(part).bounding_box()["y"] for part in order]
    assert tops == sorted(tops)

    word = offline.locator(".words dt").first.bounding_box()
    meaning = offline.locator(".words dd").first.bounding_box()
    assert word["x"] == meaning["x"]  # one below the other

    check_race(offline.locator("#race"), FRONT, (0.8, 5.0))
    marks = offline.locator("figure.headlines .phone .verdict")
    assert marks.count() >= 8
    check_letters_and_width(offline)


def test_every_lesson_fits_on_a_phone_and_its_quizzes_are_whole(pages, offline):
    offline.set_viewport_size(PHONE)
    for path in sorted((pages / "lessons").glob("*.html")):
        open_page(offline, path)
        check_letters_and_width(offline)
        scales = offline.locator(".output img").evaluate_all(SCALES_OF_PICTURES)
        assert all(scale > 0.99 for scale in scales)  # their letters have 14 pixels
        notebook = paths.ROOT / "notebooks" / "learn" / f"{path.stem}.ipynb"
        if notebook.is_file():
            source = notebook.read_text("utf-8")
            quizzes = re.findall(r'"teach\.quiz\(\\"([\w-]+)\\"\)"', source)
            questions = offline.locator(".speclib-question:has(details + details)")
            assert questions.count() == len(quizzes)
