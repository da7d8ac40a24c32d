"""``make reproduce``: tables filled, the ledger written, notebooks run, pages made.

What is up to date is left alone: first by one hash over everything that a paper's
reports depend on, then cell by cell through the cache. Files are replaced whole or not
at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from speclib import paths
from speclib.atomic_files import remove_leftovers
from speclib.errors import SpeclibError, unknown_name
from speclib.experiment import cache

from . import freshness

if TYPE_CHECKING:
    from .book import Book

RUNNERS = ("papermill", "nbconvert", "ipykernel")  # what running a notebook takes

Say = Callable[[str], None]  # where progress is told


def print_at_once(text: str) -> None:
    """Prints a line that a log shows without delay."""
    print(text, flush=True)


@dataclass
class Outcome:
    """What a call did.

    ``done`` are the papers that were regenerated, ``current`` those left alone,
    ``failed`` the reasons by the name of the cell that failed.
    """

    done: list[str] = field(default_factory=list)
    current: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def reproduce(
    only: Iterable[str] = (),
    *,
    quick: bool = False,
    measured: bool = True,
    say: Say = print_at_once,
) -> Outcome:
    """Regenerates ``reports/`` for all papers, or ``only`` some.

    Raises SpeclibError for an unknown paper. Cells that fail are in the outcome, and
    everything else is written.
    """
    all_papers = list_papers()
    chosen = list(only) or all_papers
    for key in chosen:
        if key not in all_papers:
            folder = paths.DATA / "papers"
            raise unknown_name(f"no paper {key!r} under {folder}", key, all_papers)

    remove_leftovers(paths.REPORTS, paths.CACHE / "reports", cache.rows_folder())
    outcome = Outcome()
    for key in chosen:
        _reproduce_if_stale(key, quick, measured, say, outcome)
    if outcome.done:
        # The shared files, such as the index, changed. That makes no paper stale.
        for key in all_papers:
            freshness.accept_shared_files(key)
    return outcome


def list_papers() -> list[str]:
    """The papers that have a folder of tables, in alphabetical order."""
    return sorted(path.parent.name for path in paths.DATA.glob("papers/*/paper.toml"))


def _reproduce_if_stale(
    key: str, quick: bool, measured: bool, say: Say, outcome: Outcome
) -> None:
    """Regenerates one paper, unless it is up to date, and adds to ``outcome``."""
    inputs = freshness.hash_of_inputs(key, quick, measured)
    if freshness.is_current(key, inputs):
        outcome.current.append(key)
        return

    failed = _reproduce_paper(key, quick, measured, say)
    outcome.done.append(key)
    outcome.failed |= failed
    if failed:
        freshness.forget(key)
    else:
        freshness.remember(key, inputs)


def _reproduce_paper(key: str, quick: bool, measured: bool, say: Say) -> dict[str, str]:
    """One paper, from cells to pages; the reasons by the cell that failed."""
    from . import publish
    from .book import Book

    book = Book(key, quick=quick, measured=measured)
    if measured and "measured" not in book.kinds:
        say(
            "torch is not installed: no measured numbers. "
            "`pip install -e '.[models]'` adds it"
        )
    say(f"{key}: filling {len(book.paper.tables)} tables ({book.profile.name} profile)")
    failed: dict[str, str] = {}
    for result in book.filled.values():
        failed |= result.errors

    publish.write_tables(book)
    if not failed:
        publish.write_front_figure(book)
    failed |= _make_page(book, say)
    publish.write_index(book)
    return failed


def _make_page(book: Book, say: Say) -> dict[str, str]:
    """Runs the paper's notebook and writes its page.

    Does nothing without a notebook, or without what running one takes. If it failed,
    the reason is returned, by the notebook's name.
    """
    from . import publish
    from .notebooks import run_notebook

    key = book.paper.key
    missing = [tool for tool in RUNNERS if find_spec(tool) is None]
    if missing:
        say(
            f"{', '.join(missing)} not installed: no {key}.html. "
            "`pip install -e '.[notebooks]'`"
        )
        return {}
    notebook = freshness.notebook_of(key)
    if not notebook.is_file():
        return {}

    say(f"{key}: running {notebook.relative_to(paths.ROOT)}")
    parameters = {
        "paper": key,
        "quick": book.profile.name == "quick",
        "measured": "measured" in book.kinds,
    }
    try:
        out = paths.REPORTS / f"{key}.ipynb"
        publish.write_page(book, run_notebook(notebook, out, parameters))
    except SpeclibError as error:
        return {notebook.name: str(error)}
    return {}
