"""Chromium, and the errors that its pages report."""

from __future__ import annotations

from shutil import which

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
)
PHONE = {"width": 390, "height": 844}
PAGE_WIDTH = "document.documentElement.scrollWidth"
# Elements that reach beyond the right edge of the screen, outside any scrolling box.
WIDER_THAN_SCREEN = """() => [...document.querySelectorAll("body *")].filter((node) => {
  if (node.getBoundingClientRect().right <= innerWidth + 1) return false;
  for (let box = node.parentElement; box; box = box.parentElement) {
    const { overflowX } = getComputedStyle(box);
    if (["auto", "scroll", "hidden"].includes(overflowX)) return false;
  }
  return true;
}).map((node) => node.outerHTML.slice(0, 120))"""
PATIENCE = 120_000  # milliseconds: a machine may be slow


def chromium() -> str:
    """The path of Chromium; skips the test if it is not installed."""
    for name in NAMES:
        path = which(name)
        if path:
            return path
    pytest.skip("no Chromium here: apt-get install chromium")


def new_page(browser, **options) -> tuple:
    """Opens a page; also returns a list that collects its script and console errors."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000}, **options)
    page.set_default_timeout(PATIENCE)
    errors: list[str] = []

    def note_message(message) -> None:
        if message.type == "error":
            errors.append(message.text)

    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", note_message)
    return page, errors
