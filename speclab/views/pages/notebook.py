"""An executed notebook as an offline page.

Charts are rendered in the browser, from their data, by one copy of plotly.min.js beside
the pages. Widgets are replaced by their pictures. Knows no run and no clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape, unescape
from typing import TYPE_CHECKING, Any, NamedTuple

from speclab.views.anchors import as_markdown_anchor

from .layout import render
from .notebook_files import PLOTLY, WIDGET, parse_notebook
from .race import Race, race_figure

if TYPE_CHECKING:
    from nbformat import NotebookNode

CHART_HEIGHT = 400  # pixels, of a chart that does not say its height
# The style that our tables bring with them where they are displayed alone.
STORED_STYLE = re.compile(r"<style>[^<]*\.speclib[^<]*</style>")


class Heading(NamedTuple):
    """A heading of a page: its level, its id and its text as HTML."""

    level: str
    anchor: str
    text: str


class Picture(NamedTuple):
    """A PNG in base64; ``width`` in pixels, or None where the notebook says none."""

    png: str
    width: int | None
    description: str


class Chart(NamedTuple):
    """A chart's data and layout, and the pixels to keep free for it."""

    figure: dict[str, object]
    height: float


@dataclass(frozen=True)
class Output:
    """What a cell put out: of these, the one that is there is shown.

    ``html`` is shown as it is, ``text`` as plain text.
    """

    chart: Chart | None = None
    html: str = ""
    picture: Picture | None = None
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.chart or self.html or self.picture or self.text)


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook: the HTML of a text, or code with its outputs."""

    html: str = ""
    code: str = ""
    outputs: tuple[Output, ...] = ()


def notebook_page(
    executed: str,
    title: str,
    up: str = "",
    note: str = "",
    races: Mapping[str, Race] | None = None,
    front: str = "",
) -> str:
    """The page of an executed notebook (its JSON text), with a table of contents.

    up      from the folder of the page to that of the reports, such as "../"
    note    a sentence for the reader, beside the table of contents
    races   by a piece of the source of a cell: each replaces what that cell put out
    front   the item whose chart stands below the title, too; the first one that has a
            chart, if that has none
    """
    notebook = parse_notebook(executed)
    waiting = dict(races or {})
    cells = []
    for cell in _cells_to_show(notebook):
        source = "".join(cell.source)
        if cell.cell_type == "markdown":
            cells.append(Cell(html=_render_markdown(source)))
        elif cell.cell_type == "code" and source.strip():
            outputs = _outputs(cell)
            for piece in [piece for piece in waiting if piece in source]:
                race = waiting.pop(piece)
                outputs = (Output(html=race_figure(race, _still(outputs))),)
            cells.append(Cell(code=source, outputs=outputs))
    cells = _with_front_chart(cells, front)
    return _render_cells(cells, title, up=up, note=note)


def _with_front_chart(cells: list[Cell], front: str) -> list[Cell]:
    """The cells with a chart below the page's title, and links to all charts.

    Where there are no charts, or no title, they stay as they are.
    """
    charts: dict[str, Output] = {}  # by a link to the section where the chart stands
    chosen = ""
    link = ""
    for cell in cells:
        for heading in _list_headings([cell]):
            link = f'<a href="#{heading.anchor}">{heading.text}</a>'
        for output in cell.outputs:
            if output.chart:
                charts.setdefault(link, output)
                if f'.chart("{front}")' in cell.code:
                    chosen = link
    if not charts or "</h1>" not in cells[0].html:
        return cells

    title, end_of_title, rest = cells[0].html.partition("</h1>")
    chosen = chosen or next(iter(charts))
    sentence = f"<p>{chosen}: the section explains this chart.</p>"
    others = "".join(f"<li>{other}</li>" for other in charts if other != chosen)
    if others:
        summary = f"<summary>The other {len(charts) - 1} charts</summary>"
        sentence += f"<details>{summary}<ul>{others}</ul></details>"
    lead = Cell(html=sentence, outputs=(charts[chosen],))
    return [Cell(html=title + end_of_title), lead, Cell(html=rest), *cells[1:]]


def _still(outputs: Iterable[Output]) -> str:
    """HTML of the pictures among a cell's outputs, for readers without scripts."""
    pictures = [output.picture for output in outputs if output.picture]
    images = []
    for picture in pictures:
        words = escape(picture.description)
        images.append(f'<img alt="{words}" src="data:image/png;base64,{picture.png}">')
    return "".join(images)


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


