"""What a reader's browser shows: lectures in JupyterLab, reports from disk, offline.

Server, kernel, models, Chromium and mouse are real.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from helpers import late
from helpers.browser import new_page
from helpers.jupyter_lab import running_lab
from helpers.reproduce_home import fill_only

from speclab.views.notebook_files import PLOTLY

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]


# -- lectures, opened and run ----------------------------------------------------------
ENDED_OR_FAILED = """() =>
  document.querySelector('[data-mime-type="application/vnd.jupyter.error"]') ||
  [...document.querySelectorAll(".jp-InputPrompt")]
    .every(prompt => !/[ *]\\]/.test(prompt.textContent))"""
TWENTY_FRAMES = """() => new Promise(resolve => {
  let left = 20;
  const next = () => left-- ? requestAnimationFrame(next) : resolve();
  next();
})"""
# The positions of a lecture's parts, and their texts.
LOOK_OF_PAGE = """() => {
  const parts = document.querySelectorAll(".jp-Cell, .speclib-timeline, .speclib-live");
  const looks = [...parts].map(part => {
    const box = part.getBoundingClientRect();
    return [box.top, box.left, box.width, box.height, part.textContent].join();
  });
  return looks.join();
}"""
# Whether the kernel has nothing to do.
IS_IDLE = """() =>
  document.querySelector("#jp-main-statusbar").textContent.includes("| Idle")"""
# In the picture's text the caption before ends where this one begins.
NONE_ACCEPTED = re.compile(r"(?<!\d)0 of [1-9]\d* tested accepted")
ALL_ACCEPTED = re.compile(r"(?<!\d)(\d+) of \1 tested accepted")
CLASSES_AND_WIDTHS = """all => all.map(
  bar => [bar.getAttribute('class'), Number(bar.getAttribute('width'))])"""


class Lecture(NamedTuple):
    """A lecture that was run.

    Its page, the errors of the page, its file, and the timeline that its sliders move.
    When it had run, before a test touched it: its code cells as they were saved, and
    the number of timelines.
    """

    page: object
    errors: list[str]
    notebook: Path
    picture: object
    cells: list
    timelines: int


class Bar(NamedTuple):
    """A bar of a timeline: what it shows, and its width in pixels."""

    kind: str
    width: float


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A server; a lecture that runs in it needs real models."""
    for name in ("jupyterlab", "torch"):
        pytest.importorskip(name, reason=f"no {name} here: make setup")
    with running_lab(tmp_path_factory.mktemp("home")) as lab:
        yield lab


@pytest.fixture(scope="module")
def opened_lecture(browser, lab, request):
    """A lecture, opened by name without outputs, and run from the menu to its end or
    first error.

    All tests of a lecture share it, and its page is closed before the next one opens:
    pages in the background would take processor time from the page under test.
    """
    notebook = lab.notebooks / f"{request.param}.ipynb"
    copy_without_outputs(ROOT / "notebooks" / "learn" / notebook.name, notebook)
    page, errors = new_page(browser)
    try:
        page.goto(lab.address(request.param))
        cells = run_all_cells(page, notebook)
        wait_until_still(page)
        picture = page.locator(
            ".widget-vbox:has(.widget-slider) .speclib-timeline > svg"
        )
        timelines = page.locator(".speclib-timeline > svg").count()
        yield Lecture(page, errors, notebook, picture, cells, timelines)
    finally:
        page.close()


def run_all_cells(page, notebook: Path) -> list:
    """Runs a lecture from the menu, saves it, and returns its code cells."""
    # Before the kernel is idle, Run is ignored.
    page.locator("#jp-main-statusbar", has_text="| Idle").wait_for(timeout=180_000)
    for item in ("Run", "Run All Cells"):
        page.get_by_role("menuitem", name=item, exact=True).click()
    page.wait_for_function(ENDED_OR_FAILED, timeout=900_000)
    page.keyboard.press("Control+s")
    page.locator(".jp-mod-dirty").wait_for(state="detached", timeout=60_000)

    for button in page.locator("button.widget-toggle-button").all():
        button.click()  # "More": unfolds the other sliders
    return code_cells(late.nbformat.read(notebook, as_version=4))


