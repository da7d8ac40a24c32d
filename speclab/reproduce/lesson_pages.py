"""The pages of the lessons, under ``reports/lessons``: made of what notebooks store.

Nothing is run for them. They are made again when a lesson, the code of pages, or the
set of reports to which they lead has changed.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from speclab.experiment import cache_keys
from speclib import machine, paths
from speclib.atomic_files import write_atomically
from speclib.errors import SpeclibError

if TYPE_CHECKING:
    from speclab.views.pages.lessons_page import Lesson

FOLDER = "lessons"  # in reports/
LECTURERS = "lecturers.html"  # the page for lecturers, in that folder
# Reports to which a lesson may lead, where they are there. The index is made later.
REPORTS = ("ledger.csv", "claims.csv", "bench.csv")
STAMP = "lesson-pages.json"


@dataclass
class LessonPages:
    """What a call did: whether pages were made anew, and which failed and why."""

    has_written: bool = False
    failed: dict[str, str] = field(default_factory=dict)


def write_lesson_pages() -> LessonPages:
    """Writes the page of every lesson, and that for lecturers, if any is stale.

    Does nothing without lessons, or without nbconvert, which renders their texts. A
    page that fails is left out.
    """
    outcome = LessonPages()
    if find_spec("nbconvert") is None:
        return outcome
    sources = _sources()
    inputs = _hash_of_inputs(sources)
    if not sources or _is_current(inputs, sources):
        return outcome

    from .notebooks import in_words

    addresses = _addresses(sources)
    for source, page in sources.items():
        try:
            write_atomically(page, _page_of(source, addresses))
        except Exception as error:  # all other pages are written
            page.unlink(missing_ok=True)
            outcome.failed[source.name] = in_words(error)
    if not outcome.failed:
        write_atomically(_stamp_file(), json.dumps({"inputs": inputs}))
    outcome.has_written = True
    return outcome


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

    from .runs_for_pages import places_of_lesson

    text = source.read_text("utf-8")
    folder = source.parent.relative_to(paths.ROOT).as_posix()
    if source.suffix == ".md":
        return text_page(text, "For lecturers", folder, addresses)
    title = describe_lesson(text, source.name).title
    moving = places_of_lesson(source.stem)
    return lesson_page(text, title, folder, addresses, moving)


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


# -- whether they are up to date -------------------------------------------------------
def _hash_of_inputs(sources: dict[Path, Path]) -> str:
    """A hash of the sources, the code of pages and of their runs, and what they may
    lead to."""
    code = [Path(__file__), Path(__file__).with_name("runs_for_pages.py")]
    for folder in ("speclib", "speclab/views", "speclab/theory"):
        for pattern in ("*.py", "*.css", "*.html", "*.js"):
            code += sorted((cache_keys.FOLDER / folder).rglob(pattern))
    return cache_keys.digest(
        cache_keys.hash_of_files(*sources, *code),
        machine.version_of("nbconvert"),
        [report.name for report in _reports_to_link_to()],
    )


def _is_current(inputs: str, sources: dict[Path, Path]) -> bool:
    try:
        stamp = json.loads(_stamp_file().read_text("utf-8"))
    except (OSError, ValueError):
        return False
    is_same_input = isinstance(stamp, dict) and stamp.get("inputs") == inputs
    return is_same_input and all(page.is_file() for page in sources.values())


def _stamp_file() -> Path:
    return paths.CACHE / "reports" / STAMP
