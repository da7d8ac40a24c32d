"""Pages: an executed notebook as offline HTML, and the index over all papers.

No page loads or links anything outside its folder. Charts are drawn from their data by one copy of
plotly.min.js beside the pages; widgets are replaced by their pictures. Knows no run and no clock.
"""

from __future__ import annotations

import copy
import json
import re
from html import escape
from pathlib import Path

from speclib.views.tables.html import (
    STYLE,
    failures_html,
    summary_html,
    table_html,
    verdicts_html,
)
from speclib.views.tables.tally import count

HERE = Path(__file__).parent
PLOTLY, WIDGET = (
    "application/vnd.plotly.v1+json",
    "application/vnd.jupyter.widget-view+json",
)
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>{css}</style>{style}</head>
<body>{body}</body></html>
"""
KINDS = (
    ("paper", "printed in the paper, transcribed with table, row and column"),
    (
        "virtual",
        "the method's real code on a simulated clock, with the paper's own latencies",
    ),
    (
        "emulated",
        "that code with real processes that wait these latencies out, wall-clock, on "
        "fewer tokens; the ledger's notes give the time over the virtual clock's",
    ),
    ("measured", "real models in real processes, wall-clock, on the machine named"),
)


# -- notebooks -----------------------------------------------------------------------------------
def notebook_page(executed: str, title: str) -> str:
    """HTML of an executed notebook (its JSON text), with a table of contents."""
    import nbformat

    notebook = prepared(nbformat.reads(executed, as_version=4))
    cells = "".join(filter(None, map(_cell, notebook.cells)))
    headings = re.findall(r'<h([12]) id="([^"]+)">(.*?)</h\1>', cells)[
        1:
    ]  # not the title
    links = "".join(
        f'<a class="level-{level}" href="#{anchor}">{text}</a>'
        for level, anchor, text in headings
    )
    body = (
        f'<div class="with-toc"><nav class="toc"><a class="home" href="index.html">All reports'
        f"</a>{links}</nav><main>{cells}</main></div>"
        f'<script src="plotly.min.js"></script><script>{(HERE / "pages.js").read_text()}'
        "</script>"
    )
    return _page(title, body)


def prepared(notebook):
    """A copy whose outputs a page without a kernel can show: charts as data, no widgets that have
    another form, no style that the page has already."""
    notebook = copy.deepcopy(notebook)
    notebook.metadata.pop("widgets", None)
    tags = [cell.metadata.get("tags", []) for cell in notebook.cells]
    if any("injected-parameters" in t for t in tags):  # the defaults were not used
        notebook.cells = [
            c
            for c, t in zip(notebook.cells, tags, strict=True)
            if "parameters" not in t
        ]
    for cell in notebook.cells:
        if "outputs" in cell:
            cell.outputs = [o for o in map(_shown, cell.outputs) if o is not None]
    return notebook


def _shown(output):
    """An output as a page can show it; None for a widget that has no other form (a progress
    bar)."""
    data = output.get("data", {})
    if PLOTLY in data:
        output["data"] = {"text/html": _chart(data[PLOTLY])}
    elif WIDGET in data:
        if "image/png" not in data:
            return None
        output["data"] = {
            k: v for k, v in data.items() if k in ("image/png", "text/plain")
        }
    elif "text/html" in data:
        data["text/html"] = "".join(data["text/html"]).replace(STYLE, "")
    return output


def _chart(figure: dict) -> str:
    """Data and the place to draw it; the page's script does. "</" would end the script element."""
    shown = json.dumps({k: figure[k] for k in ("data", "layout")}).replace("</", "<\\/")
    height = figure["layout"].get("height", 400)
    return (
        f'<div class="plotly-chart"><div style="min-height:{height}px"></div>'
        f'<script type="application/json">{shown}</script></div>'
    )


def _cell(cell) -> str:
    source = "".join(cell.source)
    if cell.cell_type == "markdown":
        return f'<div class="cell text">{_markdown(source)}</div>'
    if cell.cell_type != "code" or not source.strip():
        return ""
    outputs = "".join(
        f'<div class="output">{text}</div>'
        for text in map(_output, cell.outputs)
        if text
    )
    return (
        f'<div class="cell"><div class="code"><pre>{escape(source)}</pre></div>'
        f"{outputs}</div>"
    )


