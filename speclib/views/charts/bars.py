"""Bars in groups, bars in parts and lines by setting, as plotly figures: DuoDecoding's items.

Reads values; knows no run and no file.
"""

from __future__ import annotations

import plotly.graph_objects as go

from .style import COLOURS, PALETTE, add, finish, labels, panels

SHADES = (*PALETTE, "#c9584c", "#6d7f95")
DASHES = {"paper": "dot", "virtual": "solid", "emulated": "dash", "measured": "dashdot"}
MANY = 8  # labels that still fit side by side
PARTS = ("draft", "target", "verification", "communication")


def columns_of(filled, kind: str, unit: str | None = None) -> list[str]:
    """The columns of one unit (the table's) that have values of a kind."""
    table, found = filled.table, {c for _, c in filled.values[kind]}
    return [
        c
        for c in table.column_labels
        if c in found
        and table.column.get(c, {}).get("unit", table.unit) == (unit or table.unit)
    ]


def targets(filled) -> go.Figure:
    """Rows "target / method": a panel per target and kind, a group per column, a bar per method."""
    rows = [tuple(row.split(" / ", 1)) for row in filled.table.row_labels]
    methods = list(dict.fromkeys(m for _, m in rows))
    wanted = [
        (t, kind)
        for t in dict.fromkeys(t for t, _ in rows)
        for kind in filled.kinds
        if any(r.startswith(f"{t} / ") for r, _ in filled.values[kind])
    ]
    figure = panels([f"{t} [{kind}]" for t, kind in wanted], 1, shared=True)
    for i, (target, kind) in enumerate(wanted):
        columns = columns_of(filled, kind)
        for j, method in enumerate(methods):
            values = [
                filled.values[kind].get((f"{target} / {method}", c)) for c in columns
            ]
            if any(v is not None for v in values):
                _bar(figure, i, [c.split(" / ")[0] for c in columns], values, method, j)
    return finish(_once(figure), filled, len(wanted), 1)


def groups(filled, by_row: bool = False) -> go.Figure:
    """A panel per kind, with the columns that have values in it: a group per column, a bar per row;
    ``by_row``: the other way round."""
    table = filled.table
    shown = [
        c
        for c in table.column_labels
        if any(c in columns_of(filled, kind) for kind in filled.kinds)
    ]
    figure = panels(filled.kinds, 1)
    for i, kind in enumerate(filled.kinds):
        values, columns = filled.values[kind], columns_of(filled, kind)
        rows = [r for r in table.row_labels if any((r, c) in values for c in columns)]
        bars, names = (columns, rows) if by_row else (rows, columns)
        every = shown if by_row else list(table.row_labels)
        for bar in bars:
            found = [values.get((x, bar) if by_row else (bar, x)) for x in names]
            _bar(
                figure,
                i,
                labels(names) if len(names) <= MANY else names,
                found,
                bar,
                every.index(bar),
            )
    finish(_once(figure), filled, len(filled.kinds), 1)
    many = any(len(bar.x) > MANY for bar in figure.data)
    turned = {"margin_b": 120, "height": figure.layout.height + 64}
    return figure.update_xaxes(tickangle=-35).update_layout(turned) if many else figure


def tasks(filled) -> go.Figure:
    """``groups`` with a group per row."""
    return groups(filled, by_row=True)


def _bar(figure, i: int, x: list[str], y: list, name: str, colour: int) -> None:
    add(
        figure,
        i,
        go.Bar(
            x=x,
            y=y,
            name=name,
            legendgroup=name,
            marker_color=SHADES[colour % len(SHADES)],
            hovertemplate=f"{name}, %{{x}}: %{{y:.3g}}<extra></extra>",
        ),
    )


def _once(figure: go.Figure) -> go.Figure:
    """Every name stands in the legend once."""
    seen: set[str] = set()
    for trace in figure.data:
        trace.showlegend = trace.name not in seen
        seen.add(trace.name)
    return figure


def parts(filled) -> go.Figure:
    """Milliseconds of an iteration by part, side by side since parts overlap, and its length: a
    panel per kind that has them."""
    kinds = [k for k in filled.kinds if any(c in PARTS for _, c in filled.values[k])]
    figure = panels(kinds, 1)
    for i, kind in enumerate(kinds):
        rows = list(filled.table.row_labels)
        for j, part in enumerate((*PARTS, "time per iteration")):
            seconds = [filled.values[kind].get((row, part)) for row in rows]
            _bar(
                figure,
                i,
                rows,
                [None if s is None else 1000 * s for s in seconds],
                part,
                j,
            )
    return finish(_once(figure), filled, len(kinds), 1).update_yaxes(title_text="ms")


def budgets(filled) -> go.Figure:
    """Speed over that at the budget c, in per cent off: a panel per column, a line per kind."""
    table = filled.table
    figure = panels(table.column_labels, 2)
    for i, column in enumerate(table.column_labels):
        for kind in filled.kinds:
            found = {
                r: filled.values[kind][r, column]
                for r in table.row_labels
                if (r, column) in filled.values[kind]
            }
            if "c" in found:
                _line(
                    figure,
                    i,
                    list(found),
                    [100 * (v / found["c"] - 1) for v in found.values()],
                    kind,
                    COLOURS[kind],
                    DASHES[kind],
                )
    finish(_once(figure), filled, len(table.column_labels), 2, below="budget")
    figure.update_yaxes(rangemode="normal", title_text="")
    return figure.update_yaxes(title_text="% off c", col=1)


def lengths(filled) -> go.Figure:
    """A line per column and kind over the number that a row's label begins with, doubling; the
    columns of another unit in a panel of their own."""
    table = filled.table
    units = list(
        dict.fromkeys(
            table.column.get(c, {}).get("unit", table.unit) for c in table.column_labels
        )
    )
    figure = panels([f"[{unit}]" for unit in units], 2)
    for i, unit in enumerate(units):
        for j, column in enumerate(table.column_labels):
            for kind in filled.kinds:
                found = {
                    int(r.split()[0]): v
                    for (r, c), v in filled.values[kind].items()
                    if c == column and r[0].isdigit()
                }
                if found and column in columns_of(filled, kind, unit):
                    _line(
                        figure,
                        i,
                        list(found),
                        list(found.values()),
                        f"{column} [{kind}]",
                        SHADES[j % len(SHADES)],
                        DASHES[kind],
                    )
    figure.update_xaxes(type="log", dtick=0.30103)
    finish(_once(figure), filled, len(units), 2, below="tokens")
    figure.update_yaxes(title_text="")
    return figure.update_layout(
        height=420,
        legend={
            "orientation": "v",
            "x": 1.02,
            "y": 1,
            "yref": "paper",
            "yanchor": "top",
        },
    )


def _line(figure, i: int, x: list, y: list, name: str, colour: str, dash: str) -> None:
    add(
        figure,
        i,
        go.Scatter(
            x=x,
            y=y,
            name=name,
            legendgroup=name,
            mode="lines+markers",
            line={"color": colour, "dash": dash},
            hovertemplate=f"{name}, %{{x}}: %{{y:.3g}}<extra></extra>",
        ),
    )