def copy_without_outputs(source: Path, target: Path) -> None:
    notebook = late.nbformat.read(source, as_version=4)
    for cell in code_cells(notebook):
        cell.update(outputs=[], execution_count=None)
    late.nbformat.write(notebook, target)


def code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture
def lecture(opened_lecture, request):
    """The lecture, after its page has come to rest."""
    if request.config.getoption("loadgroup", False):
        group = f"@{opened_lecture.notebook.stem}"
        assert request.node.nodeid.endswith(group), "tests are not shared out in groups"
    wait_until_still(opened_lecture.page)
    yield opened_lecture
    assert not opened_lecture.errors


def lectures(*names: str):
    """The lectures of a test; in a parallel run one process has all tests of each."""
    cases = []
    for name in names:
        cases.append(pytest.param(name, marks=pytest.mark.xdist_group(name)))
    return pytest.mark.parametrize(
        "opened_lecture", cases, indirect=True, scope="module"
    )


def drag(
    lecture: Lecture,
    symbol: str,
    share: float,
    expected: str | re.Pattern,
    picture=None,
) -> None:
    """Moves the slider called ``symbol`` to ``share`` of its range.

    While it is held there, the picture must contain ``expected``.
    """
    page, mouse = lecture.page, lecture.page.mouse
    picture = picture or lecture.picture
    slider = page.locator(".widget-slider", has_text=symbol).first
    slider.locator(".noUi-handle").hover()  # scrolls, and waits until nothing moves
    handle = slider.locator(".noUi-handle").bounding_box()
    way = slider.locator(".noUi-base").bounding_box()

    mouse.down()
    y = handle["y"] + handle["height"] / 2
    mouse.move(way["x"] + share * way["width"], y, steps=8)
    picture.filter(has_text=expected).wait_for(timeout=180_000)
    mouse.up()
    wait_until_same(page, picture.text_content)


def scroll_to(part) -> None:
    """Brings a part of the page into view, even if it is redrawn meanwhile.

    Playwright's own scrolling fails if the part is replaced while it waits for it to
    stop moving, as a live picture's parts are when the page's width settles.
    """
    part.evaluate("part => part.scrollIntoView({block: 'center'})")


def wait_until_still(page) -> None:
    """Waits until the kernel is idle, and the page neither moves nor changes.

    A picture whose width changes asks the kernel to redraw it, and then everything
    below it moves, so an earlier click would miss.
    """
    wait_until_same(page, lambda: page.evaluate(LOOK_OF_PAGE))


def wait_until_same(page, look: Callable[[], str]) -> None:
    """Waits until the kernel is idle, and ``look`` is unchanged for twenty frames."""
    before = None
    now = look()
    while now != before or not page.evaluate(IS_IDLE):
        page.evaluate(TWENTY_FRAMES)
        before, now = now, look()


def bars(lecture: Lecture, run: int) -> list[Bar]:
    """The bars of one run: 0 plain decoding, 1 speculative decoding, 2 PEARL or DSI."""
    lanes = lecture.picture.locator("g.run").nth(run).locator(".lane rect")
    return [Bar(*values) for values in lanes.evaluate_all(CLASSES_AND_WIDTHS)]


def kinds_of_bars(lecture: Lecture, *runs: int) -> set[str]:
    return {bar.kind for run in runs for bar in bars(lecture, run)}


@lectures(
    "00_start_here",
    "10_speculative_decoding",
    "15_a_real_model",
    "20_pearl",
    "30_dsi",
)
def test_a_lecture_runs_in_jupyterlab_from_its_first_cell_to_its_last(lecture):
    """These have something to drag; nbval runs the cells of all lectures."""
    for cell in lecture.cells:
        for output in cell.outputs:
            assert output.output_type != "error", output.evalue
    counts = [cell.execution_count for cell in lecture.cells]
    assert counts == list(range(1, len(counts) + 1))

    calls = 0
    for cell in lecture.cells:
        calls += (".timeline(" in cell.source) + ("explorer(" in cell.source)
        calls += "stored=stored" in cell.source  # a button with stored runs
    assert lecture.timelines == calls


