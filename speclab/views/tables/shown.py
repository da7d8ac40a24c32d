"""A table's page in a notebook: text, a figure, more text."""

from __future__ import annotations

import json
from collections.abc import Iterable

import plotly.graph_objects as go

from speclab.papers.ledger import LedgerLine
from speclab.papers.table_result import TableResult
from speclab.views.charts.table_charts import chart

from .dot_plot import as_figure
from .html import as_html
from .markdown import opening_markdown, page_markdown, plot_markdown, rest_markdown
from .table_page import TablePage, table_page

PLOTLY = "application/vnd.plotly.v1+json"


class Shown:
    """Shows HTML or a figure in a notebook, and Markdown elsewhere."""

    def __init__(self, markdown: str, figure: go.Figure | None = None):
        self.markdown = markdown
        self.figure = figure

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:
        text = {"text/plain": self.markdown}
        if self.figure is not None:
            return {PLOTLY: json.loads(self.figure.to_json()), **text}
        return {"text/html": as_html(self.markdown), **text}

    def __repr__(self) -> str:
        return self.markdown


class ShownTable:
    """A table's page; its figure is the dot plot, or the chart that its file names."""

    def __init__(self, result: TableResult, page: TablePage):
        self.page = page
        self.figure = as_figure(self.page.plot) if self.page.plot else None
        if result.table.chart is not None:
            self.figure = chart(result)

    @property
    def parts(self) -> list[Shown]:
        """What a notebook displays, from top to bottom."""
        parts = [Shown(opening_markdown(self.page))]
        if self.figure is not None:
            parts.append(Shown(plot_markdown(self.page), self.figure))
        return [*parts, Shown(rest_markdown(self.page))]

    def _ipython_display_(self) -> None:
        from IPython import display

        display.display(*self.parts)  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:
        return page_markdown(self.page)


def show(result: TableResult, others: Iterable[LedgerLine] = ()) -> ShownTable:
    """A table's result as a page; ``others`` are ledger lines of other machines."""
    return ShownTable(result, table_page(result, others))
