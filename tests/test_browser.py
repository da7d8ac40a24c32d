"""What a reader's browser shows: a lecture run in JupyterLab, the reports opened from disk offline.

Server, kernel, models, Chromium and mouse are real. It knows none of their numbers.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import nbformat
import pytest

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[1]
FLAGS = ("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
         "--disable-background-networking --disable-component-update").split()
SERVER = ("-m jupyterlab --no-browser --allow-root --ServerApp.port_retries=0 "
          "--IdentityProvider.token=reader").split()
REPRODUCE = "-m speclib reproduce --quick --virtual --paper pearl".split()
ENDED = """() => document.querySelector('[data-mime-type="application/vnd.jupyter.error"]') ||
  [...document.querySelectorAll(".jp-InputPrompt")].every(p => !/[ *]\\]/.test(p.textContent))"""
BARS = "all => all.map(r => [r.getAttribute('class'), Number(r.getAttribute('width'))])"


@pytest.fixture(scope="module")
def browser():
    driver = pytest.importorskip("playwright.sync_api", reason="no playwright here: make setup")
    found = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    path = next(found, None) or pytest.skip("no Chromium here: apt-get install chromium")
    with driver.sync_playwright() as started:
        yield started.chromium.launch(executable_path=path, args=FLAGS)


def new_page(browser, **options) -> tuple:
    """A page, and the list that gathers the errors of its scripts and console, none left out."""
    page, errors = browser.new_page(viewport={"width": 1400, "height": 1000}, **options), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    return page, errors


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A server for a reader who never used Jupyter before: (its address, folder of notebooks)."""
    for name in ("jupyterlab", "torch"):                # the lecture runs real models
        pytest.importorskip(name, reason=f"no {name} here: make setup")
    home = tmp_path_factory.mktemp("home")
    (books := home / "books").mkdir()
    (news := home / ".jupyter/lab/user-settings/@jupyterlab/apputils-extension").mkdir(parents=True)
    (news / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "IPYTHON"))}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [sys.executable, *SERVER, f"--ServerApp.port={port}", f"--ServerApp.root_dir={books}"]
    with open(home / "log", "w") as log:
        server = subprocess.Popen(words, env=env | {"HOME": home}, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 60
        while "is running at" not in (home / "log").read_text():
            assert server.poll() is None and time.monotonic() < until, (home / "log").read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/lab/tree/20_pearl.ipynb?token=reader", books
    finally:
        server.terminate()                              # ends its kernels too
        server.wait(60)


@pytest.fixture(scope="module")
def opened(browser, lab):
    """20_pearl without its outputs, opened, and run by the menu to its end or first error."""
    address, books = lab
    book = nbformat.read(ROOT / "notebooks" / "learn" / "20_pearl.ipynb", as_version=4)
    for cell in (c for c in book.cells if c.cell_type == "code"):
        cell.update(outputs=[], execution_count=None)
    nbformat.write(book, books / "20_pearl.ipynb")
    page, errors = new_page(browser)
    page.goto(address)                                  # before it is idle, Run is ignored
    page.locator("#jp-main-statusbar", has_text="| Idle").wait_for(timeout=60_000)
    for name in ("Run", "Run All Cells"):
        page.get_by_role("menuitem", name=name, exact=True).click()
    page.wait_for_function(ENDED, timeout=240_000)
    picture = page.locator(".widget-vbox:has(.widget-slider) .speclib-timeline > svg")
    return SimpleNamespace(page=page, errors=errors, book=books / "20_pearl.ipynb", picture=picture)


@pytest.fixture
def lecture(opened):
    yield opened
    assert not opened.errors


def drag(lecture, symbol: str, share: float, told: str) -> None:
    """Draws a slider to ``share`` of its way; while held there, the picture must say ``told``."""
    slider, mouse = lecture.page.locator(".widget-slider", has_text=symbol), lecture.page.mouse
    slider.scroll_into_view_if_needed()
    handle, way = (slider.locator(part).bounding_box() for part in (".noUi-handle", ".noUi-base"))
    y = handle["y"] + handle["height"] / 2
    mouse.move(handle["x"] + handle["width"] / 2, y)
    mouse.down()
    mouse.move(way["x"] + share * way["width"], y, steps=8)
    lecture.picture.filter(has_text=told).wait_for(timeout=10_000)
    mouse.up()


def bars(lecture, run: int) -> list[tuple[str, float]]:
    """(class, width) of the bars of one run: 0 plain decoding, 1 SD, 2 PEARL."""
    return lecture.picture.locator("g.run").nth(run).locator(".lane rect").evaluate_all(BARS)


def test_a_lecture_runs_in_jupyterlab_from_its_first_cell_to_its_last(lecture):
    lecture.page.keyboard.press("Control+s")
    lecture.page.locator(".jp-mod-dirty").wait_for(state="detached", timeout=10_000)
    cells = [c for c in nbformat.read(lecture.book, as_version=4).cells if c.cell_type == "code"]
    assert not [o.evalue for c in cells for o in c.outputs if o.output_type == "error"]
    assert [c.execution_count for c in cells] == list(range(1, len(cells) + 1))
    shown = sum(name in c.source for c in cells for name in (".timeline(", ".explorer("))
    assert lecture.page.locator(".speclib-timeline > svg").count() == shown


def test_a_dragged_gamma_is_what_sd_drafts_for_every_target_pass(lecture, tmp_path):
    for share, gamma in ((1, 12), (0, 1)):
        drag(lecture, "γ", share, f"PEARL γ = {gamma}draft")            # and its first lane's name
        kinds = [kind for kind, _ in bars(lecture, 1)]
        drafted = sum(kind in ("accepted", "rejected", "wasted") for kind in kinds)
        assert drafted == gamma * kinds.count("score") > 0
        lecture.page.locator("td", has_text=re.compile(f"^PEARL γ = {gamma}$")).wait_for()
        lecture.page.screenshot(path=tmp_path / f"lecture-{gamma}.png")


def test_at_alpha_0_nothing_is_accepted_and_at_alpha_1_nothing_is_rejected(lecture):
    for share, missing in ((0, "accepted"), (1, "rejected")):
        drag(lecture, "α", share, f"accepted {share:.0%}".replace("%", " %"))
        kinds = {kind for run in (1, 2) for kind, _ in bars(lecture, run)}
        assert {"accepted", "rejected"} - kinds == {missing}


def test_a_zoom_stays_while_a_slider_moves_and_a_double_click_ends_it(lecture):
    (_, first), at = bars(lecture, 0)[0], {"x": 400, "y": 80}
    lecture.picture.hover(position=at)
    lecture.page.keyboard.down("Control")
    lecture.page.mouse.wheel(0, -300)                   # pixels; 300 of them are a factor of e
    lecture.page.keyboard.up("Control")
    drag(lecture, "γ", 1, "PEARL γ = 12")
    assert bars(lecture, 0)[0][1] == pytest.approx(first * math.e, rel=0.05)
    lecture.picture.dblclick(position=at)
    assert bars(lecture, 0)[0][1] == pytest.approx(first, abs=0.02)


@pytest.fixture(scope="module")
def reports(tmp_path_factory, browser):
    """The folder that the quick, virtual version of one paper leaves."""
    home = tmp_path_factory.mktemp("home")
    for name in ("data", "notebooks"):
        (home / name).symlink_to(ROOT / name)
    env = os.environ | {"SPECLIB_HOME": str(home)}
    subprocess.run([sys.executable, *REPRODUCE], env=env, check=True)
    return home / "reports"


@pytest.fixture
def offline(browser):
    """A page without a network, where every wish for one is an error."""
    page, errors = new_page(browser, offline=True)
    page.route(re.compile("^(?!file:)"), lambda r: (errors.append(r.request.url), r.abort()))
    yield page
    page.close()
    assert not errors


def test_the_report_draws_every_chart_and_timeline_offline(reports, offline, tmp_path):
    source = (ROOT / "notebooks" / "reproduce" / "pearl.ipynb").read_text()
    offline.goto((reports / "pearl.html").as_uri())
    offline.screenshot(path=tmp_path / "report.png", full_page=True)
    drawn = offline.locator(".plotly-chart:has(.main-svg :is(.trace, .bars, .point) path)")
    assert drawn.count() == source.count("pearl.chart(") > 0
    wide = offline.locator("img[alt^=timeline]").evaluate_all("a => a.map(i => i.naturalWidth)")
    assert len(wide) == source.count("pearl.timeline(") > 0 and min(wide) > 1000


def test_every_link_of_the_pages_leads_to_a_place_that_exists(reports, offline):
    for name in ("index.html", "pearl.html"):
        offline.goto((reports / name).as_uri())
        links = [urlsplit(u) for u in offline.locator("a").evaluate_all("a => a.map(a => a.href)")]
        assert links and {link.scheme for link in links} == {"file"}
        assert not [u for u in links if not Path(unquote(u.path)).is_file()]
        inside = {u.fragment for u in links if u.fragment}
        assert inside <= set(offline.locator("[id]").evaluate_all("a => a.map(a => a.id)"))
    offline.get_by_role("link", name="All reports", exact=True).click()
    offline.get_by_role("link", name="pearl.html", exact=True).click()
    assert offline.locator("h1").first.text_content().startswith("PEARL")