# -- lectures, what can be played and taken hold of ------------------------------------
@lectures("00_start_here")
def test_a_player_steps_by_button_and_key_and_its_texts_agree(lecture):
    page = lecture.page
    view = page.locator(".speclib-timeline").first
    texts = view.locator(".speclib-text code")
    view.get_by_role("button", name="Step ▶").click()
    after_one = texts.all_text_contents()
    view.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    after_five = texts.all_text_contents()
    page.keyboard.press("ArrowLeft")
    assert after_one != after_five != texts.all_text_contents()

    page.keyboard.press(" ")
    page.wait_for_function(
        "() => document.querySelector('.speclib-player button').textContent != '▶ Play'"
    )
    page.get_by_role("button", name="▶ Play").first.wait_for(timeout=30_000)
    whole = texts.all_text_contents()
    assert len(set(whole)) == 1
    assert len(whole[0]) > len(after_five[0])
    assert "round" in view.locator(".speclib-sentence").text_content()


@lectures("10_speculative_decoding")
def test_the_top_of_an_accept_bar_moves_by_mouse_and_by_key(lecture):
    page = lecture.page
    top = page.locator("[data-handle='q-1']").first
    scroll_to(top)
    assert float(top.get_attribute("aria-valuenow")) == 0.45

    box = top.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + 60, steps=6)
    page.mouse.up()
    voice = page.locator(".speclib-voice").first
    voice.filter(has_text="Of 100 drafted tokens").wait_for(timeout=60_000)
    wait_until_same(page, voice.text_content)
    dragged = float(top.get_attribute("aria-valuenow"))
    assert dragged < 0.40

    top.focus()
    page.keyboard.press("ArrowUp")
    raised = f"{dragged + 0.01:.2f}".rstrip("0")
    page.locator(f"[data-handle='q-1'][aria-valuenow='{raised}']").wait_for()
    focused = page.evaluate("document.activeElement.dataset.handle")
    assert focused == "q-1"  # after the picture was drawn again


@lectures("10_speculative_decoding")
def test_no_press_of_a_key_is_lost_while_a_picture_is_drawn(lecture):
    page = lecture.page
    top = page.locator("[data-handle='p-0']").first
    scroll_to(top)
    before = float(top.get_attribute("aria-valuenow"))
    top.focus()
    for _ in range(30):
        page.keyboard.press("ArrowDown")
    wait_until_same(page, lambda: top.get_attribute("aria-valuenow"))
    after = float(top.get_attribute("aria-valuenow"))
    assert before - after == pytest.approx(0.30, abs=0.011)


@lectures("00_start_here", "10_speculative_decoding", "20_pearl")
def test_sliders_and_pictures_have_names_for_screen_readers(lecture):
    named = "all => all.map(part => part.getAttribute('aria-label'))"
    parts = "[role=slider], .speclib-timeline, .speclib-live"
    lecture.page.locator(".widget-slider [role=slider][aria-label]").first.wait_for()
    names = lecture.page.locator(parts).evaluate_all(named)
    assert names
    assert all(names), names


@lectures("20_pearl")
def test_rounds_step_by_key_and_the_window_is_ringed(lecture):
    page = lecture.page
    rounds = page.locator(".speclib-live", has_text="target model")
    scroll_to(rounds)
    rounds.focus()
    page.keyboard.press("Home")
    rounds.filter(has_text="round 1 of").wait_for()
    assert rounds.locator("rect.ring-window").count() == 0
    assert rounds.locator("rect.ring-early").count() == 1
    page.keyboard.press("ArrowRight")
    rounds.filter(has_text="round 2 of").wait_for()
    assert rounds.locator("rect.ring-window").count() == 1
    status = rounds.locator("[role=status]")
    assert "Round 2, post-verify" in status.text_content()


# -- lectures, values in the text and the projector ------------------------------------
@lectures("00_start_here")
def test_a_value_in_the_text_moves_the_picture_by_mouse_and_by_key(lecture):
    page = lecture.page
    values = page.locator("button[value^='alpha=']")
    assert values.count() == 6
    assert all(values.nth(number).is_enabled() for number in range(6))
    readout = page.locator(".widget-vbox:has(> .speclib-toolbar) .widget-readout")
    never = page.locator("button[value='alpha=0']")
    scroll_to(never)
    never.click()
    lecture.picture.filter(has_text=NONE_ACCEPTED).wait_for()
    assert readout.text_content() == "0.00"

    always = page.locator("button[value='alpha=1']")
    always.focus()
    page.keyboard.press("Enter")
    lecture.picture.filter(has_text=ALL_ACCEPTED).wait_for()
    assert readout.text_content() == "1.00"


