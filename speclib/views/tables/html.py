"""Tables and verdicts as HTML: the kinds of number side by side, no script, no link.

Colours are mixed from the reader's own text colour, so that light and dark pages both work. Every
table scrolls inside its own box.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from .grid import MISSING, ORDER, Entry, Grid, Source, by_reason, grid, sources_of
from .tally import COUNTS, counts, is_own

STYLE = f"<style>{(Path(__file__).parent / 'tables.css').read_text('utf-8')}</style>"
LONG = 24  # tables with more rows than this are folded
SIGNS = {"yes": ("✓", "holds"), "no": ("✗", "does not hold"), "n/a": ("–", "n/a")}


def section_html(filled, others: Iterable = ()) -> str:
    """Everything known of one item: what it claims, its numbers, verdicts, errata, sources."""
    table, others = filled.table, list(others)
    parts = [
        f'<p class="about">{escape(" ".join(table.about.split()))}</p>',
        table_html(filled, others),
        failures_html(filled.errors),
        claims_html(filled),
        errata_html(table),
        sources_html(filled, others),
    ]
    return f'{STYLE}<div class="speclib">{"".join(parts)}</div>'


# -- numbers -------------------------------------------------------------------------------------
def table_html(filled, others: Iterable = ()) -> str:
    """Rows and columns as printed (exchanged where too wide); under each column its kinds."""
    g = grid(filled, others).narrow()
    if not g.cells:
        return (
            '<p class="small">The text we transcribed from holds no number of it.</p>'
        )
    table = filled.table
    caption = (
        f'<p class="caption">{escape(table.title)} '
        f"<span class=small>[{escape(g.unit)}]; columns: {escape(g.columns_are)}</span></p>"
    )
    body = "".join(
        f"<tr><th scope=row>{escape(r)}</th>{_row(g, r)}</tr>" for r in g.rows
    )
    html = (
        f'<div class="scroll" tabindex=0><table aria-label="{escape(table.item)}">'
        f"<thead>{_head(g)}</thead><tbody>{body}</tbody></table></div>{_legend(g)}"
    )
    if len(g.rows) <= LONG:
        return caption + html
    return (
        f"{caption}<details><summary>All {len(g.rows)} rows</summary>{html}</details>"
    )


def _head(g: Grid) -> str:
    top = "".join(
        f'<th class="group" scope=colgroup colspan={len(g.columns_of(c))}>{escape(c)}'
        "</th>"
        for c in g.columns
    )
    corner = f"<th>{escape(g.rows_are)}</th>"
    if len(g.sources) < 2:
        return f"<tr>{corner}{top}</tr>"
    kinds = "".join(
        f'<th class="kind {_edge(i)}" data-kind={s.kind}>{escape(s.label)}</th>'
        for c in g.columns
        for i, s in enumerate(g.columns_of(c))
    )
    return f"<tr>{corner}{top}</tr><tr><th></th>{kinds}</tr>"


def _row(g: Grid, row: str) -> str:
    return "".join(
        _cell(g.entry(row, c, s), s, _edge(i))
        for c in g.columns
        for i, s in enumerate(g.columns_of(c))
    )


def _edge(i: int) -> str:
    return "" if i else "edge"


def _cell(entry: Entry, source: Source, edge: str) -> str:
    tip = "; ".join(
        filter(None, [entry.spread and f"95 %: {entry.spread}", entry.note])
    )
    title = f' title="{escape(tip)}"' if tip else ""
    mark = f"<sup>{entry.mark}</sup>" if entry.mark else ""
    error = f"<small>{entry.error}</small>" if entry.error else ""
    return (
        f'<td class="{edge}" data-kind={source.kind}{title}>{escape(entry.text)}{mark}'
        f"{error}</td>"
    )


def _legend(g: Grid) -> str:
    marks = {e.mark for cell in g.cells.values() for e in cell.values()}
    small = [
        (s, e.error) for cell in g.cells.values() for s, e in cell.items() if e.error
    ]
    errors = any(s.kind != "paper" for s, _ in small)
    words = ["small: relative difference to print"] if errors else []
    words += (
        ["brackets: printed so"] if any(s.kind == "paper" for s, _ in small) else []
    )
    words += (
        ["c: printed cell that set the acceptance rate or the clock"]
        if "c" in marks
        else []
    )
    words += ["†: see errata"] if "†" in marks else []
    words += ["hover: 95 % interval, window, notes"] if errors else []
    return f'<p class="small">{"; ".join(words)}</p>' if words else ""


def failures_html(errors: dict[str, str]) -> str:
    items = "".join(
        f"<li><b>{escape(why)}</b><br>{escape('; '.join(names))}</li>"
        for why, names in by_reason(errors)
    )
    return (
        f'<div class="failed"><p>Cells that failed</p><ul>{items}</ul></div>'
        if items
        else ""
    )


# -- verdicts ------------------------------------------------------------------------------------
def claims_html(filled) -> str:
    """One row per claim, one column per kind; what was found, and why a verdict is no."""
    kinds = [k for k in ORDER if any(c.kind == k for c in filled.claims)]
    if not kinds:
        return ""
    head = "".join(f'<th class="kind" data-kind={k}>{k}</th>' for k in kinds)
    found = {(c.claim, c.kind): c for c in filled.claims}
    body = "".join(_claim(claim, kinds, found) for claim in filled.table.claims)
    return (
        '<p class="caption">Claims</p><div class="scroll" tabindex=0>'
        '<table class="claims" aria-label="claims">'
        f"<thead><tr><th>claim</th><th>expected</th>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _claim(claim, kinds: list[str], found: dict) -> str:
    rows = [found.get((claim.id, k)) for k in kinds]
    expected = next((r.expected for r in rows if r and r.expected), "")
    cells = "".join(_verdict(r) for r in rows)
    return (
        f"<tr><th scope=row>{escape(claim.text)} <span class=small>{escape(claim.source)}"
        f" · {escape(claim.id)}</span></th><td class=text>{escape(expected)}</td>{cells}</tr>"
    )


def _verdict(row) -> str:
    if row is None:
        return f"<td class=text>{MISSING}</td>"
    sign, words = SIGNS[row.holds]
    note = f"<div class=small>{escape(row.note)}</div>" if row.note else ""
    value = f" <span class=value>{escape(row.value)}</span>" if row.value else ""
    return (
        f'<td class=text><span class="verdict {row.holds.replace("/", "")}">{sign} {words}'
        f"</span>{value}{note}</td>"
    )


def verdicts_html(filled: dict, holds: str, kinds: Iterable[str]) -> str:
    """The claims of all items with one verdict, folded: what a reader should know first. Those of
    the paper and our own checks of it are counted apart."""
    found = [
        (f, c)
        for f in filled.values()
        for c in f.claims
        if c.holds == holds and c.kind in kinds
    ]
    if not found:
        return ""
    claims = {(f.table.item, c.id): c for f, _ in found for c in f.table.claims}
    own = sum(is_own(claims[c.item, c.claim]) for _, c in found)
    body = "".join(
        f"<tr><th scope=row>{c.item}</th><td class=text>{_said(claims[c.item, c.claim])}</td>"
        f"<td class=text>{escape(c.expected)}</td>{_verdict(c)}"
        f"<td data-kind={c.kind}>{c.kind}</td></tr>"
        for _, c in found
    )
    words = {
        "yes": "that hold",
        "no": "that do not hold",
        "n/a": "that could not be judged",
    }
    return (
        f"<details><summary>{len(found)} verdicts on claims {words[holds]}: "
        f"{len(found) - own} on the paper's own, {own} on our checks</summary>"
        '<div class="scroll" tabindex=0><table class="claims"><thead><tr><th>item</th>'
        "<th>claim</th><th>expected</th><th>found</th><th>kind</th></tr></thead>"
        f"<tbody>{body}</tbody></table></div></details>"
    )


def _said(claim) -> str:
    """A claim and where it comes from."""
    return f"{escape(claim.text)} <span class=small>{escape(claim.source)}</span>"


def summary_html(filled: dict) -> str:
    """Per kind: cells filled, verdicts."""
    body = "".join(
        f"<tr><th scope=row data-kind={kind}>{kind}</th>"
        + "".join(f"<td>{n}</td>" for n in c.values())
        + "</tr>"
        for kind, c in counts(filled).items()
    )
    head = "".join(f"<th>{name}</th>" for name in COUNTS)
    return (
        f'{STYLE}<div class="speclib"><div class="scroll"><table><thead><tr>{head}</tr>'
        f"</thead><tbody>{body}</tbody></table></div></div>"
    )


# -- errata and sources --------------------------------------------------------------------------
def errata_html(table) -> str:
    """What the audit found in the print."""
    items = "".join(
        f"<li><b>{escape(e.kind)}</b> {escape(places(e))}: {escape(' '.join(e.note.split()))}</li>"
        for e in table.errata
    )
    return (
        f'<div class="errata"><p>Errata of the print</p><ul>{items}</ul></div>'
        if items
        else ""
    )


def places(erratum) -> str:
    """The cells an erratum names, as words."""
    return "; ".join(
        ", ".join("all" if x == "*" else x for x in dict.fromkeys(cell))
        for cell in erratum.cells
    )


def sources_html(filled, others: Iterable = ()) -> str:
    lines = "".join(
        f"<dt data-kind={k}>{k}</dt><dd>{escape('; '.join(v))}</dd>"
        for k, v in sources_of(filled, others).items()
    )
    return f'<dl class="small sources">{lines}</dl>' if lines else ""
