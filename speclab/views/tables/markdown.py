"""The pages of tables, papers and all reports as Markdown, for a code host.

The text is deterministic: changing one number changes one line.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from speclab.papers.paper_schema import Paper
from speclab.papers.table_result import TableResult

from .answers import answer_of, item_name
from .dot_plot import as_text
from .main_quantity import points_of
from .number_tables import PipeTable
from .table_page import ERRATA, Fold, TablePage, numbered, statements_table

KINDS_IN_WORDS = """\
Every number has a kind. `paper`: printed in the paper. `virtual`: predicted by our code
of the method on a simulated clock, with the paper's own latencies. `emulated`: the same
code in real processes that wait for these latencies. `measured`: real models in
wall-clock time. ✓: the claim holds; ✗: it does not; ◇: the 95 % intervals do not settle
it. [How to read a report](../docs/read-a-report.md) explains more, and
[how the numbers are made](../docs/reproduce.md)."""


# Below the statements of a table.
MARKS_IN_WORDS = (
    "✓ it holds; ✗ it does not; ◇ the interval is too wide to tell. Counts compare the "
    "numbers themselves, without their intervals."
)


def page_markdown(page: TablePage) -> str:
    """A table's page without the parts that its file has in the same words."""
    folds = [fold for fold in page.folds if not fold.is_in_file]
    short = replace(page, folds=folds)
    parts = [opening_markdown(short), plot_markdown(short), rest_markdown(short)]
    if any(fold.title == ERRATA for fold in page.folds):
        parts.append("Its errata are listed in [the audit](../audit.md#errata).")
    return "\n\n".join(part for part in parts if part) + "\n"


def opening_markdown(page: TablePage) -> str:
    """The question, its answer, and what the table shows."""
    return f"# {page.question}\n\n**{page.answer}**\n\n{page.title}. {page.opening}"


def plot_markdown(page: TablePage) -> str:
    """The dot plot as text; omitted if it shows all cells, since a table has those."""
    is_shown = page.plot is not None and page.plot.is_main
    return f"```text\n{as_text(page.plot)}\n```" if page.plot and is_shown else ""


def rest_markdown(page: TablePage) -> str:
    """Everything below the plot."""
    parts = []
    if page.statements.lines:
        first = "What the paper claims"
        table = statements_table(page.statements, page.here, first)
        parts.append(_pipes(table))
        parts.append(MARKS_IN_WORDS)
        parts += numbered(page.statements)
    if page.why is not None:
        parts += [page.largest_steps, _pipes(page.why)]
    if page.before_you_cite:
        lines = ["**Before you cite it**", ""]
        lines += [f"- {' '.join(note.split())}" for note in page.before_you_cite]
        parts.append("\n".join(lines))
    parts += [_fold(fold) for fold in page.folds]
    as_data = f"The table as data, and how we read it: `{page.file}`."
    parts.append(f"Run it again: {page.command}. {as_data}")
    return "\n\n".join(parts)


def _fold(fold: Fold) -> str:
    texts = [
        _pipes(part) if isinstance(part, PipeTable) else part for part in fold.parts
    ]
    body = "\n\n".join(texts)
    return f"<details><summary>{fold.title}</summary>\n\n{body}\n\n</details>"


def _pipes(table: PipeTable) -> str:
    """A Markdown table with its caption; only the first column is left-aligned."""
    rule = ["---", *["---:"] * (len(table.heads) - 1)]
    lines = [f"{table.caption}:", ""] if table.caption else []
    for cells in (table.heads, rule, *table.rows):
        escaped = [cell.replace("|", "\\|") for cell in cells]
        lines.append(f"| {' | '.join(escaped)} |")
    return "\n".join(lines)


# -- lists of pages --------------------------------------------------------------------
def paper_markdown(
    paper: Paper, results: Mapping[str, TableResult], pages: Container[str]
) -> str:
    """A paper's page: its reference, and each item with its answer."""
    authors = ", ".join(paper.authors)
    lines = [
        f"# {paper.title}",
        "",
        f"{authors}, {paper.year}, {paper.address}. Made by `make reproduce`.",
        "",
        KINDS_IN_WORDS,
        "",
    ]
    for item, result in results.items():
        link = item_name(item)
        if item in pages:
            link = f"[{link}]({paper.key}/{item}.md)"
        answer = answer_of(result, points_of(result))
        lines.append(f"- {link}, {result.table.title}. {answer}")
    return "\n".join(lines) + "\n"


def index_markdown(
    papers: Iterable[tuple[Paper, Mapping[str, TableResult]]], further: Iterable[str]
) -> str:
    """The page of all reports, with the answer of each paper's first table.

    ``further``: lines about pages that belong to no paper.
    """
    lines = ["# Reports", ""]
    for paper, results in papers:
        first = results[str(paper.facts.get("first_table", next(iter(results))))]
        answer = answer_of(first, points_of(first))
        name = f"{paper.short_name}, {item_name(first.table.item)}"
        if first.has_numbers_of_ours:
            name = f"[{name}]({paper.key}/{first.table.item}.md)"
        all_items = f"[All of {paper.short_name}]({paper.key}.md)"
        lines.append(f"- {name}: {answer} {all_items}.")
    return "\n".join([*lines, *further]) + "\n"
