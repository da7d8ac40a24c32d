"""What a reader's browser shows: lectures run in JupyterLab, the reports opened from
disk offline.

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
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import pytest
from helpers import late

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-sync --disable-background-networking --disable-component-update"
).split()
SERVER = (
    "-m jupyterlab --no-browser --allow-root --ServerApp.port_retries=0 "
    "--IdentityProvider.token=reader"
).split()
REPRODUCE = "-m speclib reproduce --quick --virtual --paper pearl --paper dsi".split()
SHOWN = ("theorem-1", "figure-6", "section-5")  # of DSI: lines, heatmaps, print alone
ENDED = """() =>
  document.querySelector('[data-mime-type="application/vnd.jupyter.error"]') ||
  [...document.querySelectorAll(".jp-InputPrompt")].every(
    prompt => !/[ *]\\]/.test(prompt.textContent))"""
BARS = "all => all.map(r => [r.getAttribute('class'), Number(r.getAttribute('width'))])"


@pytest.fixture(scope="module")
def browser():
    driver = pytest.importorskip(
        "playwright.sync_api", reason="no playwright here: make setup"
    )
    found = filter(
        None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    )
    path = next(found, None) or pytest.skip(
        "no Chromium here: apt-get install chromium"
    )
    with driver.sync_playwright() as started:
        yield started.chromium.launch(executable_path=path, args=FLAGS)


def new_page(browser, **options) -> tuple:
    """A page, and the list that gathers the errors of its scripts and console, none
    left out.
    """
    page, errors = (
        browser.new_page(viewport={"width": 1400, "height": 1000}, **options),
        [],
    )
    page.set_default_timeout(120_000)  # a machine may be slow
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    return page, errors


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A server for a reader who never used Jupyter before: (its address, folder of
    notebooks).
    """
    for name in ("jupyterlab", "torch"):  # the lecture runs real models
        pytest.importorskip(name, reason=f"no {name} here: make setup")
    home = tmp_path_factory.mktemp("home")
    (books := home / "books").mkdir()
    for extension, setting in (
        ("apputils-extension/notification", '{"fetchNews": "false"}'),
        ("notebook-extension/tracker", '{"windowingMode": "none"}'),
    ):  # unseen cells, too
        path = (
            home
            / ".jupyter/lab/user-settings/@jupyterlab"
            / f"{extension}.jupyterlab-settings"
        )
        path.parent.mkdir(parents=True)
        path.write_text(setting)
    env = {
        k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "IPYTHON"))
    }
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [
        sys.executable,
        *SERVER,
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={books}",
    ]
    with open(home / "log", "w") as log:
        server = subprocess.Popen(
            words, env=env | {"HOME": home}, stdout=log, stderr=log
        )
    try:
        until = time.monotonic() + 180
        while "is running at" not in (home / "log").read_text():
            assert server.poll() is None and time.monotonic() < until, (
                home / "log"
            ).read_text()
            time.sleep(0.1)
        yield (
            f"http://127.0.0.1:{port}/lab/workspaces/{{0}}/tree/{{0}}.ipynb?token=reader",
            books,
        )
    finally:
        server.terminate()  # ends its kernels too
        server.wait(60)


@pytest.fixture(scope="module")
def opened(browser, lab):
    """Name -> the lecture without its outputs, opened, and run by the menu to its end
    or first error; once.
    """
    address, books = lab

    @cache
    def run(name):
        book = late.nbformat.read(
            ROOT / "notebooks" / "learn" / f"{name}.ipynb", as_version=4
        )
        for cell in (c for c in book.cells if c.cell_type == "code"):
            cell.update(outputs=[], execution_count=None)
        late.nbformat.write(book, books / f"{name}.ipynb")
        page, errors = new_page(browser)
        page.goto(address.format(name))  # before it is idle, Run is ignored
        page.locator("#jp-main-statusbar", has_text="| Idle").wait_for(timeout=180_000)
        for item in ("Run", "Run All Cells"):
            page.get_by_role("menuitem", name=item, exact=True).click()
        page.wait_for_function(ENDED, timeout=900_000)
        picture = page.locator(
            ".widget-vbox:has(.widget-slider) .speclib-timeline > svg"
        )
        return SimpleNamespace(
            page=page, errors=errors, book=books / f"{name}.ipynb", picture=picture
        )

    return run


