"""The site: it opens from a folder, every link leads somewhere, no network is asked.

It is made once, of what is committed. Where pdoc is installed, the API is among it.
"""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from helpers.browser import PHONE, check_letters_and_width

from speclab.reproduce import site as site_module
from speclab.reproduce.races import FRONT, choose_draw, simulate
from speclab.reproduce.site import MOST_BYTES, build_site, size_of
from speclab.views.pages.site import docstring_html, dressed
from speclib import SpeclibError, paths
from speclib.drawing.timeline.run import timeline_run
from speclib.drawing.timeline.sayings import speedup_as_drawn

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]

# What a browser loads by itself, and where the address stands.
LOADED = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
    "image": "href",
    "use": "href",
}
FROM_OUTSIDE = re.compile(r"(https?:)?//")
SOON = 2000  # milliseconds


class References(HTMLParser):
    """The anchors of a page, where its links lead, and what it loads."""

    def __init__(self, html: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.anchors.add(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if LOADED.get(tag, "") in values:
            self.loaded.append(values[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    return build_site(tmp_path_factory.mktemp("home") / "site").folder


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, References]:
    """Every page of the site, with what it refers to."""
    return {path: References(path.read_text("utf-8")) for path in site.rglob("*.html")}


def test_every_link_leads_to_a_file_and_to_an_anchor_in_it(site, pages):
    dead = []
    links = 0
    for path, references in pages.items():
        for link in references.links:
            if link.startswith(("https://", "http://")):
                continue  # in a text, a link may lead anywhere
            links += 1
            file, _, anchor = unquote(link).partition("#")
            target = (path.parent / file).resolve() if file else path
            is_there = target.is_file()
            if is_there and anchor:
                is_there = anchor in pages[target].anchors
            if not is_there:
                dead.append((path.relative_to(site).as_posix(), link))
    assert not dead
    assert links > 500


def test_nothing_is_loaded_from_elsewhere(site, pages):
    for path, references in pages.items():
        for address in references.loaded:
            assert not FROM_OUTSIDE.match(address), (path, address)
            if not address.startswith("data:"):
                assert (path.parent / address).is_file(), (path, address)
        html = path.read_text("utf-8")
        for style in re.findall(r"<style>(.*?)</style>", html, re.S):
            assert "@import" not in style
            assert not re.search(r"url\(\s*['\"]?(https?:)?//", style)


def test_no_page_names_the_folder_in_which_it_was_made(site, pages):
    for path in pages:
        assert str(paths.ROOT) not in path.read_text("utf-8"), path


def test_lessons_texts_and_reports_each_have_a_page(site, pages):
    names = {path.relative_to(site).as_posix() for path in pages}
    for folder, pattern, part in (
        ("notebooks/learn", "*.ipynb", "lessons"),
        ("docs", "*.md", "manual"),
        ("reports", "*.md", "reports"),
    ):
        stems = [path.stem for path in (paths.ROOT / folder).glob(pattern)]
        assert stems
        assert {f"{part}/{stem}.html" for stem in stems} <= names
    assert {"index.html", "lessons/index.html", "manual/index.html"} <= names


def test_every_page_has_the_bar_and_says_in_which_part_it_is(site, pages):
    for path in pages:
        html = path.read_text("utf-8")
        assert html.count('<header class="site">') == 1
        assert ">All reports</a>" not in html
        if path != site / "index.html":
            assert html.count('aria-current="true"') == 1, path


def test_the_site_is_smaller_than_it_may_be(site):
    assert size_of(site) == sum(
        path.stat().st_size for path in site.rglob("*") if path.is_file()
    )
    assert size_of(site) < MOST_BYTES == 25_000_000


def test_a_site_that_is_too_large_is_an_error_and_the_one_before_stays(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(site_module, "_pages", lambda _: [("index.html", "<p>first")])
    monkeypatch.setattr(site_module, "_copy_data", lambda _: None)
    build_site(tmp_path / "site", api=False)
    monkeypatch.setattr(site_module, "_pages", lambda _: [("index.html", "second")])
    monkeypatch.setattr(site_module, "MOST_BYTES", 5)
    with pytest.raises(SpeclibError, match="is the most .* index.html"):
        build_site(tmp_path / "site", api=False)
    assert "first" in (tmp_path / "site" / "index.html").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(SpeclibError, match="is no site of speclib"):
        build_site(tmp_path, api=False)
    assert (tmp_path / "thesis.tex").is_file()


def test_every_exercise_says_how_it_is_run(site):
    exercises = 0
    for notebook in (paths.ROOT / "notebooks" / "learn").glob("*.ipynb"):
        cells = json.loads(notebook.read_text("utf-8"))["cells"]
        sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        checks = [source for source in sources if "teach.check_" in source]
        html = (site / "lessons" / f"{notebook.stem}.html").read_text("utf-8")
        assert html.count('<p class="run-it">') == len(checks)
        exercises += len(checks)
    assert exercises >= 25


def test_all_committed_claims_stand_in_the_report(site):
    with (paths.ROOT / "reports" / "claims.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    claims = {(row["paper"], row["item"], row["claim"]) for row in rows}
    claims = {claim for claim in claims if not claim[2].endswith("@same-devices")}
    html = (site / "reports" / "index.html").read_text("utf-8")
    shown = len(re.findall(r'<tr id="[^"]+" data-paper=', html))
    assert shown == len(claims)
    assert f"{shown} claims" in (site / "index.html").read_text("utf-8")


def test_a_docstring_keeps_the_lines_that_stand_in_columns():
    paragraphs = (
        "What it ``does`` & why::",
        "    a picture",
        "a     the first\nlong  other",
        "- x\n  y",
    )
    html = docstring_html("\n\n".join(paragraphs))
    assert "<code>does</code> &amp; why:</p>" in html
    assert "<pre>    a picture</pre>" in html
    assert "<pre>a     the first\nlong  other</pre>" in html
    assert "<li>x\ny</li>" in html


def test_the_frame_of_a_page_in_a_folder_leads_up():
    parts = [site_module.Part("Manual", "manual/index.html")]
    page = "<head></head><body><main>x</main></body>"
    html = dressed(page, "manual/more/page.html", parts)
    assert 'href="../../index.html"' in html
    assert '<a href="../index.html" aria-current="true">Manual</a>' in html


def test_the_api_has_every_room_and_what_the_docstrings_say(site):
    pytest.importorskip("pdoc", reason="no pdoc here: make setup")
    methods = (site / "api" / "speclib.methods.html").read_text("utf-8")
    assert 'id="speclib.methods.pearl.pearl"' in methods
    assert "def pearl" in methods
    face = (site / "api" / "speclib.html").read_text("utf-8")
    assert 'id="speclib.decode"' in face
    rooms = [
        path.parent.name for path in (paths.ROOT / "speclib").glob("*/__init__.py")
    ]
    for room in rooms:
        assert (site / "api" / f"speclib.{room}.html").is_file()
    for path in (site / "api").glob("*.html"):
        anchors = re.findall(r' id="([^"]+)"', path.read_text("utf-8"))
        assert len(anchors) == len(set(anchors)), path


# -- in a browser ----------------------------------------------------------------------
# These ask for nothing but the disk: see the fixture ``offline``.
WHEN_SEEN = "performance.getEntriesByName('picture')[0].startTime"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


def open_page(page, path: Path) -> None:
    page.goto(path.as_uri())
    for figure in page.locator(".race").all():
        figure.and_(page.locator("[data-ready]")).wait_for()


def brightness(colour: str) -> float:
    """Of a colour as browsers write it, between 0 and 1."""
    red, green, blue = (int(part) for part in re.findall(r"\d+", colour)[:3])
    return (red + green + blue) / (3 * 255)


@pytest.mark.browser
def test_the_front_page_shows_its_picture_soon_and_keys_move_it(site, offline):
    seconds = []
    for _ in range(3):  # the page's own time, at the quietest moment of three
        open_page(offline, site / "index.html")
        seconds.append(offline.evaluate(WHEN_SEEN))
    assert min(seconds) < SOON

    offline.keyboard.press("Tab")
    assert offline.evaluate("document.activeElement.className") == "skip"
    race = offline.locator("#race")
    slider = race.locator("input[type=range]").first
    for _ in range(30):
        offline.keyboard.press("Tab")
        if slider.evaluate("node => node === document.activeElement"):
            break
    offline.keyboard.press("ArrowRight")
    results = simulate(FRONT, (0.9, 5.0), choose_draw(FRONT, 0.9))
    runs = [timeline_run(result) for result in results]
    expected = f"{speedup_as_drawn(runs[-1], runs):.2f}× plain"
    assert expected in race.locator("svg").first.text_content()

    doors = offline.locator(".doors a b").all_text_contents()
    assert doors == ["Teach", "Study", "Research"]


ONE_OF_EACH_KIND = (
    "index.html",
    "lessons/index.html",
    "lessons/30_dsi.html",
    "reports/index.html",
    "reports/dsi.html",
    "reports/audit.html",
    "manual/index.html",
    "manual/teach.html",
    "manual/decisions.html",
    "api/index.html",
    "api/speclib.core.html",
)


@pytest.mark.browser
def test_pages_of_each_kind_fit_on_a_phone_in_the_dark_and_on_paper(site, offline):
    offline.set_viewport_size(PHONE)
    for name in ONE_OF_EACH_KIND:
        if not (site / name).is_file():
            continue  # the API, where there is no pdoc
        offline.emulate_media(media="screen", color_scheme="light")
        open_page(offline, site / name)
        check_letters_and_width(offline)
        assert brightness(offline.evaluate(BACKGROUND)) > 0.9
        offline.emulate_media(color_scheme="dark")
        assert brightness(offline.evaluate(BACKGROUND)) < 0.2
        assert offline.locator("header.site").is_visible()
        offline.emulate_media(media="print")
        assert not offline.locator("header.site").is_visible()
