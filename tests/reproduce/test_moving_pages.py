"""Pages without Python, in a browser, from disk: runs move, quizzes answer, phones fit.

What is to be seen is compared with what the package says of the same runs. Each page is
opened once.
"""

from __future__ import annotations

import re
import time
from itertools import pairwise
from math import isfinite

import pytest
from helpers.browser import PHONE, check_letters_and_width

from speclab.reproduce.book import Book
from speclab.reproduce.lesson_pages import list_lessons, write_lesson_pages
from speclab.reproduce.runs_for_pages import (
    DSI,
    DUODECODING,
    FRONT,
    NETWORK,
    PEARL,
    START,
    TURNS,
    compute,
    front_race,
)
from speclab.views.pages.index import index_page, summary
from speclib import paths
from speclib.drawing.timeline.sayings import idle_shares, speedup_as_drawn

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("moving pages")]

SCALES_OF_PICTURES = (
    "all => all.map((img) => img.clientWidth / img.getAttribute('width'))"
)
CLASSES = "all => all.map((node) => node.className)"
DESKTOP = {"width": 1400, "height": 1000}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The pages of all lessons, and an index of two papers."""
    home = tmp_path_factory.mktemp("home")
    patch = pytest.MonkeyPatch()
    patch.setattr(paths, "REPORTS", home / "reports")
    patch.setattr(paths, "CACHE", home / ".cache")
    assert write_lesson_pages() == {}
    entries = [summary(book.paper, book.filled) for book in map(Book, ("pearl", "dsi"))]
    index = index_page(entries, {}, race=front_race(), lessons=list_lessons())
    (home / "reports" / "index.html").write_text(index)
    patch.undo()
    return home / "reports"


def open_page(page, path) -> float:
    """Opens a page from disk; seconds until its runs can be moved."""
    began = time.monotonic()
    page.goto(path.as_uri())
    for figure in page.locator(".moving").all():
        figure.and_(page.locator("[data-ready]")).wait_for()
    return time.monotonic() - began


def set_dial(figure, number: int, value: float) -> None:
    """Moves a slider as a key or a mouse would."""
    figure.locator("input[type=range]").nth(number).fill(f"{value:g}")


def figures_in(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def check_race(figure, grid, values) -> None:
    """Compares all that a race says and draws with the package's own runs."""
    contestants = compute(grid).runs[values]
    runs = [contestant.run for contestant in contestants]
    assert figure.locator(".run").count() == len(runs)
    span = max(run.seconds for run in runs)
    for number, (run, expected) in enumerate(contestants):
        panel = figure.locator(".run").nth(number)
        facts = panel.locator(".facts").text_content()
        stats = run.stats
        waiting = idle_shares(run).replace(" %", "")
        assert facts.startswith(f"{stats.tokens} tokens in ")
        assert figures_in(facts)[1] == pytest.approx(1000 * stats.seconds, abs=0.06)
        shown_waiting = figures_in(facts.partition("waiting:")[2])
        # Half a per cent may be rounded either way.
        assert shown_waiting == pytest.approx(figures_in(waiting), abs=1)
        if stats.drafted:
            tested = stats.accepted + stats.rejected
            assert f"{stats.accepted} of {tested} tested drafts accepted" in facts
            assert f"{stats.drafted - tested} discarded untested" in facts
            ratio = speedup_as_drawn(run, runs)
            assert panel.locator(".speed").text_content() == f"{ratio:.2f}× plain"
            caption = figure.locator(".caption").text_content()
            assert f"{run.label} is here {ratio:.2f} times as fast" in caption
            if isfinite(expected):
                assert f"expected of a long text: {expected:.2f}" in caption

        widths = panel.locator(".boxes .score").evaluate_all(
            "all => all.map((box) => parseFloat(box.style.width))"
        )
        events = [event for event in run.trace.operations if event.is_scoring]
        events.sort(key=lambda event: run.devices.index(event.device))  # lane by lane
        passes = [event.dur for event in events]
        assert widths == [pytest.approx(100 * s / span, rel=1e-3) for s in passes]
        for kind in ("accepted", "rejected", "discarded"):
            drawn = panel.locator(f".boxes .{kind}").count()
            outcomes = [o for event in run.trace.operations for o in event.outcome]
            assert drawn == outcomes.count(kind)


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
        set_dial(race, 0, alpha)
        check_race(race, START, (alpha,))

    written = race.locator(".written span:not(.ahead)")
    race.get_by_role("button", name="Step ▶").click()
    after_one = written.count()
    race.locator(".stage").focus()
    counts = [after_one]
    for _ in range(3):
        offline.keyboard.press("ArrowRight")
        counts.append(written.count())
    assert all(fewer < more for fewer, more in pairwise(counts))
    offline.keyboard.press("ArrowLeft")
    assert written.count() == counts[-2]
    assert "round" in race.locator(".sentence").text_content()

    race.get_by_role("button", name="▶ Play").click()
    race.get_by_role("button", name="❚❚ Pause").wait_for()
    race.get_by_role("button", name="▶ Play").wait_for(timeout=20_000)
    assert race.locator(".written .ahead").count() == 0

    offline.get_by_role("button", name="0.45", exact=True).click()  # in the text
    check_race(race, START, (0.45,))
    for name in ("a-pass", "rejected", "who-waits"):
        check_quiz(offline, name)
    check_letters_and_width(offline)