@pytest.fixture
def lecture(opened, request):
    found = opened(request.param)
    found.page.bring_to_front()
    yield found
    assert not found.errors


def lectures(*names):
    return pytest.mark.parametrize("lecture", names, indirect=True)


def drag(lecture, symbol: str, share: float, told: str, picture=None) -> None:
    """Draws a slider to ``share`` of its way; while held there, the picture must say
    ``told``.
    """
    page, mouse, picture = lecture.page, lecture.page.mouse, picture or lecture.picture
    slider = page.locator(".widget-slider", has_text=symbol).first
    slider.locator(".noUi-handle").hover()  # scrolls, and waits until nothing moves
    handle, way = (
        slider.locator(part).bounding_box() for part in (".noUi-handle", ".noUi-base")
    )
    y = handle["y"] + handle["height"] / 2
    mouse.down()
    mouse.move(way["x"] + share * way["width"], y, steps=8)
    picture.filter(has_text=told).wait_for(timeout=180_000)
    mouse.up()
    before = None
    while (now := picture.text_content()) != before:  # until nothing more comes
        before = now
        page.wait_for_timeout(1000)


def bars(lecture, run: int) -> list[tuple[str, float]]:
    """(class, width) of the bars of one run: 0 plain decoding, 1 SD, 2 PEARL or DSI."""
    return (
        lecture.picture.locator("g.run")
        .nth(run)
        .locator(".lane rect")
        .evaluate_all(BARS)
    )


@lectures("20_pearl", "30_dsi", "40_duodecoding", "50_easyspec")
def test_a_lecture_runs_in_jupyterlab_from_its_first_cell_to_its_last(lecture):
    lecture.page.keyboard.press("Control+s")
    lecture.page.locator(".jp-mod-dirty").wait_for(state="detached", timeout=60_000)
    cells = [
        c
        for c in late.nbformat.read(lecture.book, as_version=4).cells
        if c.cell_type == "code"
    ]
    assert not [o.evalue for c in cells for o in c.outputs if o.output_type == "error"]
    assert [c.execution_count for c in cells] == list(range(1, len(cells) + 1))
    shown = sum(name in c.source for c in cells for name in (".timeline(", "explorer("))
    assert lecture.page.locator(".speclib-timeline > svg").count() == shown


@lectures("20_pearl")
def test_a_dragged_gamma_is_what_sd_drafts_for_every_target_pass(lecture, tmp_path):
    for share, gamma in ((1, 12), (0, 1)):
        drag(
            lecture, "γ", share, f"PEARL γ = {gamma}draft"
        )  # and its first lane's name
        kinds = [kind for kind, _ in bars(lecture, 1)]
        drafted = sum(kind in ("accepted", "rejected", "wasted") for kind in kinds)
        assert drafted == gamma * kinds.count("score") > 0
        lecture.page.locator(
            "td", has_text=re.compile(f"^PEARL γ = {gamma}$")
        ).wait_for()
        lecture.page.screenshot(path=tmp_path / f"lecture-{gamma}.png")


@lectures("20_pearl")
def test_at_alpha_0_nothing_is_accepted_and_at_alpha_1_nothing_is_rejected(lecture):
    for share, missing in ((0, "accepted"), (1, "rejected")):
        drag(lecture, "α", share, f"accepted {share:.0%}".replace("%", " %"))
        kinds = {kind for run in (1, 2) for kind, _ in bars(lecture, run)}
        assert {"accepted", "rejected"} - kinds == {missing}


