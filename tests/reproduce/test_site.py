"""The site, as its reader finds it: whole, from the disk, without a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from helpers.browser import PAGE_WIDTH, PHONE

from speclab.reproduce.moving import RACES, moving_picture
from speclab.reproduce.site import MARK, build_site
from speclib.errors import BadValue

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted(path.stem for path in ROOT.glob("notebooks/learn/*.ipynb"))
ALPHA_1 = (
    "slider => { slider.value = slider.max; slider.dispatchEvent(new Event('input')); }"
)


class Addresses(HTMLParser):
    """What a page names as its anchors, leads to, and loads."""

    def __init__(self, page: Path):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values.get("id"), values.get("name")}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        is_loaded = tag == "link" and values.get("rel") in ("stylesheet", "preload")
        if values.get("src") or is_loaded:
            self.loaded.append(values.get("src") or values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    pytest.importorskip("sphinx", reason="no Sphinx here: make setup")
    return build_site(tmp_path_factory.mktemp("site") / "site", api=False)


@pytest.mark.thorough
def test_every_lesson_report_and_page_of_the_manual_is_there(site):
    for lesson in LESSONS:
        assert (site / f"notebooks/learn/{lesson}.html").is_file()
    for folder in ("docs", "reports"):
        for page in (ROOT / folder).glob("*.md"):
            assert (site / folder / f"{page.stem}.html").is_file()
    assert (site / "index.html").is_file()
    assert (site / "search.html").is_file()


@pytest.mark.thorough
def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site):
    pages = {page: Addresses(page) for page in site.rglob("*.html")}
    for page, addresses in pages.items():
        for address in addresses.loaded:
            assert urlsplit(address).scheme in ("", "data"), (page, address)
        for address in addresses.links:
            link = urlsplit(address)
            if link.scheme:
                continue
            target = (page.parent / unquote(link.path)).resolve() if link.path else page
            assert target.exists(), (page, address)
            if link.fragment and target in pages:
                assert unquote(link.fragment) in pages[target].anchors, (page, address)
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import )[\"']?https?:", style.read_text("utf-8"))


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    pytest.importorskip("sphinx", reason="no Sphinx here: make setup")
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(BadValue, match="is no site"):
        build_site(tmp_path)
    assert not (tmp_path / MARK).exists()


@pytest.mark.browser
@pytest.mark.parametrize("name", RACES)
@pytest.mark.parametrize("size", [{"width": 1400, "height": 900}, PHONE])
def test_the_picture_moves_without_python(name, size, tmp_path, offline):
    page = tmp_path / "page.html"
    page.write_text(f"<meta charset=utf-8>{moving_picture(RACES[name])}")
    offline.set_viewport_size(size)
    offline.goto(page.as_uri())
    runs = offline.locator("#moving svg").first
    runs.wait_for()
    before = runs.inner_html()
    offline.locator("#moving input").evaluate(ALPHA_1)
    assert offline.locator("#moving output").inner_text() == "1"
    assert offline.locator("#moving svg").first.inner_html() != before
    assert offline.evaluate(PAGE_WIDTH) <= size["width"]
    offline.get_by_role("button", name="Play").click()
    told = offline.locator("#moving").inner_text()
    offline.wait_for_function(
        "told => document.getElementById('moving').innerText !== told", arg=told
    )
