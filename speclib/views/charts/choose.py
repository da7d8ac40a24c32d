"""Charts of filled tables, as plotly figures: small multiples, one colour per kind or method.

``chart(filled)`` takes the one that the table's file names. The look is ``style``'s.
Reads values; knows no run and no file.
"""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go

from speclib.errors import unknown_name

from . import bars as groups
from . import dsi as maps
from . import easyspec as parallel
from .style import ACROSS, COLOURS, INK, PALETTE, add, finish, labels, panels

MANY = 8  # labels that need the whole width


def chart(filled) -> go.Figure | None:
    """The figure that the table's file names; None where a table says it all.

    Raises SpeclibError for a name that is not in ``CHARTS``.
    """
    name = filled.table.chart
    if name is None:
        return None
    if name not in CHARTS:
        raise unknown_name(
            f"{filled.table.item} has the unknown chart {name!r}", name, CHARTS
        )
    if not any(filled.values.values()):
        return None
    return CHARTS[name](filled)


# -- the forms -----------------------------------------------------------------------------------
def sweep(filled) -> go.Figure:
    """A line per kind over the windows, one panel per column; a star on each line's highest."""
    columns = filled.table.column_labels
    across = 2 if len(columns) == 4 else ACROSS
    figure = panels(columns, across)
    for i, column in enumerate(columns):
        for kind in filled.kinds:
            points = [
                (int(r), filled.values[kind][r, column])
                for r in filled.table.row_labels
                if (r, column) in filled.values[kind]
            ]
            if points:
                _line(figure, i, kind, points, first=i == 0)
    figure.update_xaxes(dtick=1)
    return finish(figure, filled, len(columns), across, below="γ")


def _line(
    figure, i: int, kind: str, points: list[tuple[float, float]], first: bool
) -> None:
    xs, ys = zip(*points, strict=True)
    best = ys.index(max(ys))
    add(
        figure,
        i,
        go.Scatter(
            x=xs,
            y=ys,
            mode="lines+markers",
            name=kind,
            legendgroup=kind,
            showlegend=first,
            line={
                "color": COLOURS[kind],
                "dash": "dot" if kind == "paper" else "solid",
            },
            marker={
                "size": [15 if j == best else 6 for j in range(len(xs))],
                "symbol": ["star" if j == best else "circle" for j in range(len(xs))],
            },
            hovertemplate="γ = %{x}: %{y:.2f}" + f" [{kind}]<extra></extra>",
        ),
    )


def bars(filled) -> go.Figure:
    """A panel per kind, one group per column, one bar per method: shapes to compare. Rows of
    another metric have another scale and no bars."""
    kinds, table = filled.kinds, filled.table
    rows = [
        r
        for r in table.row_labels
        if table.row.get(r, {}).get("metric", table.metric) == table.metric
    ]
    across = 1 if len(table.column_labels) > 4 else ACROSS
    figure = panels(kinds, across, shared=True)
    spans = {
        (r.kind, r.row, r.column): (r.low, r.high)
        for r in filled.rows
        if r.low is not None and r.metric == table.metric
    }
    for i, kind in enumerate(kinds):
        for j, method in enumerate(rows):
            values = [filled.values[kind].get((method, c)) for c in table.column_labels]
            if any(v is not None for v in values):
                ends = [spans.get((kind, method, c)) for c in table.column_labels]
                add(
                    figure,
                    i,
                    go.Bar(
                        x=labels(table.column_labels),
                        y=values,
                        name=method,
                        legendgroup=method,
                        showlegend=not _has(filled, kinds[:i], method),
                        error_y=_errors(values, ends),
                        marker_color=_method_colour(rows, j),
                        hovertemplate=f"{method}, %{{x}}: %{{y:.2f}} [{kind}]<extra></extra>",
                    ),
                )
    return finish(figure, filled, len(kinds), across)


def _errors(values: list, spans: list) -> dict | None:
    """95 % intervals as plotly's distances above and below; None where no cell has one."""
    if not any(span and span[0] < span[1] for span in spans):
        return None
    both = [
        (s[1] - v, v - s[0]) if s else (0, 0)
        for v, s in zip(values, spans, strict=True)
    ]
    return {
        "array": [b[0] for b in both],
        "arrayminus": [b[1] for b in both],
        "color": INK,
        "thickness": 1.2,
        "width": 3,
    }


def _has(filled, kinds, row: str) -> bool:
    return any(r == row for kind in kinds for r, _ in filled.values[kind])