@lectures("20_pearl")
def test_a_zoom_stays_while_a_slider_moves_and_a_double_click_ends_it(lecture):
    (_, first), at = bars(lecture, 0)[0], {"x": 400, "y": 80}
    lecture.picture.hover(position=at)
    lecture.page.keyboard.down("Control")
    lecture.page.mouse.wheel(0, -300)  # pixels; 300 of them are a factor of e
    lecture.page.keyboard.up("Control")
    drag(lecture, "γ", 1, "PEARL γ = 12")
    assert bars(lecture, 0)[0][1] == pytest.approx(first * math.e, rel=0.05)
    lecture.picture.dblclick(position=at)
    assert bars(lecture, 0)[0][1] == pytest.approx(first, abs=0.02)


def speeds(lecture) -> list[str]:
    """Of SD and DSI over plain decoding, as the picture has them."""
    return re.findall(r"(\d\.\d\d)× AR", lecture.picture.text_content())


@lectures("30_dsi")
def test_with_a_drafter_never_right_dsi_is_plain_decoding_and_sd_takes_twice_as_long(
    lecture,
):
    drag(lecture, "α", 0, "accepted 0 %")
    assert speeds(lecture) == ["0.50", "1.00"]  # gamma = c: drafting takes one pass
    kinds = {kind for kind, _ in bars(lecture, 2)}
    assert "rejected" in kinds and "accepted" not in kinds


@lectures("30_dsi")
def test_with_c_servers_dsi_is_as_fast_as_its_drafter_and_with_one_fewer_it_is_not(
    lecture,
):
    """c = 5, drafts that are always right, each one checked alone."""
    drag(lecture, "α", 1, "accepted 100 %")
    drag(lecture, "lookahead", 0, "lookahead 1,")
    for servers, full in ((4, False), (5, True)):
        drag(
            lecture,
            "target servers",
            (servers - 1) / 7,
            f"lookahead 1, {servers} targets",
        )
        assert (speeds(lecture)[1] == "5.00") == full


@lectures("30_dsi")
def test_the_maps_follow_the_sliders_and_only_sis_turns_pink(lecture):
    maps = lecture.page.locator("svg", has_text="formulas for an endless text")
    for share, alpha in ((0, 0), (1, 1)):
        drag(lecture, "α", share, f"accepted {100 * alpha} %")
        drag(lecture, "γ", share, f"SD γ = {1 + 11 * share}")
        names = maps.locator("text").all_text_contents()
        assert f"SI, γ = {1 + 11 * share}" in names
        heights = maps.locator("circle").evaluate_all(
            "all => all.map(c => c.getAttribute('cy'))"
        )
        boxes = maps.locator("rect[fill=none]").evaluate_all(
            "all => all.map("
            "r => [r.getAttribute('y'), r.getAttribute('height')].map(Number))"
        )
        assert list(map(float, heights)) == [
            y + (1 - alpha) * high for y, high in boxes
        ]
    pink = maps.locator("g[shape-rendering]").evaluate_all(
        "all => all.map(g => g.querySelectorAll('[fill=\"#b5427f\"]').length)"
    )
    assert pink[0] > 0 == pink[1]


@lectures("50_easyspec")
def test_eight_layers_on_four_devices_take_as_long_as_four_and_one_as_an_exact_pass(
    lecture,
):
    picture = lecture.page.locator("svg", has_text="exact: one layer after the other")
    for share, lp, told in ((1, 8, "1.83× as fast"), (0, 1, "1.00× as fast")):
        drag(lecture, "N (layers at once)", share, f"fuzzy: N = {lp}, ", picture)
        assert told in picture.text_content()
        own = picture.locator("rect[class=attention]").count()
        assert own == 32 + 32  # of the exact pass, and of the fuzzy one on all devices


