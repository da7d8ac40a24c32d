"""Items that are drawn, not tabulated: printed steps replayed, the best draft length per iteration.

Each runs the method's real code on the virtual clock, between models that say what the paper says
they said, or that agree with a stated probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency, load_latency
from speclib.experiment.cells import virtual as virtual_cells
from speclib.experiment.cells.outputs import find_agreements
from speclib.experiment.engines.virtual import example_trace, run_cell
from speclib.experiment.spec import Spec
from speclib.methods import METHODS
from speclib.models.toy import BOS, Scripted
from speclib.trace.events import Event, Trace
from speclib.worlds.virtual import Virtual

from . import dsi_heatmaps as maps
from .schema import Step, Table

LENGTHS = "best_draft_length"  # a curve: a row per iteration
DRAWN = (LENGTHS, "draft_over_verify")  # on the virtual clock, from one trace
SHOWN = 60  # iterations of a series


@dataclass(frozen=True)
class Replay:
    """A printed run, done again: its trace, the text of every id, what each step committed."""

    trace: Trace
    pieces: dict[int, str]
    committed: tuple[tuple[str, ...], ...]
    accepted: tuple[int, ...]
    starts: tuple[float, ...]  # in draft passes


@dataclass(frozen=True)
class Series:
    """A number per decoding iteration, and the window that was used throughout. The first
    ``whole`` values were not cut short by the end of the output."""

    values: tuple[int, ...]
    gamma: int
    whole: int


def draw(filled) -> None:
    """Adds the virtual numbers and the figure of a drawn table to ``filled``; others: nothing."""
    table = filled.table
    maps.draw(filled)
    if table.settings.get("script") == "steps":
        _draw_steps(filled, replay(table))
    for row in table.row_labels or ("",):
        stat = table.row.get(row, {}).get("stat", table.settings.get("stat"))
        if stat in DRAWN:
            (_draw_lengths if stat == LENGTHS else _draw_phases)(filled, row)


# -- printed steps -------------------------------------------------------------------------------
def replay(table: Table) -> Replay:
    """Runs the table's method on a draft that proposes the printed drafts and a target that
    answers as printed; gamma and costs are the table's settings."""
    vocabulary = [
        "",
        *dict.fromkeys(
            t for s in table.steps for t in (*s.block, *s.draft, *s.committed)
        ),
    ]
    ids = {token: i for i, token in enumerate(vocabulary)}
    gamma, latency = table.settings["gamma"], _latency(table)
    draft, target = _lines(table.steps, ids, gamma)
    world = Virtual(
        {"draft": Scripted(draft, len(ids)), "target": Scripted(target, len(ids))},
        latency,
    )
    world.begin(
        (BOS,),
        sampler=Sampler(),
        coins=Coins(),
        limit=sum(len(s.committed) for s in table.steps),
    )
    METHODS[table.settings["method"]](world, gamma=gamma)
    trace = world.end(method=table.settings["method"], gamma=gamma, prompt=[BOS])
    commits = [e.tokens for e in trace.commits]
    return Replay(
        trace,
        dict(enumerate(vocabulary)),
        tuple(tuple(vocabulary[t] for t in tokens) for tokens in commits),
        _accepted(trace),
        _starts(trace, latency),
    )


def _latency(table: Table) -> Latency:
    """The table's latency file; without one, a draft pass takes 1 and a target pass c."""
    if "latency" in table.settings:
        return load_latency(table.settings["latency"])
    return Latency.ratio(table.settings["c"], target=table.settings["c"])


def _lines(steps: tuple[Step, ...], ids: dict[str, int], gamma: int):
    """What draft and target say after each text: text (ids) -> id. Printed drafts shorter than
    gamma go on with the empty token; it is never tested."""
    draft, target, text = {}, {}, (BOS,)
    for step in steps:
        drafted = [ids[t] for t in step.draft]
        block = [ids[t] for t in step.block]
        block += [BOS] * (gamma - len(block)) if block else []
        base = (
            *text[: len(text) - (1 if block else 0)],
            *block,
        )  # its first token is committed
        draft |= {(*base, *drafted[:i]): token for i, token in enumerate(drafted)}
        for token in step.committed:
            target[text] = ids[token]
            text += (ids[token],)
    return draft, target


def _accepted(trace: Trace) -> tuple[int, ...]:
    """Drafts accepted per commit: tested drafts and committed tokens pair off one to one."""
    tested = [
        o for e in trace.operations if e.is_drafting for o in e.outcome if o != "wasted"
    ]
    counts, at = [], 0
    for commit in trace.commits:
        counts.append(tested[at : at + len(commit.tokens)].count("accepted"))
        at += len(commit.tokens)
    return tuple(counts)


