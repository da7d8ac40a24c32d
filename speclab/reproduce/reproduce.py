"""``make reproduce``: measures as long as a budget lasts, then writes all reports.

Measuring leaves rows, and reports are made of rows: the two know nothing of each other,
and this file calls the one and then the other. Whatever ends a measurement, time or an
interrupt, reports are written of what there is.
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
PAGES_SECONDS = 120.0  # of the budget, that the pages take on two cores
QUICK_PAGES_SECONDS = 90.0  # without the audit's page
RUNNERS = ("papermill", "nbconvert", "ipykernel")  # what running a notebook takes


@dataclass
class Outcome:
    """What a call did.

    failed       why, by the name of the cell or of the notebook that failed
    interrupted  whether an interrupt ended it; reports were written nevertheless
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
    """Measures for so many minutes at most, and writes reports.

    only     papers that are measured, and whose pages are made; all without it
    minutes  0 measures nothing: the reports are made of the rows that are there
    quick    the main tables alone; the audit's page stays as it is

    Raises SpeclibError for an unknown paper. Cells that fail are in the outcome, and
    everything else is written.
    """
    if not 0 <= minutes < float("inf"):
        raise BadValue(f"minutes is {minutes:g}: give a number of minutes from 0 on")
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
                say("\ninterrupted: writing the reports of what there is")
        outcome.failed |= {spec.name: why for spec, why in errors.items()}
        outcome.failed |= write_reports(papers, errors, say, quick)
    return outcome


def choose_papers(only: Iterable[str] = ()) -> list[Paper]:
    """The papers that have a folder of tables, by their place; or ``only`` some."""
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
    """Computes the virtual numbers that are not committed; returns what failed."""
    from .compute_virtual import compute_virtual, missing_cells

    missing = missing_cells(papers)
    if missing:
        say(f"{len(missing)} cells of the virtual clock are not in data/virtual.csv")
    return compute_virtual(papers)


# -- reports ---------------------------------------------------------------------------
def write_reports(
    papers: Iterable[Paper], errors: Mapping[Spec, str], say: Say, quick: bool = False
) -> dict[str, str]:
    """Writes tables, pages and the index; returns why some failed.

    Unless ``quick``, the page of the audit, too.
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
    """What running a notebook takes and is not installed."""
    return [tool for tool in RUNNERS if find_spec(tool) is None]


def _make_pages(books: Mapping[str, Book], say: Say) -> Iterator[tuple[str, str]]:
    """Runs the papers' notebooks, one per core, and writes their pages.

    Gives the notebook and the reason of each that failed. Without what running one
    takes there is no page, and nothing fails.
    """
    from . import publish
    from .notebooks import NotebookToRun, notebook_of, run_notebooks

    missing = _missing_runners()
    if missing:
        names = ", ".join(missing)
        say(f"{names} not installed: no pages. {how_to_install('notebooks')}")
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
