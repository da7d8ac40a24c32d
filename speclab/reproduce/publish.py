"""Writes the report files: ledger, claims, Markdown, pages, index.

Each is written completely or left unchanged. ``views`` determines what they look like.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from speclab.papers.ledger import (
    SAME_DEVICES_SUFFIX,
    LedgerLine,
    VerdictLine,
    write_claims,
    write_ledger,
)
from speclab.runs.rows import read, read_all, write
from speclab.runs.values import append_values, read_all_values, read_values
from speclib import paths
from speclib.atomic_files import write_atomically
from speclib.errors import BadValue

from .book import Book


# -- rows of other machines ------------------------------------------------------------
def merge_rows(path: Path) -> int:
    """Adds rows that another machine wrote, and returns the number of new rows.

    They are added to ``data/runs/<machine>.csv``, so every report shows them. Raises
    BadValue for a file that is damaged or has other columns.
    """
    if not path.is_file():
        raise BadValue(
            f"no file {path}: give another machine's file from .cache/runs or data/runs"
        )
    if path.name.endswith("-values.csv"):
        known_values = set(read_all_values())
        new_values = [v for v in read_values(path) if v not in known_values]
        append_values(new_values, paths.DATA / "runs")
        return len(new_values)
    known = {(row.machine, row.key, row.group) for row in read_all()}
    new = [row for row in read(path) if (row.machine, row.key, row.group) not in known]
    for name in sorted({row.machine for row in new}):
        file = paths.DATA / "runs" / f"{name}.csv"
        there = read(file) if file.is_file() else []
        own = [row for row in new if row.machine == name]
        write_atomically(file, write([*there, *own]))
    return len(new)


# -- tables ----------------------------------------------------------------------------
def write_tables(books: Iterable[Book]) -> None:
    """Writes ledger.csv, claims.csv, and the Markdown of every paper and its items."""
    from speclab.views.tables.markdown import page_markdown, paper_markdown

    lines: list[LedgerLine] = []
    claims: list[VerdictLine] = []
    for book in sorted(books, key=lambda book: book.paper.key):
        for result in book.filled.values():
            lines += result.lines
            claims += result.claims
            for line in result.claims_over_same_devices:
                claims.append(line._replace(claim=line.claim + SAME_DEVICES_SUFFIX))
        lines += book.others
        folder = paths.REPORTS / book.paper.key
        folder.mkdir(parents=True, exist_ok=True)
        for item in book.pages:
            text = page_markdown(book.page(item))
            write_atomically(folder / f"{item}.md", text)
        text = paper_markdown(book.paper, book.filled, book.pages)
        write_atomically(paths.REPORTS / f"{book.paper.key}.md", text)
    write_ledger(paths.REPORTS / "ledger.csv", lines)
    write_claims(paths.REPORTS / "claims.csv", claims)


# -- pages -----------------------------------------------------------------------------
def write_front_figure(book: Book) -> None:
    """Writes timeline.png, the front page's figure, if this paper provides it."""
    front = book.paper.facts.get("front")
    if front:
        timeline = book.timeline(front["item"], front["column"])
        if timeline is not None:  # None without virtual numbers
            timeline.save(paths.REPORTS / "timeline.png")


def write_page(book: Book, executed: Path) -> None:
    """Writes <paper>.html from the executed notebook, and plotly.min.js next to it."""
    from plotly.offline import get_plotlyjs

    from .pages import notebook_page

    write_atomically(paths.REPORTS / "plotly.min.js", get_plotlyjs())
    html = notebook_page(executed.read_text("utf-8"), book.paper.title)
    write_atomically(paths.REPORTS / f"{book.paper.key}.html", html)


def write_index_page(books: Iterable[Book]) -> None:
    """Writes index.md, with a line per paper, and index.html, which links to pages."""
    from speclab.views.tables.markdown import index_markdown

    from .pages import index_html

    papers = [(book.paper, book.filled) for book in books]
    markdown = index_markdown(papers, _further_pages())
    write_atomically(paths.REPORTS / "index.md", markdown)
    pages = {path.stem for path in paths.REPORTS.glob("*.html")}
    write_atomically(paths.REPORTS / "index.html", index_html(markdown, pages))


def _further_pages() -> list[str]:
    """The index's lines for existing pages that belong to no paper."""
    lines = {
        "smollm2.md": "[A real model](smollm2.md): every method on SmolLM2, measured.",
        "audit.md": "[The audit](audit.md): what papers and code claim, checked.",
        "ledger.csv": "[All numbers](ledger.csv), [all claims](claims.csv): as tables.",
    }
    return [
        f"- {line}" for name, line in lines.items() if (paths.REPORTS / name).is_file()
    ]