OUT_OF_SIGHT = """() => {
  const parts = document.fullscreenElement.querySelectorAll(
    ".speclib-toolbar .widget-slider, .speclib-timeline > svg");
  const seen = part => part.getBoundingClientRect();
  return [...parts].filter(part => seen(part).width > 0
    && (seen(part).top < 0 || seen(part).bottom > innerHeight)).length;
}"""


@lectures("20_pearl")
def test_a_live_picture_fills_the_projector_and_is_stepped_there(lecture):
    page = lecture.page
    rounds = page.locator(".speclib-live", has_text="target model")
    drawn = rounds.locator("svg").first
    scroll_to(rounds)
    before = drawn.bounding_box()
    rounds.get_by_role("button", name="Large").click()
    rounds.get_by_role("button", name="Small").wait_for()
    wait_until_still(page)
    after, screen = drawn.bounding_box(), page.viewport_size
    assert after["width"] > before["width"]
    assert after["y"] >= 0
    assert after["y"] + after["height"] <= screen["height"]

    rounds.focus()
    page.keyboard.press("Home")
    rounds.filter(has_text="round 1 of").wait_for()
    page.keyboard.press("ArrowRight")
    rounds.filter(has_text="round 2 of").wait_for()
    rounds.get_by_role("button", name="Small").click()
    rounds.get_by_role("button", name="Large").wait_for()
    wait_until_still(page)


@lectures("20_pearl", "30_dsi")
def test_on_a_projector_at_150_percent_sliders_and_all_runs_fit_on_one_screen(lecture):
    """1280 x 720 pixels at 150 % are 853 x 480 of a page."""
    page = lecture.page
    whole = page.viewport_size
    page.set_viewport_size({"width": 853, "height": 480})
    stage = page.locator(
        ".widget-vbox:has(> .speclib-toolbar):has(.speclib-timeline)"
    ).first
    large = stage.get_by_role("button", name="Large")
    scroll_to(large)
    large.click()
    stage.get_by_role("button", name="Small").wait_for()
    wait_until_still(page)
    assert page.evaluate(OUT_OF_SIGHT) == 0
    assert stage.locator("g.run").count() == 3
    stage.get_by_role("button", name="Small").click()
    stage.get_by_role("button", name="Large").wait_for()
    page.set_viewport_size(whole)
    wait_until_still(page)


@lectures("10_speculative_decoding")
def test_coins_are_thrown_by_button_and_by_key(lecture):
    page = lecture.page
    count = re.compile("No token is written yet|tokens written")
    picture = page.locator(".speclib-live", has_text=count)
    page.get_by_role("button", name="Throw × 100", exact=True).click()
    picture.filter(has_text="100 tokens written").wait_for(timeout=60_000)
    picture.focus()
    page.keyboard.press(" ")
    picture.filter(has_text="101 tokens written").wait_for(timeout=60_000)
    page.keyboard.press("r")
    picture.filter(has_text="No token is written yet").wait_for(timeout=60_000)


# -- lectures, their sliders -----------------------------------------------------------
@lectures("00_start_here")
def test_a_key_explains_a_box_and_does_not_cover_it(lecture):
    page = lecture.page
    view = page.locator(".speclib-timeline").first
    view.focus()
    tip, explained = view.locator(".speclib-tip"), view.locator("rect.explained")
    said = []
    for _ in range(3):
        page.keyboard.press("ArrowDown")
        said.append(tip.text_content())
        above, below = sorted((tip.bounding_box(), explained.bounding_box()), key=top)
        assert above["y"] + above["height"] <= below["y"]
    assert all(said)
    assert len(set(said)) == 3
    page.keyboard.press("ArrowUp")
    assert tip.text_content() == said[1]

    picture = view.locator("svg").first
    picture.hover(position={"x": 2, "y": 2})  # where nothing has an explanation
    assert tip.is_visible()
    picture.hover(position={"x": 300, "y": 2})
    page.mouse.move(1, 1)  # out of the picture
    assert tip.is_visible()
    assert tip.text_content() == said[1]
    for _ in range(6):
        page.keyboard.press("+")  # the first boxes leave the picture
    page.keyboard.press("ArrowUp")
    lane, box = view.locator("svg.plot").get_attribute("width"), explained.first
    middle = float(box.get_attribute("x")) + float(box.get_attribute("width")) / 2
    assert 0 <= middle <= float(lane)
    assert tip.is_visible()
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    assert explained.count() == 0
    page.keyboard.press("0")


