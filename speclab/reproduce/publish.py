"""The files under ``reports/``: ledger, claims, Markdown, pages, index.

Each is written whole or left untouched. Lines of other papers and of other
machines stay. What the files look like is the business of ``views``.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from speclab.papers.ledger import (
    SAME_DEVICES_SUFFIX,
    LedgerLine,
    VerdictLine,
    merge,
    read_claims,
    read_ledger,
    write_claims,
    write_ledger,
)
from speclab.papers.load_papers import load_paper
from speclab.papers.table_result import TableResult
from speclib import machine, paths
from speclib.atomic_files import write_atomically
from speclib.errors import BadValue

from .book import Book, Page, of_another_machine
from .lesson_pages import lecturers_address, list_lessons

if TYPE_CHECKING:
    from speclab.views.pages.places import Anchors, PageAnchors


# -- tables ----------------------------------------------------------------------------
def write_tables(book: Book) -> None:
    """Writes ledger.csv, claims.csv and <paper>.md."""
    from speclab.views.tables.markdown import paper_md

    _update_ledger(book)
    _update_claims(book)
    text = paper_md(book.paper, book.filled, book.others)
    write_atomically(paths.REPORTS / f"{book.paper.key}.md", text)


def _update_ledger(book: Book) -> None:
    """Puts the paper's lines into the ledger, in place of those they make stale."""
    lines: list[LedgerLine] = []
    for result in book.filled.values():
        lines += result.lines
    staying = [line for line in _read_own_ledger() if _stays(line, book)]
    _write_own_ledger(merge(lines, staying))


def _stays(line: LedgerLine, book: Book) -> bool:
    """Whether a line of the ledger stays when a paper's lines are written anew.

    Those of other papers and of other machines do, numbers of a kind that this call did
    not look at, and those of cells that it did not reach.
    """
    if line.paper != book.paper.key or of_another_machine(line):
        return True
    if line.item in book.filled:
        left_out = book.filled[line.item].left_out
        if (line.row, line.column, line.kind) in left_out:
            return line.value is not None
    is_of_another_kind = line.kind not in ("paper", *book.kinds)
    return is_of_another_kind and line.value is not None


def _update_claims(book: Book) -> None:
    """Puts the verdicts on the paper's claims in place of those that were there."""
    path = paths.REPORTS / "claims.csv"
    lines: list[VerdictLine] = []
    for line in read_claims(path):
        if line.paper != book.paper.key:
            lines.append(line)
    for result in book.filled.values():
        lines += result.claims
        for line in result.claims_over_same_devices:
            lines.append(line._replace(claim=line.claim + SAME_DEVICES_SUFFIX))
    write_claims(path, sorted(lines, key=lambda line: line.paper))


def merge_ledger(path: Path) -> int:
    """Adds the lines of another machine's ledger to ours.

    Where a key is in both, our line stays. Returns how many lines are new. Raises
    SpeclibError if ``path`` is no ledger, or has a line of what there is not here.
    """
    if not path.is_file():
        raise BadValue(
            f"no ledger {path}: give the path of another machine's ledger.csv"
        )
    ours = _read_own_ledger()
    lines = read_ledger(path, items_by_paper())
    theirs = [line for line in lines if of_another_machine(line)]
    merged = merge(ours, theirs)
    _write_own_ledger(merged)
    return len(merged) - len(ours)


def items_by_paper() -> dict[str, list[str]]:
    """The tables, figures and so on of every paper."""
    items = {}
    for path in sorted(paths.DATA.glob("papers/*/paper.toml")):
        key = path.parent.name
        items[key] = list(load_paper(key).tables)
    return items


def _read_own_ledger() -> list[LedgerLine]:
    path = paths.REPORTS / "ledger.csv"
    return read_ledger(path) if path.exists() else []


def _write_own_ledger(lines: Iterable[LedgerLine]) -> None:
    """Writes ledger.csv with the papers in alphabetical order."""
    in_order = sorted(lines, key=lambda line: line.paper)
    write_ledger(paths.REPORTS / "ledger.csv", in_order)


# -- pages -----------------------------------------------------------------------------
def write_front_figure(book: Book) -> None:
    """Writes timeline.png, the project's front-page figure.

    Does nothing for a paper that does not have it, or has not measured all of it.
    """
    front = book.paper.facts.get("front")
    if not front or not _has_measured(book.filled[front["item"]], front["column"]):
        return
    timeline = book.timeline(front["item"], front["column"])
    assert not isinstance(timeline, Page)  # it has been measured
    timeline.save(paths.REPORTS / "timeline.png")


def _has_measured(result: TableResult, column: str) -> bool:
    """Whether a column of a table has measured runs, and none of them is left out."""
    for keys, is_wanted in ((result.left_out, False), (result.cell_results, True)):
        has_some = any((key[1], key[2]) == (column, "measured") for key in keys)
        if has_some != is_wanted:
            return False
    return True


