"""The pages of the lessons, under ``reports/lessons``: made of what notebooks store.

Nothing is run for them.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from speclib import paths
from speclib.atomic_files import write_atomically
from speclib.errors import SpeclibError

if TYPE_CHECKING:
    from speclab.views.pages.lessons_page import Lesson

FOLDER = "lessons"  # in reports/
LECTURERS = "lecturers.html"  # the page for lecturers, in that folder
# Reports to which a lesson may lead, where they are there. The index is made later.
REPORTS = ("ledger.csv", "claims.csv", "bench.csv")


def write_lesson_pages() -> dict[str, str]:
    """Writes the page of every lesson, and that for lecturers; returns what failed.

    Does nothing without lessons. A page that fails is left out.
    """
    from .notebooks import in_words

    failed = {}
    sources = _sources()
    addresses = _addresses(sources)
    for source, page in sources.items():
        try:
            write_atomically(page, _page_of(source, addresses))
        except Exception as error:  # all other pages are written
            page.unlink(missing_ok=True)
            failed[source.name] = in_words(error)
    return failed


def list_lessons() -> list[Lesson]:
    """What the index says of the lessons that have a page, in their order.

    A lesson that was damaged since its page was made is left out.
    """
    from speclab.views.pages.lessons_page import describe_lesson

    lessons = []
    for source, page in _sources().items():
        if source.suffix == ".ipynb" and page.is_file():
            address = f"{FOLDER}/{page.name}"
            with contextlib.suppress(SpeclibError, OSError, ValueError, LookupError):
                lesson = describe_lesson(source.read_text("utf-8"), address)
                lessons.append(lesson)
    return lessons


def lecturers_address() -> str:
    """Where the page for lecturers is, seen from the index; empty without one."""
    page = paths.REPORTS / FOLDER / LECTURERS
    return f"{FOLDER}/{LECTURERS}" if page.is_file() else ""


def _sources() -> dict[Path, Path]:
    """The lessons and the text for lecturers, each with its page."""
    notebooks = paths.ROOT / "notebooks"
    pages = paths.REPORTS / FOLDER
    sources = {}
    for notebook in sorted((notebooks / "learn").glob("*.ipynb")):
        sources[notebook] = pages / f"{notebook.stem}.html"
    text = notebooks / "LECTURERS.md"
    if text.is_file():
        sources[text] = pages / LECTURERS
    return sources


def _page_of(source: Path, addresses: dict[str, str]) -> str:
    """The HTML of a lesson, or of the text for lecturers."""
    from speclab.views.pages.lessons_page import describe_lesson, lesson_page, text_page

    from .races import races_of_lesson

    text = source.read_text("utf-8")
    folder = source.parent.relative_to(paths.ROOT).as_posix()
    if source.suffix == ".md":
        return text_page(text, "For lecturers", folder, addresses)
    title = describe_lesson(text, source.name).title
    races = races_of_lesson(source.stem)
    return lesson_page(text, title, folder, addresses, races)


def _addresses(sources: dict[Path, Path]) -> dict[str, str]:
    """Where the pages of files are, seen from a lesson, by the file's path.

    Lessons also call each other by the name of the file alone.
    """
    addresses = {"reports/index.html": "../index.html"}
    for source, page in sources.items():
        addresses[source.relative_to(paths.ROOT).as_posix()] = page.name
        addresses[source.name] = page.name
    for report in _reports_to_link_to():
        if report.suffix == ".html":
            notebook = f"notebooks/reproduce/{report.stem}.ipynb"
            addresses[notebook] = f"../{report.name}"
        addresses[f"reports/{report.name}"] = f"../{report.name}"
    return addresses


def _reports_to_link_to() -> list[Path]:
    """The reports that are there: pages made of notebooks, and tables of numbers."""
    notebooks = sorted((paths.ROOT / "notebooks" / "reproduce").glob("*.ipynb"))
    names = [f"{notebook.stem}.html" for notebook in notebooks]
    reports = [paths.REPORTS / name for name in (*names, *REPORTS)]
    return [report for report in reports if report.is_file()]