def markdown_page(markdown: str, title: str, up: str = "") -> str:
    """The page of a Markdown text, with a table of contents; ``up`` as above."""
    cells = [Cell(html=_render_markdown(markdown))]
    return _render_cells(cells, title, up=up)


def _render_cells(
    cells: list[Cell],
    title: str,
    *,
    up: str = "",
    note: str = "",
) -> str:
    headings = _list_headings(cells)[1:]  # the first is the page's title
    return render(
        "notebook.html",
        title=title,
        cells=cells,
        headings=headings,
        has_charts=_has_charts(cells),
        up=up,
        note=note,
    )


def _has_charts(cells: list[Cell]) -> bool:
    for cell in cells:
        if any(output.chart for output in cell.outputs):
            return True
    return False


def _cells_to_show(notebook: NotebookNode) -> list[NotebookNode]:
    """All cells, without the defaults of parameters where others were injected."""
    tags_of_cells = [cell.metadata.get("tags", []) for cell in notebook.cells]
    if not any("injected-parameters" in tags for tags in tags_of_cells):
        return list(notebook.cells)

    cells = []
    for cell, tags in zip(notebook.cells, tags_of_cells, strict=True):
        if "parameters" not in tags:
            cells.append(cell)
    return cells


# -- text ------------------------------------------------------------------------------
def _render_markdown(source: str) -> str:
    """HTML of a Markdown cell; its headings get ids."""
    from nbconvert.filters import markdown2html

    html = markdown2html(source)
    html = re.sub(r'<a class="anchor-link"[^>]*>.*?</a>', "", html)
    return re.sub(r"<h([1-6])[^>]*>(.*?)</h\1>", _with_id, html, flags=re.S)


def _with_id(heading: re.Match[str]) -> str:
    """A heading whose id is its text: "A section" has the id "a-section"."""
    level, text = heading.groups()
    plain_text = unescape(re.sub(r"<[^>]+>", "", text)).strip()
    anchor = as_markdown_anchor(plain_text)
    return f'<h{level} id="{anchor}">{text}</h{level}>'


def _list_headings(cells: list[Cell]) -> list[Heading]:
    """The headings of the two highest levels."""
    headings = []
    for cell in cells:
        for match in re.findall(r'<h([12]) id="([^"]+)">(.*?)</h\1>', cell.html):
            headings.append(Heading(*match))
    return headings


# -- outputs ---------------------------------------------------------------------------
def _outputs(cell: NotebookNode) -> tuple[Output, ...]:
    """The outputs of a code cell that a page can show."""
    outputs = [_output(output) for output in cell.outputs]
    return tuple(output for output in outputs if output)


def _output(output: NotebookNode) -> Output:
    """The richest form of an output that a page without a kernel can show."""
    if output.output_type == "stream":
        is_shown = output.name == "stdout"
        return Output(text="".join(output.text)) if is_shown else Output()
    if output.output_type == "error":
        return Output(text=f"{output.ename}: {output.evalue}")

    data = output.get("data", {})
    description = "".join(data.get("text/plain", ""))
    if PLOTLY in data:
        return Output(chart=_chart(data[PLOTLY]))
    if WIDGET in data and "image/png" not in data:
        return Output()  # a widget without another form, such as a progress bar
    if "text/html" in data and WIDGET not in data:
        # The page has the style already; what is stored may be an older one.
        return Output(html=STORED_STYLE.sub("", "".join(data["text/html"])))
    if "image/png" in data:
        of_picture = output.get("metadata", {}).get("image/png", {})
        png = data["image/png"].strip()
        return Output(picture=Picture(png, of_picture.get("width"), description))
    return Output(text=description)


def _chart(figure: Mapping[str, dict[str, Any]]) -> Chart:
    """A chart without its configuration."""
    parts: dict[str, object] = {name: figure[name] for name in ("data", "layout")}
    height = figure["layout"].get("height", CHART_HEIGHT)
    return Chart(parts, height)