def _markdown(source: str) -> str:
    """HTML of a Markdown cell; headings get ids."""
    from nbconvert.filters import markdown2html

    html = re.sub(r'<a class="anchor-link"[^>]*>.*?</a>', "", markdown2html(source))
    return re.sub(r"<h([1-6])[^>]*>(.*?)</h\1>", _heading, html, flags=re.S)


def _heading(match) -> str:
    level, text = match.groups()
    plain = re.sub(r"<[^>]+>", "", text).strip()
    anchor = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    return f'<h{level} id="{anchor}">{text}</h{level}>'


def _output(output) -> str:
    """The richest form that a page can show."""
    if output.output_type == "stream":
        return (
            f"<pre>{escape(''.join(output.text))}</pre>"
            if output.name == "stdout"
            else ""
        )
    if output.output_type == "error":
        return f"<pre>{escape(output.ename)}: {escape(output.evalue)}</pre>"
    data = output.get("data", {})
    text = escape("".join(data.get("text/plain", "")))
    if "text/html" in data:
        return "".join(data["text/html"])
    if "image/png" in data:
        width = output.get("metadata", {}).get("image/png", {}).get("width")
        size = f' width="{width}"' if width else ""
        return f'<img alt="{text}"{size} src="data:image/png;base64,{data["image/png"].strip()}">'
    return f"<pre>{text}</pre>" if text else ""


# -- index ---------------------------------------------------------------------------------------
def summary(paper, filled: dict, profile: str) -> dict:
    """What the index says of one paper, as JSON values: it outlives the run that made it."""
    best = max(
        filled.values(), key=lambda f: (len(f.kinds), f.table.item.startswith("table"))
    )
    return {
        "key": paper.key,
        "title": paper.title,
        "authors": ", ".join(paper.authors),
        "year": paper.year,
        "profile": profile,
        "counts": count(filled),
        "summary": summary_html(filled),
        "headline": table_html(best),
        "broken": verdicts_html(filled, "no", ("virtual", "emulated", "measured")),
        "failed": failures_html(
            {k: v for f in filled.values() for k, v in f.errors.items()}
        ),
    }


def index_page(entries: list[dict], facts: dict[str, str]) -> str:
    """The index over ``entries`` (see ``summary``), made on a machine with these ``facts``."""
    kinds = "".join(f"<dt data-kind={k}>{k}</dt><dd>{text}</dd>" for k, text in KINDS)
    lines = "".join(
        f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items()
    )
    body = (
        "<main><h1>Parallel speculative decoding, reproduced</h1>"
        "<p>Every number carries its kind, and kinds are never mixed:</p>"
        f'<div class="speclib"><dl class="facts sources">{kinds}</dl></div>'
        f"{''.join(map(_entry, entries))}"
        '<p class="links"><a href="ledger.csv">ledger.csv</a><a href="claims.csv">claims.csv'
        "</a></p><p class=soft>Every number with its unit, setup, interval and source; every "
        "verdict with its reason.</p>"
        f'<h3>This machine</h3><dl class="facts">{lines}</dl></main>'
    )
    return _page("speclib: reports", body)


def _entry(entry: dict) -> str:
    key = escape(entry["key"])
    quick = (
        ""
        if entry["profile"] == "full"
        else (
            f" The <b>{escape(entry['profile'])}</b> profile: fewer requests and prompts, wider "
            "intervals."
        )
    )
    return (
        f'<section class="card"><h2>{escape(entry["title"])}</h2>'
        f'<p class="soft">{escape(entry["authors"])}, {entry["year"]}. Made {entry["made"]}.'
        f'{quick}</p><p class="links"><a href="{key}.html">{key}.html</a>'
        f'<a href="{key}.md">{key}.md</a></p>'
        f'<div class="speclib">{entry["summary"]}{entry["failed"]}{entry["headline"]}'
        f"{entry['broken']}</div></section>"
    )


def _page(title: str, body: str) -> str:
    css = (HERE / "pages.css").read_text("utf-8")
    return PAGE.format(title=escape(title), css=css, style=STYLE, body=body)
