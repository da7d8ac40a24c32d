"""``make reproduce``: cells run as a budget allows, tables and pages written.

What is up to date is left alone: first by one hash over everything that a paper's
reports depend on, then cell by cell through the cache. Files are replaced whole or not
at all. Whatever ends a run, time or an interrupt, reports are written of what there is,
and the next run goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from speclab.experiment import cache, environments
from speclib import machine, paths
from speclib.atomic_files import remove_leftovers
from speclib.data.toml_files import read_toml
from speclib.errors import how_to_install, unknown_name

from . import audit_page, failures, freshness
from .budget import Budget
from .one_at_a_time import one_at_a_time

if TYPE_CHECKING:
    from speclab.experiment.on_nodes import Nodes
    from speclab.papers.table_result import TableResult

    from .batches import Batch
    from .book import Book
    from .pace import Pace
    from .schedule import Schedule

LAST = 1000  # the rank of a paper whose file does not say it
RUNNERS = ("papermill", "nbconvert", "ipykernel")  # what running a notebook takes

Say = Callable[[str], None]  # where progress is told


def print_at_once(text: str) -> None:
    """Prints a line that a log shows without delay."""
    print(text, flush=True)


@dataclass
class Outcome:
    """What a call did.

    done         the papers that were regenerated
    current      those left alone
    failed       the reasons by the name of the cell that failed
    unfinished   by paper, how many of its cells lack requests or were not run at all
    interrupted  whether an interrupt ended the call; reports were written nevertheless
    """

    done: list[str] = field(default_factory=list)
    current: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    unfinished: dict[str, int] = field(default_factory=dict)
    interrupted: bool = False


def reproduce(
    only: Iterable[str] = (),
    *,
    quick: bool = False,
    minutes: float | None = None,
    measured: bool = True,
    on_nodes: bool = False,
    say: Say = print_at_once,
) -> Outcome:
    """Regenerates ``reports/`` for all papers, or ``only`` some.

    minutes   at most so long; None: until everything is done
    quick     fewer and shorter requests, and no search for a best window
    measured  with real models
    on_nodes  measured on the nodes of the Ray cluster that is running

    Raises SpeclibError for an unknown paper, and for a budget in which nothing can be
    done. Cells that fail are in the outcome, and everything else is written.
    """
    all_papers = list_papers()
    chosen = list(only) or all_papers
    for key in chosen:
        if key not in all_papers:
            folder = paths.DATA / "papers"
            raise unknown_name(f"no paper {key!r} under {folder}", key, all_papers)

    Budget.of_minutes(minutes)  # a budget of nothing is refused before waiting
    with one_at_a_time(say), environments.of_cluster(on_nodes):
        budget = Budget.of_minutes(minutes)
        remove_leftovers(paths.REPORTS, paths.CACHE / "reports", cache.cells_folder())
        outcome = Outcome()
        call = Call(quick, measured, on_nodes, budget, say, outcome)
        were_current = [key for key in all_papers if call.is_current(key)]
        stale = [key for key in chosen if key not in were_current]
        outcome.current = [key for key in chosen if key in were_current]
        if stale:
            call.regenerate([key for key in all_papers if key in stale])
        call.make_audit()
        has_new_lessons = call.write_lesson_pages()
        if outcome.done or has_new_lessons:
            # This call has rewritten files that all papers share, such as the index. A
            # paper that was current stays so.
            for key in (*were_current, *outcome.done):
                freshness.accept_shared_files(key)
    return outcome


def list_papers() -> list[str]:
    """The papers that have a folder of tables, in the order in which they are run."""
    ranks = {}
    for path in sorted(paths.DATA.glob("papers/*/paper.toml")):
        facts = read_toml(path.parent, "paper", f"no {path}")
        ranks[path.parent.name] = facts.get("place", LAST)
    return sorted(ranks, key=ranks.__getitem__)


class Call:
    """One call of ``reproduce``: what it was told, and the outcome that it fills."""

    def __init__(
        self,
        quick: bool,
        measured: bool,
        on_nodes: bool,
        budget: Budget,
        say: Say,
        outcome: Outcome,
    ):
        self.quick = quick
        self.measured = measured
        self.on_nodes = on_nodes
        self.budget = budget
        self.say = say
        self.outcome = outcome
        self._inputs: dict[str, str] = {}  # of each paper, as they were at first

    def is_current(self, key: str) -> bool:
        """Whether a paper's reports are up to date, and complete."""
        inputs = freshness.hash_of_inputs(key, self.quick, self.measured, self.on_nodes)
        self._inputs[key] = inputs
        return freshness.is_current(key, inputs)

    def regenerate(self, keys: list[str]) -> None:
        """Runs the cells of these papers as the budget allows, and writes reports."""
        from speclab.experiment.on_nodes import Nodes
        from speclab.experiment.run_cells import Runner
        from speclab.progress import Progress

        from .open_cells import OpenClaims, specs_of_open_claims
        from .pace import Pace
        from .schedule import Schedule

        books = {key: self._open_book(key) for key in keys}
        pace = Pace.read()
        writing = _seconds_of_writing(books, pace) + audit_page.expected_seconds()
        deadline = self.budget.deadline(reserved=writing)
        batches = []
        for book in books.values():
            batches += _batches_of(book)

        def on_main_table(key: str) -> None:
            failures.store(key, runner.errors)
            self._say_main_table(books[key])

        for key in keys:
            failures.store(key, {})
        with Progress("cells") as bar, Runner(bar) as runner, ExitStack() as stack:
            nodes = stack.enter_context(Nodes()) if self.on_nodes else None
            if nodes is not None:
                self._say_nodes(nodes)

            def ask_what_is_open() -> OpenClaims:
                papers = [book.paper for book in books.values()]
                book = next(iter(books.values()))
                return specs_of_open_claims(
                    papers, book.profile, book.kinds, runner.errors
                )

            schedule = Schedule(
                batches,
                runner,
                pace,
                deadline,
                on_main_table,
                nodes,
                ask_what_is_open=ask_what_is_open,
            )
            self._say_plan(schedule, books, writing)
            if schedule.seconds_missing():
                self.budget.check_least(schedule.least_seconds() + writing)
            try:
                schedule.run()
            except KeyboardInterrupt:
                self.outcome.interrupted = True
                self.say(
                    "\ninterrupted: writing the reports of what there is "
                    "(interrupt again to leave them as they are)"
                )
        self.outcome.failed |= schedule.script_errors

        for key in keys:
            failures.store(key, runner.errors)
        started = time.monotonic()
        self._write_reports(keys, schedule)
        if not self.outcome.failed and not self.outcome.interrupted:
            # After an interrupt there is little to write.
            _note_seconds_of_writing(books, time.monotonic() - started, pace)

    def make_audit(self) -> None:
        """Makes the audit's page, if it is stale, and the index that leads to it."""
        if self.outcome.interrupted or _missing_runners():
            return
        if not audit_page.is_stale():
            return

        from . import publish
        from .notebooks import in_words

        notebook = freshness.notebook_of(freshness.AUDIT)
        self.say(f"audit: running {notebook.relative_to(paths.ROOT)}")
        try:
            audit_page.make_page()
        except Exception as error:  # all other pages are written
            self.outcome.failed[notebook.name] = in_words(error)
            return
        publish.write_index_page()
        self.outcome.done.append(freshness.AUDIT)

    def _say_nodes(self, nodes: Nodes) -> None:
        """Says which nodes of the cluster measure, and which do not."""
        self.say(f"measured on {', '.join(nodes.names)}")
        for name, why in nodes.left_out.items():
            self.say(f"node {name} is left out: {why}")

    def _say_plan(
        self, schedule: Schedule, books: dict[str, Book], writing: float
    ) -> None:
        """Says what is missing, how long it takes, and what the budget is.

        ``writing``: seconds of the pages, which come after the cells.
        """
        from .schedule import describe_seconds

        if self.measured and "measured" not in next(iter(books.values())).kinds:
            self.say(
                "torch is not installed: no measured numbers. "
                f"{how_to_install('models')}"
            )
        cells = describe_seconds(schedule.seconds_missing())
        pages = describe_seconds(writing)
        profile = next(iter(books.values())).profile.name
        self.say(
            f"{', '.join(books)}: the cells that are missing take about {cells} here, "
            f"and the pages {pages} more ({profile} profile); {self.budget.describe()}"
        )

    def write_lesson_pages(self) -> bool:
        """Writes the pages of the lessons, and the index that lists them.

        Says whether any was stale.
        """
        from .lesson_pages import write_lesson_pages

        lessons = write_lesson_pages()
        self.outcome.failed |= lessons.failed
        if lessons.has_written:
            from . import publish

            publish.write_index_page()
        return lessons.has_written

    def _say_main_table(self, book: Book) -> None:
        """Writes the tables of a paper whose main table has its first numbers."""
        from . import publish
        from .batches import main_item

        key = book.paper.key
        publish.write_tables(self._open_book(key))
        item = main_item(book.paper.facts, book.cells())
        report = f"{paths.REPORTS.name}/{key}.md"
        elapsed = self.budget.describe_elapsed()
        self.say(f"{key}: {item} stands in {report} ({elapsed})")

    def _write_reports(self, keys: list[str], schedule: Schedule) -> None:
        """Writes tables, pages and index, and notes what is unfinished."""
        from . import publish

        books = {key: self._open_book(key) for key in keys}
        self._say_what_is_open(books, schedule)
        sentence = describe_disturbed(
            result for book in books.values() for result in book.filled.values()
        )
        if sentence:
            self.say(sentence)
        failed: dict[str, dict[str, str]] = {}  # by paper: why by name of what failed
        for key, book in books.items():
            failed[key] = {}
            for result in book.filled.values():
                failed[key] |= result.errors
            publish.write_tables(book)
            if not failed[key]:
                publish.write_front_figure(book)

        for key, reason in _make_pages(books, self.say):
            if reason is not None:
                failed[key][freshness.notebook_of(key).name] = reason
            publish.write_index(books[key])
            self._conclude(key, failed[key], books[key].count_unfinished())

    def _say_what_is_open(self, books: dict[str, Book], schedule: Schedule) -> None:
        """Says how many claims more time might settle, and how much that would be."""
        from speclab.papers.table_result import TIMED_KINDS

        from .open_cells import open_specs_of
        from .schedule import describe_seconds

        claims, wanted = 0, set()
        for book in books.values():
            cells = book.cells()
            for item, result in book.filled.items():
                open_specs = open_specs_of(result, cells[item])
                wanted |= {spec for spec in open_specs if spec.kind in TIMED_KINDS}
                claims += len(result.open_claims)
        seconds = schedule.seconds_of_open(wanted)
        if claims and seconds:
            self.say(
                f"{claims} claims about timed numbers are open; to time more prompts "
                f"for them would take about {describe_seconds(seconds)} more"
            )

    def _conclude(self, key: str, failed: dict[str, str], unfinished: int) -> None:
        """Notes what became of a paper."""
        self.outcome.done.append(key)
        self.outcome.failed |= failed
        if unfinished:
            self.outcome.unfinished[key] = unfinished
        if failed or unfinished:
            freshness.forget(key)
        else:
            freshness.remember(key, self._inputs[key])

    def _open_book(self, key: str) -> Book:
        """The paper as the cache has it now."""
        from .book import Book

        return Book(key, quick=self.quick, measured=self.measured, run=False)


