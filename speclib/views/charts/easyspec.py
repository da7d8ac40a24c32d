"""EasySpec's charts, as plotly figures: print against prediction, lines over the LP size.

Reads values; knows no run and no file.
"""

from __future__ import annotations

import plotly.graph_objects as go

from .bars import SHADES, _bar, _line, _once, columns_of
from .style import COLOURS, PALETTE, add, finish, panels

PARTS = ("d", "v", "total")  # of a column "method / quantity"
MARKS = {"virtual": "circle", "emulated": "x"}


def against_print(filled) -> go.Figure:
    """A panel per part of the time: ours (up) against print, a point per row; on the diagonal both
    agree. What was measured took other models' seconds: panels of its own, a group per dataset."""
    groups = list(
        dict.fromkeys(
            row.rpartition(" / ")[0] for row, _ in filled.values.get("measured", {})
        )
    )
    titles = [
        *(f"{part}: ours against print" for part in PARTS),
        *(f"{group} [measured]" for group in groups),
    ]
    figure = panels(titles)
    for i, part in enumerate(PARTS):
        _points(figure, i, filled, part)
    for i, group in enumerate(groups, len(PARTS)):
        _totals(figure, i, filled, group)
    return finish(_once(figure), filled, len(titles))


def _methods(filled) -> list[str]:
    return list(dict.fromkeys(c.split(" / ")[0] for c in filled.table.column_labels))


def _points(figure, i: int, filled, part: str) -> None:
    printed, seen = filled.values["paper"], [0.0]
    for j, method in enumerate(_methods(filled)):
        column = f"{method} / {part}"
        for kind in (k for k in MARKS if k in filled.kinds):
            both = {
                row: (printed[row, c], value)
                for (row, c), value in filled.values[kind].items()
                if c == column and (row, c) in printed
            }
            if not both:
                continue
            x, y = zip(*both.values(), strict=True)
            seen += [*x, *y]
            add(
                figure,
                i,
                go.Scatter(
                    x=x,
                    y=y,
                    mode="markers",
                    name=f"{method} [{kind}]",
                    legendgroup=method + kind,
                    text=list(both),
                    marker={"color": SHADES[j], "symbol": MARKS[kind], "size": 8},
                    hovertemplate="%{text}: %{x:.2f} printed, %{y:.2f}<extra></extra>",
                ),
            )
    add(
        figure,
        i,
        go.Scatter(
            x=[0, max(seen)],
            y=[0, max(seen)],
            mode="lines",
            name="as printed",
            legendgroup="as printed",
            line={"color": COLOURS["paper"], "dash": "dot"},
        ),
    )


def _totals(figure, i: int, filled, group: str) -> None:
    rows = [
        r
        for r in filled.table.row_labels
        if r.startswith(f"{group} / ")
        and any(r == row for row, _ in filled.values["measured"])
    ]
    for j, method in enumerate(_methods(filled)):
        values = [
            filled.values["measured"].get((row, f"{method} / total")) for row in rows
        ]
        if any(v is not None for v in values):
            _bar(
                figure, i, [row.rpartition(" / ")[2] for row in rows], values, method, j
            )


def sizes(filled) -> go.Figure:
    """A line per column over the LP size, a panel per unit and kind. Of columns that come in two,
    the one that is "not" so, or another model's, is the dotted line of a colour."""
    table = filled.table
    colours = list(dict.fromkeys(map(_colour, table.column_labels)))
    metrics = {
        (s := table.settings_of("", c))["unit"]: s["metric"] for c in table.column_labels
    }
    shown = [
        (unit, kind)
        for unit in metrics
        for kind in filled.kinds
        if columns_of(filled, kind, unit)
    ]
    figure = panels(
        [f"{metrics[unit].replace('_', ' ')} [{kind}]" for unit, kind in shown], 2
    )
    for i, (unit, kind) in enumerate(shown):
        for column in columns_of(filled, kind, unit):
            found = {
                int(r): filled.values[kind][r, column]
                for r in table.row_labels
                if (r, column) in filled.values[kind]
            }
            _line(
                figure,
                i,
                list(found),
                list(found.values()),
                column.split(" / ")[0],
                PALETTE[::-1][colours.index(_colour(column)) % len(PALETTE)],
                "dot" if ", not " in column or ": " in column else "solid",
            )
    finish(_once(figure), filled, len(shown), 2, below=table.rows)
    return figure.update_xaxes(dtick=1).update_yaxes(title_text="", rangemode="normal")


def _colour(column: str) -> str:
    """What two columns share that differ in calibration or model."""
    return column.split(",")[0].split(": ")[-1]