def top(box: dict) -> float:
    return box["y"]


@lectures("20_pearl")
def test_ribbons_step_by_key_and_play(lecture):
    page = lecture.page
    ribbon = page.locator(".speclib-live", has_text="a column is a position")
    scroll_to(ribbon)
    ribbon.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    ribbon.filter(has_text="step 2 of").wait_for(timeout=60_000)
    page.keyboard.press("Home")
    ribbon.filter(has_text="step 1 of").wait_for(timeout=60_000)
    page.keyboard.press(" ")
    ribbon.filter(has_text="step 3 of").wait_for(timeout=60_000)
    page.keyboard.press(" ")
    voice = ribbon.locator(".speclib-voice").text_content()
    assert "place" in voice or "text grows" in voice


@lectures("20_pearl")
def test_real_models_run_when_asked_and_sliders_move_meanwhile(lecture):
    page = lecture.page
    status = page.locator("[role=status]", has_text="Not run yet")
    assert status.count() == 1
    page.get_by_role("button", name="Run it here").click()
    page.get_by_role("button", name="Stop").wait_for()
    drag(lecture, "γ", 0.0, "PEARL γ = 1draft")
    still_running = page.get_by_role("button", name="Stop").count()
    assert still_running == 1
    done = page.locator("[role=status]", has_text="All methods wrote the same")
    done.wait_for(timeout=300_000)
    assert page.get_by_role("button", name="Run it again").count() == 1


# -- lectures, what a student types ----------------------------------------------------
# A wrong answer, and words by which its card names the mistake.
WRONG_ACCEPTANCE = """def acceptance(p, q, token):
    return p[token]"""
NAMED = "This is how often the target model writes the token itself."


@lectures("10_speculative_decoding")
def test_a_typed_mistake_is_named_and_correct_answers_pass(lecture):
    """tests/teach judges every mistake without a browser."""
    exercises = exercises_of(lecture)
    first = exercises[0]
    answer_and_judge(lecture.page, first, WRONG_ACCEPTANCE, NAMED)
    for exercise in exercises:
        answer_and_judge(lecture.page, exercise, exercise.answer, "✓ Right.")


@lectures("20_pearl")
def test_a_right_pearl_is_drawn_below_its_card_and_plays(lecture):
    (exercise,) = [each for each in exercises_of(lecture) if each.name == "pearl"]
    answer_and_judge(lecture.page, exercise, exercise.answer, "✓ Right.")
    own = exercise.check.locator(".speclib-timeline", has_text="your PEARL")
    own.wait_for()
    said = own.locator(".speclib-sentence")
    before = said.text_content()
    own.get_by_role("button", name="Step ▶").click()
    lecture.page.wait_for_function(
        "([said, before]) => said.textContent !== before",
        arg=[said.element_handle(), before],
    )
    assert exercise.check.get_by_role("button", name="Run it here").count() == 1


class Exercise(NamedTuple):
    """An exercise of an open lecture, with a correct answer."""

    name: str
    function: str  # what a student writes
    answer: str
    check: object  # the cell with its card


def exercises_of(lecture) -> list[Exercise]:
    """The exercises in the lecture's file of solutions."""
    with_answers = ROOT / "notebooks" / "solutions" / lecture.notebook.name
    exercises = []
    for cell in code_cells(late.nbformat.read(with_answers, as_version=4)):
        if "exercise" not in cell.metadata.get("tags", []):
            continue
        function = re.match(r"def (\w+)", cell.source)[1]
        asks_for_it = re.compile(rf"teach\.check_\w+\({function}\)")
        check = lecture.page.locator(".jp-CodeCell", has_text=asks_for_it).first
        name = re.search(r"check_(\w+)\(", check.text_content())[1]
        exercises.append(Exercise(name, function, cell.source, check))
    assert exercises
    return exercises


