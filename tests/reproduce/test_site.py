"""The site as its reader sees it: complete, from disk, without a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from helpers.browser import PHONE, WIDER_THAN_SCREEN

from speclab.reproduce.race import WIDTH
from speclab.reproduce.site import MARK, build_site
from speclib.errors import BadValue

ROOT = Path(__file__).resolve().parents[2]
of_site = pytest.mark.xdist_group("site")
NOTHING_ACCEPTED = re.compile(r"(?<!\d)0 of [1-9]\d* tested accepted")
ALL_ACCEPTED = re.compile(r"(?<!\d)(\d+) of \1 tested accepted")


class Addresses(HTMLParser):
    """A page's anchors, its links, and the addresses that it loads."""

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


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    pytest.importorskip("sphinx", reason="no Sphinx here: make setup")
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(BadValue, match="not a site"):
        build_site(tmp_path)
    assert not (tmp_path / MARK).exists()


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site without its API, whose pages are most of the work."""
    pytest.importorskip("sphinx", reason="no Sphinx here: make setup")
    return build_site(tmp_path_factory.mktemp("site") / "site", api=False)


@of_site
@pytest.mark.browser
def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site):
    pages = {page: Addresses(page) for page in site.rglob("*.html")}
    names = {page.relative_to(site).as_posix() for page in pages}
    for pattern in (
        "docs/*.md",
        "reports/*.md",
        "reports/pearl/*.md",
        "notebooks/learn/*.ipynb",
    ):
        for source in ROOT.glob(pattern):
            page = source.relative_to(ROOT).with_suffix(".html")
            assert page.as_posix() in names
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


@of_site
@pytest.mark.browser
def test_a_race_moves_without_python_and_a_lessons_text_sets_its_slider(site, offline):
    offline.goto((site / "notebooks/learn/00_start_here.html").as_uri())
    race = offline.locator("#race")
    picture = race.locator("svg").first
    slider = race.locator("input[type=range]")
    slider.fill("0")
    assert NOTHING_ACCEPTED.search(picture.text_content())
    slider.fill(slider.get_attribute("max"))
    assert ALL_ACCEPTED.search(picture.text_content())
    offline.get_by_role("button", name="0.45", exact=True).click()
    assert race.locator("output").text_content() == "0.45"

    written = race.locator(".speclib-text code").last
    race.get_by_role("button", name="Step ▶").click()
    after_one = written.text_content()
    race.locator(".speclib-timeline").focus()
    offline.keyboard.press("ArrowRight")
    assert len(written.text_content()) > len(after_one)
    race.get_by_role("button", name="▶ Play").click()
    race.get_by_role("button", name="❚❚ Pause").wait_for()
    race.get_by_role("button", name="▶ Play").wait_for(timeout=30_000)
    assert len(set(race.locator(".speclib-text code").all_text_contents())) == 1


@of_site
@pytest.mark.browser
def test_pages_fit_on_a_phone_and_the_search_finds_them(site, offline):
    offline.set_viewport_size(PHONE)
    for page in ("notebooks/learn/20_pearl", "docs/use", "reports/ssd", "index"):
        offline.goto((site / f"{page}.html").as_uri())
        assert not offline.evaluate(WIDER_THAN_SCREEN)
    picture = offline.locator("#race svg").first
    assert picture.bounding_box()["width"] == WIDTH  # it scrolls, and is not shrunk
    offline.goto((site / "search.html").as_uri() + "?q=DuoDecoding")
    offline.locator("#search-results").get_by_role(
        "link", name="several guesses at once"
    ).wait_for()
