"""A browser for the tests of pages: real, and without a network."""

from __future__ import annotations

import re

import pytest
from helpers.browser import FLAGS, chromium, new_page


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no playwright here: make setup"
    )
    path = chromium()
    with playwright.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=path, args=FLAGS)


@pytest.fixture
def offline(browser):
    """A page without a network; every request to one is an error."""
    page, errors = new_page(browser, offline=True)

    def refuse(route) -> None:
        errors.append(route.request.url)
        route.abort()

    page.route(re.compile("^(?!file:)"), refuse)
    yield page
    page.close()
    assert not errors
