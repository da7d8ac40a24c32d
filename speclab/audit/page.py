"""The audit as one page of Markdown, from the template ``page.md``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from speclab.papers.load_papers import load_paper
from speclab.papers.paper_schema import Table

from .items import Audit, CodeReading, load_audit

PAPERS = ("pearl", "dsi", "duodecoding", "easyspec")
# These are not mistakes in print: text lost in our copy, and ceilings, which depend on
# our assumptions. A blog's errata are left out, too.
NOT_LISTED = ("text", "ceiling")


class PrintErratum(NamedTuple):
    """A mistake in print: its table, its cells, and a note."""

    item: str
    cells: str
    note: str


class PaperErrata(NamedTuple):
    """A paper's errata, in the order of its tables."""

    title: str
    errata: list[PrintErratum]


def audit_page() -> str:
    """The audit's page: findings, which code is lossless, errata and sources."""
    audit = load_audit()
    by_paper = groupby(audit.findings, key=lambda finding: finding.paper)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.md").render(
        audit=audit,
        findings={paper: list(findings) for paper, findings in by_paper},
        errata=[_errata_of(paper) for paper in PAPERS],
        link=lambda reading: _link(audit, reading),
    )


def _link(audit: Audit, reading: CodeReading) -> str:
    """A link to the lines at the commit that we read."""
    code = audit.code[reading.code]
    first, last = reading.first_and_last
    address = f"https://{code.repository}/blob/{code.commit[:7]}/{reading.file}"
    name = Path(reading.file).name
    end = "" if last == first else f"-L{last}"
    return f"[{name}:{reading.lines}]({address}#L{first}{end})"


def _errata_of(key: str) -> PaperErrata:
    paper = load_paper(key)
    errata: list[PrintErratum] = []
    for table in paper.tables.values():
        errata += _errata_in(table)
    return PaperErrata(paper.short_name, errata)


def _errata_in(table: Table) -> Iterator[PrintErratum]:
    name = table.item.replace("-", " ").capitalize()
    for erratum in table.errata:
        if erratum.kind in NOT_LISTED or table.item.startswith("blog"):
            continue
        cells = [_name_cell(row, column) for row, column in erratum.cells[:2]]
        if len(erratum.cells) > len(cells):
            cells.append("and others")
        yield PrintErratum(name, "; ".join(cells), " ".join(erratum.note.split()))


def _name_cell(row: str, column: str) -> str:
    """A cell as "row, column"; a whole row or column as its own name."""
    labels = [label for label in dict.fromkeys((row, column)) if label != "*"]
    return ", ".join(labels) or "all cells"
