"""Files under ``reports/``: ledger, claims, Markdown, pages, index; each whole or untouched.

Rows of other papers and other machines are kept. What the files look like is ``views``' business.
"""

from __future__ import annotations

import json
import subprocess
from datetime import datetime
from pathlib import Path

from speclib import paths
from speclib.errors import SpeclibError
from speclib.experiment import machine
from speclib.experiment.atomic_files import write_atomically
from speclib.papers.ledger import (
    LedgerRow,
    merge,
    read_claims,
    read_ledger,
    write_claims,
    write_ledger,
)

from .book import Book, of_another_machine


def tables(book: Book) -> None:
    """Writes ledger.csv, claims.csv and <paper>.md."""
    from speclib.views.tables.markdown import paper_md

    key, ledger = book.paper.key, paths.REPORTS / "ledger.csv"
    held = read_ledger(ledger) if ledger.exists() else []
    ours = [row for filled in book.filled.values() for row in filled.rows]
    write_ledger(
        ledger,
        sorted(
            merge(ours, [r for r in held if _keeps(r, book)]), key=lambda r: r.paper
        ),
    )
    claims = [row for filled in book.filled.values() for row in filled.claims]
    others = [
        row for row in read_claims(paths.REPORTS / "claims.csv") if row.paper != key
    ]
    write_claims(
        paths.REPORTS / "claims.csv", sorted(others + claims, key=lambda r: r.paper)
    )
    write_atomically(
        paths.REPORTS / f"{key}.md", paper_md(book.paper, book.filled, book.others)
    )


def _keeps(row: LedgerRow, book: Book) -> bool:
    """Whether a row of the ledger stays: another paper's, another machine's, or a number of a kind
    that this call did not look at."""
    return (
        row.paper != book.paper.key
        or of_another_machine(row)
        or (row.kind not in ("paper", *book.kinds) and row.value is not None)
    )


def merge_ledger(path: Path) -> int:
    """Adds the rows of another ledger to ours; where a key is in both, ours stays. Returns how
    many rows are new. Raises SpeclibError if it is no ledger."""
    if not path.is_file():
        raise SpeclibError(
            f"no ledger {path}: give the path of another machine's ledger.csv"
        )
    ours = paths.REPORTS / "ledger.csv"
    held = read_ledger(ours) if ours.exists() else []
    both = merge(held, [row for row in read_ledger(path) if of_another_machine(row)])
    write_ledger(ours, sorted(both, key=lambda r: r.paper))
    return len(both) - len(held)


def front(book: Book) -> None:
    """Writes timeline.png, the project's front-page figure, if this paper has it measured."""
    shown = book.paper.facts.get("front")
    if shown and "measured" in book.kinds:
        drawn = book.timeline(shown["item"], shown["column"], tokens=shown["tokens"])
        part = drawn.save(paths.REPORTS / ".timeline.png")
        part.replace(paths.REPORTS / "timeline.png")


# -- pages ---------------------------------------------------------------------------------------
def page(book: Book, executed: Path) -> None:
    """Writes <paper>.html from the executed notebook, and the chart library beside it."""
    from plotly.offline import get_plotlyjs

    from speclib.views.pages.notebook import notebook_page

    write_atomically(paths.REPORTS / "plotly.min.js", get_plotlyjs())
    html = notebook_page(executed.read_text("utf-8"), book.paper.title)
    write_atomically(paths.REPORTS / f"{book.paper.key}.html", html)


def index(book: Book) -> None:
    """Writes index.html: the summary of this paper beside those of papers made before."""
    from speclib.views.pages.index import index_page, summary

    folder = paths.CACHE / "reports"
    entry = summary(book.paper, book.filled, book.profile.name) | {"made": made()}
    write_atomically(folder / f"{book.paper.key}.summary.json", json.dumps(entry))
    entries = [
        json.loads(p.read_text("utf-8")) for p in sorted(folder.glob("*.summary.json"))
    ]
    write_atomically(paths.REPORTS / "index.html", index_page(entries, facts()))


def made() -> str:
    """When and from which state of the repository."""
    return f"{datetime.now():%Y-%m-%d %H:%M}, commit {commit()}"


def commit() -> str:
    """Short hash of the working tree's commit, marked where files differ; empty without git."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(paths.ROOT), *words],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short", "HEAD") + (
            " with changes" if changed else ""
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def facts() -> dict[str, str]:
    """What a reader must know of this machine."""
    return {"machine": machine.name(), **{k: v for k, v in machine.environment() if v}}