def _batches_of(book: Book) -> list[Batch]:
    """What is to be run for a paper."""
    from .batches import batches_of, main_item, scripts_of

    cells = book.cells()
    item = main_item(book.paper.facts, cells)
    scripts = scripts_of(book.paper, book.profile, book.kinds, item)
    return scripts + batches_of(book.paper.key, cells, item)


# -- pages -----------------------------------------------------------------------------
def _kind_of_pages(books: dict[str, Book]) -> str:
    """The kind under which the pace of writing reports is known."""
    profile = next(iter(books.values())).profile
    return f"{profile.name}-pages"


def _seconds_of_writing(books: dict[str, Book], pace: Pace) -> float:
    """How long it takes to write these papers' reports, on all cores."""
    by_one_core = pace.expect(_kind_of_pages(books), units=len(books))
    return by_one_core / min(machine.cores(), len(books))


def _note_seconds_of_writing(
    books: dict[str, Book], seconds: float, pace: Pace
) -> None:
    """Notes how long it took; what one core would have taken is stored."""
    by_one_core = seconds * min(machine.cores(), len(books))
    pace.note(_kind_of_pages(books), units=len(books), seconds=by_one_core)


def _missing_runners() -> list[str]:
    """What running a notebook takes and is not installed."""
    return [tool for tool in RUNNERS if find_spec(tool) is None]


