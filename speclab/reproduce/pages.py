"""Turns executed notebooks into HTML pages that open from disk, and lists them."""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from html import escape
from typing import TYPE_CHECKING, Any

from speclab.views.notebook_files import PLOTLY, WIDGET, parse_notebook

if TYPE_CHECKING:
    from nbformat import NotebookNode


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a;
background: white; font: 1rem/1.6 sans-serif; }}
.output_subarea {{ overflow-x: auto; }} img {{ max-width: 100%; height: auto; }}
th, td {{ padding: 0.1rem 0.5rem; vertical-align: top; }}
.anchor-link {{ display: none; }}
</style><script src="plotly.min.js"></script></head><body>{body}</body></html>
"""


def notebook_page(executed: str, title: str) -> str:
    """The HTML page of an executed notebook (its JSON), with outputs but no code.

    The page loads nothing but plotly.min.js, for its charts, from the same folder.
    """
    from nbconvert import HTMLExporter

    notebook = parse_notebook(executed)
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            _prepare_output(output)
    make_exporter: Callable[..., Any] = HTMLExporter
    exporter = make_exporter(
        template_name="basic", exclude_input=True, exclude_output_prompt=True
    )
    html: str = exporter.from_notebook_node(notebook)[0]
    link = '<p><a href="index.html">All reports</a></p>'
    return PAGE.format(title=escape(title), body=link + html)


def _prepare_output(output: NotebookNode) -> None:
    """Turns charts into HTML and widgets into pictures, and adds alternative texts."""
    forms = output.get("data", {})
    if forms.pop(WIDGET, None) and "image/png" not in forms:
        output.data = {"text/html": ""}  # for example, a progress bar
    elif PLOTLY in forms:
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


def index_html(markdown: str, pages: Set[str]) -> str:
    """The index as a page, which links to HTML pages, and to tables in them."""
    import mistune

    text = str(mistune.html(markdown))
    for page in sorted(pages):
        name = re.escape(page)
        text = re.sub(rf'href="{name}\.md"', f'href="{page}.html"', text)
        text = re.sub(rf'href="{name}/([\w-]+)\.md"', rf'href="{page}.html#\1"', text)
    return PAGE.format(title="speclib: all reports", body=text)