def answer_and_judge(page, exercise: Exercise, answer: str, expected: str) -> None:
    """Types an answer into its cell, runs it and its check, and waits for the card."""
    asks_for_it = re.compile(rf"def {exercise.function}\(")
    cell = page.locator(".jp-CodeCell", has_text=asks_for_it).first
    editor = cell.locator(".cm-content").first
    scroll_to(editor)
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(answer)
    page.keyboard.press("Control+Enter")
    exercise.check.locator(".cm-content").first.click()
    page.keyboard.press("Control+Enter")
    card = exercise.check.locator("[role=status]", has_text=expected)
    card.first.wait_for(timeout=60_000)


@lectures("20_pearl")
def test_a_dragged_gamma_is_what_sd_drafts_for_every_target_pass(lecture, tmp_path):
    for share, gamma in ((1, 12), (0, 1)):
        # The label of a run, and then its first lane's name.
        drag(lecture, "γ", share, f"PEARL γ = {gamma}draft")
        kinds = [bar.kind for bar in bars(lecture, 1)]
        drafted = sum(kind in ("accepted", "rejected", "discarded") for kind in kinds)
        assert (
            gamma * (kinds.count("score") - 1) < drafted <= gamma * kinds.count("score")
        )
        label = re.compile(f"^PEARL γ = {gamma}$")
        lecture.page.locator("td", has_text=label).wait_for()
        lecture.page.screenshot(path=tmp_path / f"lecture-{gamma}.png")


@lectures("20_pearl")
def test_at_alpha_0_nothing_is_accepted_and_at_alpha_1_nothing_is_rejected(lecture):
    for share, missing in ((0, "accepted"), (1, "rejected")):
        drag(lecture, "α", share, ALL_ACCEPTED if share else NONE_ACCEPTED)
        kinds = kinds_of_bars(lecture, 1, 2)
        assert {"accepted", "rejected"} - kinds == {missing}


@lectures("20_pearl")
def test_a_zoom_stays_while_a_slider_moves_and_a_double_click_ends_it(lecture):
    first_width = bars(lecture, 0)[0].width
    spot = {"x": 400, "y": 80}
    lecture.picture.hover(position=spot)
    lecture.page.keyboard.down("Control")
    lecture.page.mouse.wheel(0, -300)  # pixels; 300 of them are a factor of e
    lecture.page.keyboard.up("Control")
    drag(lecture, "γ", 1, "PEARL γ = 12")
    gap = 1.5  # pixels between two bars, which do not grow
    grown = (first_width + gap) * math.e - gap
    assert bars(lecture, 0)[0].width == pytest.approx(grown, rel=0.02)
    lecture.picture.dblclick(position=spot)
    assert bars(lecture, 0)[0].width == pytest.approx(first_width, abs=0.02)


def speeds(lecture: Lecture) -> list[str]:
    """The speed-ups of speculative decoding and DSI after the first commit: the third
    cell of their rows in the table below the picture.
    """
    rows = lecture.page.locator("tr", has_text=re.compile("^(Speculative|DSI)"))
    return [
        rows.nth(run).locator("td").nth(2).text_content().removesuffix("×")
        for run in range(2)
    ]


@lectures("30_dsi")
def test_with_a_drafter_never_right_dsi_is_plain_decoding_and_sd_takes_twice_as_long(
    lecture,
):
    drag(lecture, "α", 0, NONE_ACCEPTED)
    # gamma = c = 5: drafting takes one pass, and 4, 3, 2 and 1 fifths of it in the last
    # four rounds. After the first of 24 tokens: 23 * 5 over 23 * 10 - 10.
    assert speeds(lecture) == ["0.52", "1.00"]
    kinds = kinds_of_bars(lecture, 2)
    assert "rejected" in kinds
    assert "accepted" not in kinds