def _starts(trace: Trace, latency: Latency) -> tuple[float, ...]:
    """When each step began, in draft passes."""
    first = {}
    for event in trace.operations:
        first[event.round] = min(first.get(event.round, event.ts), event.ts)
    return tuple(round(ts / latency.draft(1), 6) for _, ts in sorted(first.items()))


def _draw_steps(filled, replayed: Replay) -> None:
    """Rows by the engine's own step numbers or start times: a step elsewhere meets no print."""
    table, filled.figure = filled.table, replayed
    for i, committed in enumerate(replayed.committed):
        start = replayed.starts[i]
        row = f"T={start:g}{'t' if start else ''}" if table.rows == "start" else str(i)
        note = "committed: " + " ".join(committed)
        for column, value in (
            ("accepted", replayed.accepted[i]),
            ("committed", len(committed)),
        ):
            filled.add(
                row,
                column,
                table.metric,
                table.unit,
                "virtual",
                table.settings.get("latency", f"c={table.settings.get('c')}"),
                float(value),
                n=1,
                source="printed drafts and answers, replayed",
                note=note if column == "committed" else "",
            )


# -- best draft length ---------------------------------------------------------------------------
def best_lengths(
    agrees: Sequence[bool], commits: Sequence[Event], gamma: int
) -> Series:
    """At each iteration of a run: how many drafts from there on the target would accept.

    ``agrees`` says where draft and target choose the same token along the committed text; the
    best length of an iteration is the run of agreements that begins at its first position."""
    ends = np.append(np.flatnonzero(~np.asarray(agrees)), len(agrees))
    starts = np.cumsum([0] + [len(e.tokens) for e in commits])[:-1]
    at = np.searchsorted(ends, starts)[:SHOWN]
    return Series(
        tuple(int(ends[i] - s) for i, s in zip(at, starts, strict=False)),
        gamma,
        int((at < len(ends) - 1).sum()),
    )


def virtual_lengths(spec: Spec) -> Series:
    """``best_lengths`` of a virtual run."""
    gamma, tokens = run_cell(spec).gamma, spec.tokens
    cell = virtual_cells.ToyCell(
        METHODS[spec.method], load_latency(spec.latency), spec.alpha, tokens
    )
    world = virtual_cells.open_world(cell)
    world.begin((BOS,), sampler=Sampler(), coins=Coins(), limit=tokens)
    METHODS[spec.method](world, gamma=gamma)
    committed, commits = world.text[1:], world.end().commits
    return best_lengths(find_agreements(world, (BOS,), committed), commits, gamma)


def _draw_lengths(filled, _row: str) -> None:
    for column in filled.table.column_labels:
        spec = _spec(filled, "", column)
        add_lengths(
            filled,
            column,
            "virtual",
            spec.latency,
            virtual_lengths(spec),
            f"data/latency/{spec.latency}.toml",
            f"alpha {spec.alpha:g}",
        )


def add_lengths(
    filled, column: str, kind: str, setup: str, series: Series, source: str, note: str
) -> None:
    """A row per iteration."""
    table, filled.figure = filled.table, series
    for i, length in enumerate(series.values, 1):
        cut = "" if i <= series.whole else "; at least, since the output ends there"
        filled.add(
            str(i),
            column,
            table.metric,
            table.unit,
            kind,
            setup,
            float(length),
            n=1,
            source=source,
            note=f"{note}; the run's window is {series.gamma}{cut}",
        )


# -- time per phase ------------------------------------------------------------------------------
def _draw_phases(filled, row: str) -> None:
    """Median time of a drafting phase over that of a verification."""
    table = filled.table
    for column in (
        c for c in table.column_labels if "latency" in table.setting(row, c)
    ):
        spec = _spec(filled, row, column)
        trace = filled.figure = example_trace(spec)
        drafting = median(e.dur for e in trace.operations if e.is_drafting)
        scoring = median(e.dur for e in trace.operations if e.is_scoring)
        filled.add(
            row,
            column,
            table.metric,
            table.unit,
            "virtual",
            spec.latency,
            drafting / scoring,
            n=1,
            note=f"gamma {spec.gamma}",
            source=f"data/latency/{spec.latency}.toml",
        )


def _spec(filled, row: str, column: str) -> Spec:
    s, tokens = filled.table.setting(row, column), 1024
    return Spec(
        kind="virtual",
        method=s["method"],
        gamma=s["gamma"],
        latency=s["latency"],
        alpha=filled.table.paper.alpha(s["alpha"]),
        tokens=tokens,
        requests=max(1, filled.profile.virtual_tokens // tokens),
    )