def describe_disturbed(results: Iterable[TableResult]) -> str:
    """How many numbers were timed while the machine was busy; "" if none were."""
    count = sum(len(result.disturbed) for result in results)
    if not count:
        return ""
    numbers = "1 number was" if count == 1 else f"{count} numbers were"
    return (
        f"{numbers} timed while other programs kept the machine busy: marked in the "
        "tables, and no claim is judged by them"
    )


def _make_pages(books: dict[str, Book], say: Say) -> Iterator[tuple[str, str | None]]:
    """Runs the papers' notebooks, one per core, and writes their pages.

    Gives each paper as it ends, with the reason if its page failed. Without a notebook,
    or without what running one takes, there is no page, and nothing fails.
    """
    from .notebooks import NotebookToRun, run_notebooks

    missing = _missing_runners()
    if missing:
        say(
            f"{', '.join(missing)} not installed: no pages. "
            f"{how_to_install('notebooks')}"
        )

    to_run = []
    for key, book in books.items():
        notebook = freshness.notebook_of(key)
        if missing or not notebook.is_file():
            yield key, None
        else:
            say(f"{key}: running {notebook.relative_to(paths.ROOT)}")
            out = paths.REPORTS / f"{key}.ipynb"
            to_run.append(NotebookToRun(key, notebook, out, _parameters_of(book)))

    for key, reason in run_notebooks(to_run):
        yield key, reason or _write_page(books[key])


def _parameters_of(book: Book) -> dict[str, object]:
    """Parameters of the notebook that shows a paper: it runs nothing anew."""
    return {
        "paper": book.paper.key,
        "quick": book.profile.name == "quick",
        "measured": "measured" in book.kinds,
        "run": False,
    }


def _write_page(book: Book) -> str | None:
    """Writes a paper's page from its executed notebook; says why where that failed."""
    from . import publish
    from .notebooks import in_words

    try:
        publish.write_page(book, paths.REPORTS / f"{book.paper.key}.ipynb")
    except Exception as error:  # all other pages are written
        return in_words(error)
    return None