@lectures("30_dsi")
def test_with_two_servers_dsi_is_as_fast_as_its_drafter_and_with_one_it_is_not(lecture):
    """c = 5, with drafts that are always right and checked singly if a server is free.

    Plain decoding takes 31 passes after the first commit. One server tests the five
    drafts that were written during its last pass, so it takes seven.
    """
    drag(lecture, "α", 1, ALL_ACCEPTED)
    drag(lecture, "lookahead", 0, "lookahead 1,")
    drag(lecture, "target servers", 1 / 7, "lookahead 1, 2 targets")
    assert speeds(lecture)[1] == "5.00"
    drag(lecture, "target servers", 0, "lookahead 1, 1 target")
    assert speeds(lecture)[1] == f"{31 / 7:.2f}"


@lectures("30_dsi")
def test_the_maps_follow_the_sliders_and_only_sis_turns_pink(lecture):
    maps = lecture.page.locator("svg", has_text="formulas for an endless text")
    for share, alpha in ((0, 0), (1, 1)):
        drag(lecture, "α", share, ALL_ACCEPTED if alpha else NONE_ACCEPTED)
        drag(lecture, "γ", share, f"Speculative decoding γ = {1 + 11 * share}")
        titles = maps.locator("text").all_text_contents()
        assert f"SI, γ = {1 + 11 * share}" in titles

        heights = maps.locator("circle").evaluate_all(
            "all => all.map(circle => Number(circle.getAttribute('cy')))"
        )
        frames = maps.locator("rect[fill=none]").evaluate_all(
            "all => all.map(r => [r.getAttribute('y'), r.getAttribute('height')])"
        )
        expected = []
        for top, height in frames:
            expected.append(float(top) + (1 - alpha) * float(height))
        assert heights == expected

    pink_cells = maps.locator("g[shape-rendering]").evaluate_all(
        "all => all.map(map => map.querySelectorAll('[fill=\"#b5427f\"]').length)"
    )
    assert pink_cells[0] > 0 == pink_cells[1]


# -- reports ---------------------------------------------------------------------------
REPRODUCE = ("reproduce", "--minutes=0")
ITEMS = {  # bars, lines, one without a number; lines, heatmaps, print alone
    "pearl": ("table-1", "table-5", "extra-2"),
    "dsi": ("theorem-1", "figure-6", "section-5"),
}
FILLED = {
    "pearl": {"virtual": ["table-1", "table-5"], "measured": ["extra-2"]},
    "dsi": {"virtual": ["theorem-1", "figure-6"]},
}
OWN_FOLDERS = ("papers", "reproduce", "audit", "runs")
WIDTHS_OF_PICTURES = "all => all.map(picture => picture.naturalWidth)"
PAGES = ("index.html", "pearl.html", "dsi.html")
PAGE_WIDTH = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """The folder of reports of two papers, with a few items each and no
    measurements."""
    home = tmp_path_factory.mktemp("home")
    for folder in ("data", "notebooks"):
        (home / folder).mkdir()
        for path in (ROOT / folder).iterdir():
            if path.name not in OWN_FOLDERS:
                (home / folder / path.name).symlink_to(path)
    (home / "notebooks" / "reproduce").mkdir()
    for paper in ITEMS:
        link_tables(paper, home)
        write_notebook(paper, home)

    subprocess.run(
        [sys.executable, "-m", "speclab", *REPRODUCE],
        env=os.environ | {"SPECLIB_HOME": str(home)},
        check=True,
    )
    return home / "reports"


def link_tables(paper: str, home: Path) -> None:
    """Puts the tables of a paper into a home, with few of them to fill."""
    folder = home / "data" / "papers" / paper
    folder.mkdir(parents=True)
    for path in (ROOT / "data" / "papers" / paper).iterdir():
        if path.name != "paper.toml":
            (folder / path.name).symlink_to(path)
    description = folder / "paper.toml"
    shutil.copy(ROOT / "data" / "papers" / paper / "paper.toml", description)
    fill_only(description, FILLED[paper])


def write_notebook(paper: str, home: Path) -> None:
    """Puts a paper's notebook into a home, with only the cells of these items."""
    name = f"notebooks/reproduce/{paper}.ipynb"
    notebook = late.nbformat.read(ROOT / name, as_version=4)
    cells = []
    for cell in notebook.cells:
        item = re.match(rf'{paper}\.\w+\("([^"]+)"', cell.source)
        if not item or item[1] in ITEMS[paper]:
            cells.append(cell)
    notebook.cells = cells
    late.nbformat.write(notebook, home / name)