def _method_colour(rows: list[str], j: int) -> str:
    """The paper's own method, its last row, stands out."""
    return PALETTE[-1] if j == len(rows) - 1 else PALETTE[j % (len(PALETTE) - 1)]


def pairs(filled) -> go.Figure | None:
    """A panel per column (or row, if those are fewer), a bar per kind: print beside ours. Columns
    of another unit have another scale and no bars."""
    table = filled.table
    if len(filled.kinds) < 2:  # bars of one kind compare nothing
        return None
    columns = [
        c
        for c in table.column_labels
        if table.column.get(c, {}).get("unit", table.unit) == table.unit
    ]
    by_row = len(table.row_labels) < len(columns)
    titles, names = (
        (table.row_labels, columns) if by_row else (columns, table.row_labels)
    )
    across = 1 if len(names) > MANY else 2
    figure, named = panels(titles, across, shared=across == 1), set()
    for i, panel in enumerate(titles):
        for kind in filled.kinds:
            values = [
                filled.values[kind].get((panel, x) if by_row else (x, panel))
                for x in names
            ]
            if not any(v is not None for v in values):
                continue  # no gap where its bars would stand
            add(
                figure,
                i,
                go.Bar(
                    x=labels(names),
                    y=values,
                    name=kind,
                    legendgroup=kind,
                    showlegend=kind not in named,
                    marker_color=COLOURS[kind],
                    hovertemplate=f"%{{x}}: %{{y}} [{kind}]<extra></extra>",
                ),
            )
            named.add(kind)
    return finish(figure, filled, len(titles), across)


def curve(filled) -> go.Figure:
    """A line per kind over a numeric row label; a column that is a number says of what."""
    figure = panels(
        [
            f"{filled.table.columns_are}: {c}" if c[0].isdigit() else c
            for c in filled.table.column_labels
        ]
    )
    for i, column in enumerate(filled.table.column_labels):
        for kind in filled.kinds:
            points = [
                (float(r), v)
                for (r, c), v in filled.values[kind].items()
                if c == column
            ]
            xs, ys = zip(*points, strict=True) if points else ((), ())
            add(
                figure,
                i,
                go.Scatter(
                    x=xs,
                    y=ys,
                    name=_formula(filled, kind),
                    showlegend=i == 0,
                    mode="lines+markers",
                    line_color=COLOURS[kind],
                ),
            )
    return finish(figure, filled, 1, below=filled.table.rows)


def _formula(filled, kind: str) -> str:
    table = filled.table
    return (
        f"{kind}: {table.formula}" if kind == "paper" and table.from_formula else kind
    )


def series(filled) -> go.Figure:
    """A bar per iteration, and a line at the window that a fixed length would use."""
    figure = panels(filled.table.column_labels)
    for kind in filled.kinds:
        cells = filled.values[kind]
        add(
            figure,
            0,
            go.Bar(
                x=[int(r) for r, _ in cells],
                y=list(cells.values()),
                name=kind,
                marker_color=COLOURS[kind],
            ),
        )
    window = getattr(filled.figure, "gamma", None)
    if window is not None:
        ends = [0.5, max(int(r) for r, _ in next(iter(filled.values.values()))) + 0.5]
        add(
            figure,
            0,
            go.Scatter(
                x=ends,
                y=[window, window],
                name=f"fixed window γ = {window}",
                mode="lines",
                line={"dash": "dot", "color": "#d64545"},
            ),
        )
    return finish(figure, filled, 1, below=filled.table.rows)


def _heatmaps(filled) -> go.Figure | None:
    return maps.heatmaps(filled) if hasattr(filled.figure, "rules") else None


def _lengths(filled) -> go.Figure | None:
    drawn = groups.lengths(filled)
    return drawn if drawn.data else None


CHARTS: dict[str, Callable] = {
    "bars_by_column": groups.tasks,
    "bars_by_kind": pairs,
    "bars_by_method": bars,
    "bars_by_part": groups.parts,
    "bars_by_row": groups.groups,
    "bars_by_target": groups.targets,
    "bars_over_iterations": series,
    "dots_by_accounting": maps.dots,
    "lines_over_budgets": groups.budgets,
    "lines_over_layers": parallel.sizes,
    "lines_over_lengths": _lengths,
    "lines_over_rows": curve,
    "lines_over_windows": sweep,
    "points_against_print": parallel.against_print,
    "speedup_heatmaps": _heatmaps,
}
