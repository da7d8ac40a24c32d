"""``make reproduce``: measures until the time budget is used, then writes all reports.

Measuring writes rows, and reports are made from rows. The two are independent; this
module runs one and then the other. If time runs out, or after an interrupt, the reports
are written from the rows that exist.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from speclib import paths
from speclib.errors import BadValue, SpeclibError, how_to_install, unknown_name

from .measuring import Say, measure_papers, print_at_once
from .one_at_a_time import one_at_a_time

if TYPE_CHECKING:
    from speclab.papers.paper_schema import Paper
    from speclab.runs.spec import Spec

    from .book import Book

DEFAULT_MINUTES = 20.0
QUICK_MINUTES = 5.0
FULL_MINUTES = 60.0
PAGES_SECONDS = 120.0  # the part of the budget reserved for the pages, on two cores
QUICK_PAGES_SECONDS = 90.0  # the same, but without the audit's page
RUNNERS = ("papermill", "nbconvert", "ipykernel")  # packages for running a notebook


@dataclass
class Outcome:
    """The outcome of ``reproduce``.

    failed       the reason for each cell or notebook that failed, by its name
    interrupted  whether an interrupt ended it; reports were written anyway
    """

    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


def reproduce(
    only: Iterable[str] = (),
    *,
    minutes: float = DEFAULT_MINUTES,
    quick: bool = False,
    say: Say = print_at_once,
) -> Outcome:
    """Measures for at most ``minutes``, and writes reports.

    only     the papers to measure, and to write pages for; if empty, all papers
    minutes  if 0, nothing is measured, and the reports are made from existing rows
    quick    measure only the main tables, and do not rewrite the audit's page

    Raises SpeclibError for an unknown paper. The outcome lists failed cells; everything
    else is written anyway.
    """
    if not 0 <= minutes < float("inf"):
        raise BadValue(f"minutes is {minutes:g}: give a number of minutes, at least 0")
    papers = choose_papers(only)
    started = time.monotonic()
    outcome = Outcome()
    with one_at_a_time(say):
        outcome.failed |= complete_virtual(papers, say)
        errors: dict[Spec, str] = {}
        if minutes:
            pages = QUICK_PAGES_SECONDS if quick else PAGES_SECONDS
            deadline = started + max(0.0, 60 * minutes - pages)
            try:
                errors = measure_papers(papers, deadline, quick, say)
            except KeyboardInterrupt:
                outcome.interrupted = True
                say("\ninterrupted: writing the reports from existing rows")
        outcome.failed |= {spec.name: why for spec, why in errors.items()}
        outcome.failed |= write_reports(papers, errors, say, quick)
    return outcome


def choose_papers(only: Iterable[str] = ()) -> list[Paper]:
    """The papers named in ``only``, or if it is empty, all papers; in a fixed order."""
    from speclab.papers.load_papers import load_paper

    papers = [load_paper(path.parent.name) for path in all_paper_files()]
    papers.sort(key=lambda paper: int(paper.facts.get("place", len(papers))))
    known = {paper.key: paper for paper in papers}
    chosen = list(only) or list(known)
    for key in chosen:
        if key not in known:
            folder = paths.DATA / "papers"
            raise unknown_name(f"no paper {key!r} under {folder}", key, known)
    return [paper for key, paper in known.items() if key in chosen]


def all_paper_files() -> list[Path]:
    return sorted(paths.DATA.glob("papers/*/paper.toml"))


def complete_virtual(papers: Iterable[Paper], say: Say) -> dict[str, str]:
    """Computes the virtual numbers that are not committed; returns why cells failed."""
    from .compute_virtual import compute_virtual, missing_cells

    missing = missing_cells(papers)
    if missing:
        say(f"computing {len(missing)} virtual cells missing from data/virtual.csv")
    return compute_virtual(papers)


# -- reports ---------------------------------------------------------------------------
def write_reports(
    papers: Iterable[Paper], errors: Mapping[Spec, str], say: Say, quick: bool = False
) -> dict[str, str]:
    """Writes tables, pages and the index; returns why some notebooks failed.

    Unless ``quick``, writes the audit's page, too.
    """
    from . import publish
    from .audit_page import make_audit_page
    from .book import Book
    from .real_model import write_real_model

    books = {paper.key: Book(paper.key, errors=errors) for paper in choose_papers()}
    publish.write_tables(books.values())
    write_real_model()
    failed: dict[str, str] = {}
    for book in books.values():
        publish.write_front_figure(book)
    wanted = [paper.key for paper in papers]
    failed |= dict(_make_pages({key: books[key] for key in wanted}, say))
    if not quick and not _missing_runners():
        make_audit_page()
    publish.write_index_page(books.values())
    return failed


def _missing_runners() -> list[str]:
    """Which packages for running notebooks are missing."""
    return [tool for tool in RUNNERS if find_spec(tool) is None]


def _make_pages(books: Mapping[str, Book], say: Say) -> Iterator[tuple[str, str]]:
    """Runs the papers' notebooks, one per core, and writes their pages.

    Yields each notebook that failed, with the reason. If packages for running notebooks
    are missing, says so and writes no pages.
    """
    from . import publish
    from .notebooks import NotebookToRun, notebook_of, run_notebooks

    missing = _missing_runners()
    if missing:
        names = ", ".join(missing)
        say(f"no pages without {names}. {how_to_install('notebooks')}")
        return
    to_run = []
    for key in books:
        notebook = notebook_of(key)
        if notebook.is_file():
            say(f"{key}: running {notebook.relative_to(paths.ROOT)}")
            out = paths.REPORTS / f"{key}.ipynb"
            to_run.append(NotebookToRun(key, notebook, out, {"paper": key}))
    for key, reason in run_notebooks(to_run):
        if reason is None:
            try:
                publish.write_page(books[key], paths.REPORTS / f"{key}.ipynb")
            except (SpeclibError, OSError, ValueError) as error:
                reason = str(error)
        if reason is not None:
            yield notebook_of(key).name, reason