def test_pearls_rounds_of_lesson_20_are_those_of_its_run_and_sliders_snap(
    pages, offline
):
    open_page(offline, pages / "lessons" / "20_pearl.html")
    rounds, race = offline.locator("#rounds"), offline.locator("#race")
    check_race(race, PEARL, (5, 0.8, 5))
    set_dial(race, 0, 6)
    snapped = race.locator(".snapped").text_content()
    assert "No run was computed for γ = 6" in snapped
    assert "γ = 5" in snapped
    set_dial(race, 0, 12)
    assert race.locator(".snapped").text_content() == ""
    check_race(race, PEARL, (12, 0.8, 5))

    offline.get_by_role("button", name="α = 1 and γ = c").click()  # in the text
    check_race(race, PEARL, (5, 1, 5))

    run = compute(PEARL).runs[5, 0.8, 5][-1].run
    seen = []
    for _ in run.trace.commits:
        seen.append(round_on_page(rounds))
        rounds.get_by_role("button", name="Step ▶").click()
    assert seen == [round_of_trace(run, number) for number in range(len(seen))]
    assert "The text is complete" in rounds.locator(".sentence").text_content()


@pytest.mark.parametrize(
    "lesson, grid, values",
    [
        ("10_speculative_decoding", TURNS, (10, 0.5, 2)),
        ("30_dsi", DSI, (8, 0.9, 1)),
        ("40_duodecoding", DUODECODING, (24, 24, 1)),
        ("90_several_machines", NETWORK, (0.1, 15, 1)),
    ],
)
def test_the_race_of_a_further_lesson_says_what_it_draws(
    pages, offline, lesson, grid, values
):
    open_page(offline, pages / "lessons" / f"{lesson}.html")
    race = offline.locator("#race")
    check_race(race, grid, grid.first_values)
    for number, value in enumerate(values):
        set_dial(race, number, value)
    check_race(race, grid, values)


def round_on_page(rounds) -> tuple:
    """Window, outcomes of what was tested, new drafts and what was written."""
    chips = ".panel.target .chip"
    window = rounds.locator(".panel.target .window i").all_text_contents()
    tested = rounds.locator(f"{chips} i").evaluate_all(CLASSES)
    drafted = rounds.locator(".panel.draft .chip i").all_text_contents()
    written = rounds.locator(".panel.result .chips span").all_text_contents()
    written = [re.sub(r" \(in place of .*\)", "", word) for word in written]
    rows = rounds.locator(f"{chips} small:last-child").all_text_contents()
    for number, (row, outcome) in enumerate(zip(rows, tested, strict=True), 1):
        is_of_use = outcome != "discarded"
        assert row == f"row {number}{' tests it' if is_of_use else ': no use'}"
    return window, tested, drafted, written


def round_of_trace(run, number: int) -> tuple:
    """The same, read from the events of a round and of the one before."""

    def words(tokens) -> list[str]:
        return [run.piece(token).strip() for token in tokens]

    of_round = {}
    for event in run.trace.operations:
        of_round[event.round, event.is_drafting] = event
    scoring, drafting = of_round[number, False], of_round[number, True]
    count = scoring.candidates
    before = of_round[number - 1, True].outcome if count else ()
    tested = [*before[len(before) - count :], *drafting.outcome[:1]]
    commit = run.trace.commits[number]
    window = words(scoring.tokens[len(scoring.tokens) - count :])
    return window, tested, words(drafting.tokens), words(commit.tokens)


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

    check_race(offline.locator("#race"), FRONT, (0.8, 5))
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