def write_page(book: Book, executed: Path) -> None:
    """Writes <paper>.html from the executed notebook, and plotly beside it.

    The page of timelines is written, too, since each of the two leads to the other.
    """
    from plotly.offline import get_plotlyjs

    from speclab.views.pages.notebook import notebook_page
    from speclab.views.pages.places import PageAnchors, find_anchors

    write_atomically(paths.REPORTS / "plotly.min.js", get_plotlyjs())
    notebook = executed.read_text("utf-8")
    on_page = find_anchors(notebook_page(notebook, book.paper.title))
    on_traces = write_traces(book, on_page)
    anchors = PageAnchors(book.paper.key, on_page, on_traces)
    front = book.paper.facts.get("first_table", "")
    html = notebook_page(notebook, book.paper.title, anchors, front=front)
    write_atomically(paths.REPORTS / f"{book.paper.key}.html", html)


def write_traces(book: Book, on_page: Anchors = frozenset()) -> Anchors:
    """Writes <paper>-traces.html, the timelines of cells that were timed.

    ``on_page`` are the anchors of the paper's page, to which links lead back. Returns
    the anchors of what was written. Where no cell was timed there is no such page.
    """
    from speclab.views.pages.places import find_anchors, traces_file
    from speclab.views.pages.traces import traces_page

    path = paths.REPORTS / traces_file(book.paper.key)
    html = traces_page(book.paper, book.filled, on_page)
    if html:
        write_atomically(path, html)
    else:
        path.unlink(missing_ok=True)
    return find_anchors(html)


def write_index(book: Book) -> None:
    """Writes index.html: what is said of this paper, beside papers made before."""
    from speclab.views.pages.index import summary

    entry = summary(book.paper, book.filled, book.profile.name)
    entry["made"] = describe_origin()
    path = _summaries() / f"{book.paper.key}.summary.json"
    write_atomically(path, json.dumps(entry))
    write_index_page()


def write_index_page() -> None:
    """Writes index.html over all papers of which a summary is stored.

    Its links lead to the pages that are there, so it is written after them. What no
    run of this checkout settled is taken from the committed ledger. With neither there
    is no index.
    """
    from speclab.views.pages.index import index_page

    from .runs_for_pages import front_race

    entries = []
    anchors = {}
    for path in sorted(_summaries().glob("*.summary.json")):
        key = path.name.removesuffix(".summary.json")
        with contextlib.suppress(OSError, ValueError):  # a damaged one is left out
            entries.append(json.loads(path.read_text("utf-8")))
        anchors[key] = _anchors_of_pages(key)
    committed = committed_claims()
    if not entries and not committed:
        return
    html = index_page(
        entries,
        describe_machine(),
        anchors,
        has_audit=(paths.REPORTS / "audit.html").is_file(),
        lessons=list_lessons(),
        lecturers=lecturers_address(),
        race=front_race(),
        committed=committed,
        all_papers={line.paper: load_paper(line.paper) for line in committed},
    )
    write_atomically(paths.REPORTS / "index.html", html)


def _summaries() -> Path:
    """The folder of what the index says of each paper."""
    return paths.CACHE / "reports"


def _anchors_of_pages(key: str) -> PageAnchors:
    """The anchors in the pages of a paper, as far as these were made."""
    from speclab.views.pages.places import PageAnchors, find_anchors, traces_file

    anchors = []
    for name in (f"{key}.html", traces_file(key)):
        path = paths.REPORTS / name
        html = path.read_text("utf-8") if path.is_file() else ""
        anchors.append(find_anchors(html))
    on_page, on_traces = anchors
    return PageAnchors(key, on_page, on_traces)


def committed_claims() -> list[VerdictLine]:
    """The verdicts in the claims.csv of the repository's last commit.

    Those of papers that are here no more are left out. None without git, or where the
    file had other columns then.
    """
    path = paths.CACHE / "reports" / "committed-claims.csv"
    try:
        write_atomically(path, _git("show", "HEAD:./reports/claims.csv") + "\n")
        lines = read_claims(path)
    except (OSError, subprocess.SubprocessError, BadValue):
        return []
    papers = items_by_paper()
    return [line for line in lines if line.paper in papers]


def describe_origin() -> str:
    """When reports were made, and from which state of the repository."""
    return f"{datetime.now():%Y-%m-%d %H:%M}, commit {describe_commit()}"


def describe_commit() -> str:
    """Short hash of the working tree's commit, marked where files differ from it.

    "unknown" without git.
    """
    try:
        changed_files = _git("status", "--porcelain", "--untracked-files=no")
        commit = _git("rev-parse", "--short", "HEAD")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return f"{commit} with changes" if changed_files else commit


def _git(*words: str) -> str:
    """What a git command prints."""
    finished = subprocess.run(
        ["git", "-C", str(paths.ROOT), *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    return finished.stdout.strip()


def describe_machine() -> dict[str, str]:
    """What a reader must know of this machine, by name."""
    facts = {"machine": machine.name()}
    for name, fact in machine.environment():
        if fact:
            facts[name] = fact
    return facts
