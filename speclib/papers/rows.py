"""Ledger rows and verdicts of one table, from its print and its runs. Runs nothing that is slow."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from speclib.data.latency import load_latency
from speclib.data.pairs import load_pair
from speclib.experiment.run_cells import example_trace
from speclib.experiment.spec import CellResult, Spec
from speclib.models import factory

from . import claims
from . import easyspec_layers as inside
from . import pearl_figures as items
from . import statistics as quantities
from .schema import Table

DTYPES = {"auto": "float32"}
OVERRUNS = 0.01  # of an emulated cell's operations may outlast their latency


def assemble(
    filled,
    cells,
    runs: dict[Spec, CellResult],
    errors: dict[Spec, Exception],
    kinds: Iterable[str],
) -> None:
    """Completes ``filled``: printed rows, one row per cell run, drawn items, means, verdicts."""
    table = filled.table
    _paper(filled)
    for cell in cells:
        if cell.spec in runs:
            (_lengths if cell.stat == items.LENGTHS else _cell)(
                filled, cell, runs[cell.spec]
            )
        elif cell.spec in errors:
            filled.errors[
                f"{table.item}, {cell.row}, {cell.column}: {cell.spec.name}"
            ] = str(errors[cell.spec])
            filled.add(
                cell.row,
                cell.column,
                cell.metric,
                cell.unit,
                cell.kind,
                _setup(cell.spec, None),
                None,
                note=f"failed: {errors[cell.spec]}",
            )
    if table.paper.fills(table.item, "virtual"):
        items.draw(filled)
    inside.draw(filled, kinds)
    _means(filled)
    _verdicts(filled)


# -- paper ---------------------------------------------------------------------------------------
def _paper(filled) -> None:
    table = filled.table
    source = (
        f"arXiv:{table.paper.arxiv}"
        if not table.item.startswith(("blog", "theorem"))
        else table.paper.facts.get("blog", "the authors' project page")
    )
    for row, column, value in table.cells:
        s = table.setting(row, column)
        note = _errata(table, row, column, False)
        if table.from_formula:
            note = "; ".join(filter(None, [f"from the formula {table.formula}", note]))
        filled.add(
            row,
            column,
            s["metric"],
            s["unit"],
            "paper",
            "",
            float(value),
            source=source,
            note=note,
        )
    for row, column, value in table.beside.cells if table.beside else ():
        filled.add(
            row,
            column,
            table.beside.metric,
            table.beside.unit,
            "paper",
            "",
            float(value),
            source=source,
            note=_errata(table, row, column, True),
            show=False,
        )
    for what, cells in (("lost", table.lost), ("not printed", table.absent)):
        for row, column in cells:
            s = table.column.get(column, {}) | table.row.get(
                row, {}
            )  # a label may be "*"
            filled.add(
                row,
                column,
                s.get("metric", table.metric),
                s.get("unit", table.unit),
                "paper",
                "",
                None,
                source=source,
                note=what,
            )


def _errata(table: Table, row: str, column: str, beside: bool) -> str:
    return "; ".join(
        f"{e.kind}: {' '.join(e.note.split())}"
        for e in table.errata
        if e.beside == beside
        and any(r in (row, "*") and c in (column, "*") for r, c in e.cells)
    )


# -- runs ----------------------------------------------------------------------------------------
def _cell(filled, cell, run: CellResult) -> None:
    value = quantities.value(cell.stat, run, cell.tokens)
    printed = filled.table.printed(cell.row, cell.column)
    place = cell.row, cell.column, cell.kind
    note = _note(cell, run)
    if cell.kind == "emulated" and run.facts["overruns"] > OVERRUNS:
        filled.add(
            cell.row,
            cell.column,
            cell.metric,
            cell.unit,
            cell.kind,
            _setup(cell.spec, run),
            None,
            note="not reported: the machine is too slow or "
            f"busy to emulate these latencies (at most {OVERRUNS:.0%} overruns); {note}",
        )
        return
    filled.samples[place] = quantities.samples(cell.stat, run, cell.tokens)
    low, high = quantities.interval(filled.samples[place])
    if cell.kind == "virtual" and printed:
        note += f"; {100 * (value / printed - 1):+.1f} % against print"
    filled.runs[place] = run
    common = {
        "kind": cell.kind,
        "setup": _setup(cell.spec, run),
        "n": len(run.stats),
        "source": f"data/latency/{cell.spec.latency}.toml"
        if cell.kind == "virtual"
        else f"{cell.kind} {run.created}",
    }
    filled.add(
        cell.row,
        cell.column,
        cell.metric,
        cell.unit,
        value=value,
        low=low,
        high=high,
        note=note,
        **common,
    )
    if cell.kind == "measured" and cell.stat == "speedup":
        e2e = quantities.interval(quantities.samples("speedup_e2e", run))
        filled.add(
            cell.row,
            cell.column,
            "speedup_e2e",
            cell.unit,
            low=e2e[0],
            high=e2e[1],
            value=quantities.value("speedup_e2e", run),
            note="prefill included",
            show=False,
            **common,
        )


def _lengths(filled, cell, run: CellResult) -> None:
    """A figure's curve, of the run's first request."""
    items.add_lengths(
        filled,
        cell.column,
        cell.kind,
        _setup(cell.spec, run),
        items.best_lengths(run.facts["agree"], example_trace(run).commits, run.gamma),
        f"{cell.kind} {run.created}",
        _note(cell, run),
    )


def _note(cell, run: CellResult) -> str:
    parts = [cell.calibrates] if cell.calibrates else []
    if cell.kind != "measured" and cell.spec.method != "autoregressive":
        parts.append(f"alpha {cell.spec.alpha:g}")
    parts += quantities.told(cell.spec, run)
    if run.gamma is not None:
        tried = run.facts.get("searched")
        parts.append(
            f"gamma {run.gamma}"
            + (
                f", best of {min(map(int, tried))}..{max(map(int, tried))}"
                if tried
                else ""
            )
            + (" on the virtual clock" if tried and cell.kind == "emulated" else "")
        )
    if cell.tokens and cell.stat.endswith("_runs"):
        parts.append(f"scaled to {cell.tokens} tokens")
    if cell.stat == "mat":
        parts.append("accepted drafts per target pass, no bonus")
    if cell.stat in ("run_length", "run_tokens"):
        parts.append("per run between rejections, over several passes")
    if cell.kind == "emulated":
        parts += [
            f"virtual clock x{run.facts['over_virtual']:.3f}",
            f"overruns {run.facts['overruns']:.1%}",
        ]
    if cell.kind == "measured":
        slower = ", ".join(
            f"{k} x{v:.2f}" for k, v in sorted(run.facts["contention"].items())
        )
        dilated = load_pair(cell.spec.pair).target.shape
        parts += [
            *(["dilated"] if dilated else []),
            f"draft in {run.facts['draft']}",
            f"c {run.c:.2f}",
            quantities.departures(run),
            f"both busy over alone: {slower}",
            f"load {run.facts['load']:g}",
        ]
    return "; ".join(parts)


def _setup(spec: Spec, run: CellResult | None) -> str:
    if spec.kind == "virtual":
        return spec.latency
    from speclib.experiment import machine

    here = run.machine if run else machine.name()
    if spec.kind == "emulated":
        return f"{spec.latency}@{here}"
    pair, dtype = load_pair(spec.pair), DTYPES.get(spec.dtype, spec.dtype)
    draft = run.facts["draft"] if run else factory.runtime(pair, "draft")
    runtime = f" draft {draft}" if draft.startswith("llama.cpp") else ""
    return f"{spec.pair}@{here}/{dtype}{runtime}/{pair.place.threads}"


def _means(filled) -> None:
    """Columns that are the mean of the others, for every kind but paper."""
    table = filled.table
    columns = [c for c in table.column_labels if table.column.get(c, {}).get("mean_of")]
    for kind in [k for k in filled.values if k != "paper"]:
        for row in table.row_labels:
            others = [
                filled.values[kind][row, c]
                for c in table.column_labels
                if (row, c) in filled.values[kind]
            ]
            setups = {r.setup for r in filled.rows if (r.row, r.kind) == (row, kind)}
            for column in columns if others else ():
                s = table.setting(row, column)
                filled.add(
                    row,
                    column,
                    s["metric"],
                    s["unit"],
                    kind,
                    setups.pop(),
                    fmean(others),
                    n=len(others),
                    note="mean of the other columns",
                )


# -- verdicts ------------------------------------------------------------------------------------
def _verdicts(filled) -> None:
    for kind in filled.kinds:
        numbers = _numbers(filled, kind)
        filled.claims += [
            claims.judge(claim, filled.table, numbers)
            for claim in filled.table.claims
            if kind in claim.kinds
        ]


def _numbers(filled, kind: str) -> claims.Numbers:
    table, values = filled.table, filled.values.get(kind, {})

    def cell(item, row, column):
        if item != table.item:
            return table.paper.printed(item, row, column) if kind == "paper" else None
        return values.get((row, column))

    def c(row, column):
        if kind == "measured":
            return next(
                (
                    run.c
                    for (r, col, k), run in filled.runs.items()
                    if k == kind and row in (r, "*") and column in (col, "*")
                ),
                None,
            )
        s = table.setting(row, column)
        if kind == "paper" and "printed_c" in s:
            return s["printed_c"]
        return load_latency(s["latency"]).c if "latency" in s else s.get("c")

    def samples(item, row, column):
        return filled.samples.get((row, column, kind)) if item == table.item else None

    return claims.Numbers(kind, cell, c, samples)