@lectures("50_easyspec")
def test_a_rounds_tree_follows_its_slider_and_has_one_way(lecture):
    picture = lecture.page.locator("svg", has_text="the target follows it for")
    for share in (1, 0):
        drag(lecture, "round", share, "levels, ", picture)
        ways = picture.locator('path[stroke-width="2.5"]').count()
        assert f"follows it for {ways} of" in picture.text_content()


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """The folder that the quick, virtual version leaves: all of PEARL, of DSI the
    ``SHOWN`` alone, which take seconds.
    """
    home = tmp_path_factory.mktemp("home")
    for place in ("data", "data/papers", "notebooks", "notebooks/reproduce"):
        (home / place).mkdir()
        for inside in (ROOT / place).iterdir():
            if inside.name not in ("papers", "reproduce", "dsi", "dsi.ipynb"):
                (home / place / inside.name).symlink_to(inside)
    (home / "data/papers/dsi").mkdir()
    for name in ("paper", *SHOWN):
        file = f"data/papers/dsi/{name}.toml"
        (home / file).symlink_to(ROOT / file)
    book = late.nbformat.read(ROOT / "notebooks/reproduce/dsi.ipynb", as_version=4)
    book.cells = [
        c
        for c in book.cells
        if not c.source.startswith(('dsi.show("', 'dsi.chart("'))
        or c.source.split('"')[1] in SHOWN
    ]
    late.nbformat.write(book, home / "notebooks/reproduce/dsi.ipynb")
    subprocess.run(
        [sys.executable, *REPRODUCE],
        env=os.environ | {"SPECLIB_HOME": str(home)},
        check=True,
    )
    return home / "reports"


@pytest.fixture
def offline(browser):
    """A page without a network, where every wish for one is an error."""
    page, errors = new_page(browser, offline=True)
    page.route(
        re.compile("^(?!file:)"), lambda r: (errors.append(r.request.url), r.abort())
    )
    yield page
    page.close()
    assert not errors


@pytest.mark.parametrize("paper, width", [("pearl", 1400), ("dsi", 1400), ("dsi", 800)])
def test_the_report_draws_every_chart_and_timeline_offline(
    reports, offline, paper, width, tmp_path
):
    notebook = late.nbformat.read(reports / f"{paper}.ipynb", as_version=4)
    source = "\n".join(c.source for c in notebook.cells if c.cell_type == "code")
    offline.set_viewport_size({"width": width, "height": 1000})
    offline.goto((reports / f"{paper}.html").as_uri())
    offline.screenshot(path=tmp_path / "report.png", full_page=True)
    drawn = offline.locator(
        ".plotly-chart:has(.main-svg :is(.trace, .bars, .point, .hm) path, "
        ".main-svg .hm image)"
    )
    assert drawn.count() == source.count(f"{paper}.chart(") > 0
    wide = offline.locator("img[alt^=timeline]").evaluate_all(
        "a => a.map(i => i.naturalWidth)"
    )
    assert (
        len(wide) == source.count(f"{paper}.timeline(")
        and min(wide, default=1001) > 1000
    )
    assert offline.evaluate("document.documentElement.scrollWidth") <= width


def test_titles_of_the_heatmaps_panels_do_not_overlap_on_a_narrow_page(
    reports, offline
):
    offline.set_viewport_size({"width": 800, "height": 1000})
    offline.goto((reports / "dsi.html").as_uri())
    chart = offline.locator(".plotly-chart:has(.hm)")
    boxes = chart.locator(".annotation-text").evaluate_all(
        """all => all.map(t => t.getBoundingClientRect())
        .map(b => [b.left, b.right, b.top, b.bottom])"""
    )
    assert len(boxes) == 5  # (a) to (c), the code's, the difference
    assert not [
        (a, b)
        for i, a in enumerate(boxes)
        for b in boxes[:i]
        if a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]
    ]


def test_every_link_of_the_pages_leads_to_a_place_that_exists(reports, offline):
    for name in ("index.html", "pearl.html", "dsi.html"):
        offline.goto((reports / name).as_uri())
        links = [
            urlsplit(u)
            for u in offline.locator("a").evaluate_all("a => a.map(a => a.href)")
        ]
        assert links and {link.scheme for link in links} == {"file"}
        assert not [u for u in links if not Path(unquote(u.path)).is_file()]
        inside = {u.fragment for u in links if u.fragment}
        assert inside <= set(
            offline.locator("[id]").evaluate_all("a => a.map(a => a.id)")
        )
    offline.get_by_role("link", name="All reports", exact=True).click()
    offline.get_by_role("link", name="pearl.html", exact=True).click()
    assert offline.locator("h1").first.text_content().startswith("PEARL")
