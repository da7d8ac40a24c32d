"""The audit as one page of Markdown, by the template ``page.md``."""

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
# Not the print's errata: what our copy of a text has lost, and ceilings, which rest on
# assumptions of ours. A blog's are left out, too.
NOT_LISTED = ("text", "ceiling")


class PrintErratum(NamedTuple):
    """What is wrong in print: which cells of which table, and what is said of them."""

    item: str
    cells: str
    note: str


class PaperErrata(NamedTuple):
    """The errata of a paper, in the order of its tables."""

    title: str
    errata: list[PrintErratum]


def audit_page() -> str:
    """The audit: its findings, what is lossless in which code, errata, sources."""
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
    """The lines at the commit that was read, as a link."""
    code = audit.code[reading.code]
    first, last = reading.first_and_last
    address = f"https://{code.repository}/blob/{code.commit[:7]}/{reading.file}"
    name = Path(reading.file).name
    return f"[{name}:{reading.lines}]({address}#L{first}-L{last})"


def _errata_of(key: str) -> PaperErrata:
    paper = load_paper(key)
    errata: list[PrintErratum] = []
    for table in paper.tables.values():
        errata += _errata_in(table)
    return PaperErrata(paper.title, errata)


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
    """A cell as "row, column"; the whole row or column has the other name alone."""
    labels = [label for label in dict.fromkeys((row, column)) if label != "*"]
    return ", ".join(labels) or "all cells"
