"""Executed notebooks as pages that open from the disk, and the page that lists them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Set
from html import escape
from typing import TYPE_CHECKING, Any

from speclab.views.notebook_files import PLOTLY, WIDGET, parse_notebook
from speclib import paths

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from .book import Book

INDEX = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>speclib: all reports</title>
<meta name="viewport" content="width=device-width">
<style>body {{ max-width: 50rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.6
sans-serif; color-scheme: light dark; }}</style></head><body>{text}</body></html>
"""


def notebook_page(executed: str, title: str) -> str:
    """The page of an executed notebook (its JSON text): texts and outputs, no code.

    Its charts ask for plotly.min.js beside it, and nothing else is asked for.
    """
    from nbconvert import HTMLExporter

    notebook = parse_notebook(executed)
    notebook.metadata.pop("widgets", None)  # a script from elsewhere would show them
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            _prepare_output(output)
    make_exporter: Callable[..., Any] = HTMLExporter
    exporter = make_exporter(
        exclude_input=True, mathjax_url="", require_js_url="", jquery_url=""
    )
    resources = {"metadata": {"name": title}}
    html: str = exporter.from_notebook_node(notebook, resources=resources)[0]
    start = '<script src="plotly.min.js"></script></head>'
    link = '<p><a href="index.html">All reports</a></p>'
    page = html.replace("</head>", start, 1)
    return page.replace("<main>", f"<main>{link}", 1)


def _prepare_output(output: NotebookNode) -> None:
    """Turns a chart into HTML and a widget into its picture, and describes pictures."""
    forms = output.get("data", {})
    if forms.pop(WIDGET, None) and "image/png" not in forms:
        forms.clear()  # a widget without a picture, such as a progress bar
    if PLOTLY in forms:
        output.data = {"text/html": _chart_html(forms[PLOTLY])}
    elif "image/png" in forms:
        words = "".join(forms.get("text/plain", ""))
        output.metadata.setdefault("image/png", {})["alt"] = words


def _chart_html(figure: dict[str, Any]) -> str:
    import plotly.graph_objects as go
    from plotly.io import to_html

    chart = go.Figure(figure["data"], figure["layout"])
    html: str = to_html(
        chart,
        full_html=False,
        include_plotlyjs=False,
        config={"responsive": True, "displaylogo": False},
    )
    return html


def notebook_markdown(executed: str) -> str:
    """The texts of an executed notebook and the text of its outputs, as Markdown.

    Code is left out. It takes the plain text of an output, which is Markdown where
    speclab's own pages are displayed.
    """
    parts = []
    for cell in parse_notebook(executed).cells:
        if cell.cell_type == "markdown":
            parts.append("".join(cell.source))
        for output in cell.get("outputs", ()):
            text = "".join(output.get("data", {}).get("text/plain", ""))
            if text:
                parts.append(text.rstrip())
    return "\n\n".join(parts) + "\n"


def index_markdown(books: Iterable[Book]) -> str:
    """A line per paper: its title, and how many of its verdicts are which."""
    lines = ["# Reports", ""]
    for book in books:
        verdicts: Counter[str] = Counter()
        for result in book.filled.values():
            verdicts.update(line.holds for line in result.claims)
        counts = ", ".join(f"{count} {name}" for name, count in verdicts.most_common())
        title = book.paper.title
        lines.append(f"- [{title}]({book.paper.key}.md): verdicts: {counts or 'none'}")
    if (paths.REPORTS / "audit.md").is_file():
        lines += ["- [The audit](audit.md): what papers and codes claim, tried here"]
    lines += ["- [All numbers](ledger.csv) and [all claims](claims.csv), as tables"]
    return "\n".join(lines) + "\n"


def index_html(markdown: str, pages: Set[str]) -> str:
    """The same as a page; its links lead to the pages that are there."""
    import mistune

    text = str(mistune.html(markdown))
    for page in sorted(pages):
        text = text.replace(f'href="{escape(page)}.md"', f'href="{page}.html"')
    return INDEX.format(text=text)