of_reports = pytest.mark.xdist_group("reports")


@of_reports
@pytest.mark.parametrize("paper, width", [("pearl", 1400), ("dsi", 1400), ("dsi", 800)])
def test_the_report_draws_every_chart_and_timeline_offline(
    reports, offline, paper, width, tmp_path
):
    """Every figure has marks, and no table is wider than its column."""
    notebook = late.nbformat.read(reports / f"{paper}.ipynb", as_version=4)
    source = "\n".join(cell.source for cell in code_cells(notebook))
    figures = 0
    for cell in code_cells(notebook):
        figures += sum(PLOTLY in output.get("data", {}) for output in cell.outputs)
    offline.set_viewport_size({"width": width, "height": 1000})
    offline.goto((reports / f"{paper}.html").as_uri())
    offline.screenshot(path=tmp_path / "report.png", full_page=True)

    figures_with_marks = offline.locator(
        ".plotly-graph-div:has(.main-svg :is(.trace, .bars, .point, .hm) path, "
        ".main-svg .hm image)"
    )
    assert figures_with_marks.count() == figures > 0
    too_wide = offline.locator(".speclib .scroll").evaluate_all(
        "all => all.filter(box => box.scrollWidth > box.clientWidth + 1).length"
    )
    assert too_wide == 0 or width < 1400
    timelines = offline.locator("img[alt^=timeline]").evaluate_all(WIDTHS_OF_PICTURES)
    assert len(timelines) == source.count(f"{paper}.timeline(")
    assert all(timeline_width > 1000 for timeline_width in timelines)
    assert offline.evaluate(PAGE_WIDTH) <= width


class Box(NamedTuple):
    """The position of a title on the page, in pixels."""

    left: float
    right: float
    top: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        beside = self.right <= other.left or other.right <= self.left
        apart = self.bottom <= other.top or other.bottom <= self.top
        return not beside and not apart


@of_reports
def test_titles_of_the_heatmaps_panels_do_not_overlap_on_a_narrow_page(
    reports, offline
):
    offline.set_viewport_size({"width": 800, "height": 1000})
    offline.goto((reports / "dsi.html").as_uri())
    titles = offline.locator(".plotly-graph-div:has(.hm) .annotation-text")
    edges = titles.evaluate_all(
        """all => all.map(title => title.getBoundingClientRect())
        .map(box => [box.left, box.right, box.top, box.bottom])"""
    )
    boxes = [Box(*edges_of_title) for edges_of_title in edges]
    assert len(boxes) == 5  # (a) to (c), the code's, the difference
    for index, box in enumerate(boxes):
        for other in boxes[:index]:
            assert not box.overlaps(other)


@of_reports
def test_every_link_of_the_pages_leads_to_an_anchor_that_exists(reports, offline):
    anchors = {}
    addresses_on = {}
    for name in PAGES:
        offline.goto((reports / name).as_uri())
        ids = offline.locator("[id]").evaluate_all("all => all.map(e => e.id)")
        anchors[name] = set(ids)
        links = offline.locator("a")
        addresses_on[name] = links.evaluate_all("""all => all.map(
            a => a.href.baseVal === undefined ? a.href : a.href.baseVal)""")

    links_between = set()
    for name, addresses in addresses_on.items():
        for address in addresses:
            link = urlsplit(urljoin((reports / name).as_uri(), address))
            target = Path(unquote(link.path))
            assert link.scheme == "file"
            assert target.is_file(), address
            if link.fragment:
                assert link.fragment in anchors[target.name], address
            links_between.add((name, target.name))
    assert links_between >= {
        ("index.html", "pearl.html"),
        ("index.html", "dsi.html"),
    }

    offline.goto((reports / "dsi.html").as_uri())

    offline.get_by_role("link", name="All reports", exact=True).click()
    offline.get_by_role("link", name="PEARL, Table 1").click()
    assert offline.locator("h1").first.text_content().startswith("PEARL")
