"""PEARL's figures that do not fit into a table of cells.

They are the printed steps, replayed with the method's own code, the best draft length
at each iteration, and the time of a drafting phase over that of a verification phase.
Each runs the method's real code on the virtual clock. Its models output the tokens that
the paper prints, or agree with a given probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from speclab.runs.spec import VirtualSpec
from speclab.virtual.cells import example_trace
from speclab.virtual.outputs import find_agreements
from speclab.virtual.settle import settle
from speclab.virtual.toy_requests import ToyCell, open_world
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency, load_latency
from speclib.methods import METHODS
from speclib.models.toy import BOS, Scripted
from speclib.trace.events import Event, Trace
from speclib.worlds.virtual import Virtual

from .cell_errors import naming_cell
from .figures import DraftLengths, ReplayedSteps
from .numbers import Number
from .paper_schema import Step, Table
from .table_result import TableResult

BEST_LENGTH = "best_draft_length"  # a curve: a row per iteration
DRAFT_OVER_VERIFY = "draft_over_verify"

# On the virtual clock these are read from one trace instead of a cell's requests.
FROM_ONE_TRACE = (BEST_LENGTH, DRAFT_OVER_VERIFY)

MOST_ITERATIONS = 60  # in a curve
REQUESTS = 20  # for the search of a window
TOKENS = 1024  # per request, in the runs for curves and phases


def add_from_one_trace(result: TableResult) -> None:
    """Adds the virtual numbers of rows whose ``stat`` is read from one trace."""
    table = result.table
    for row in table.row_labels or ("",):
        stat = table.row.get(row, {}).get("stat", table.settings.get("stat"))
        if stat == BEST_LENGTH:
            _add_virtual_lengths(result)
        elif stat == DRAFT_OVER_VERIFY:
            _add_phases(result, row)


# -- printed steps ---------------------------------------------------------------------
def replay_steps(table: Table) -> ReplayedSteps:
    """Runs the table's method on models that output what its steps print.

    The table's settings give the draft length and the costs.
    """
    vocabulary = _vocabulary(table.steps)
    ids = {token: i for i, token in enumerate(vocabulary)}
    settings = table.settings_of()
    with naming_cell(table, "*", "*"):
        method, gamma = settings["method"], settings["gamma"]
        latency = _latency(settings)
    lines = _printed_lines(table.steps, ids, gamma)
    models = {
        "draft": Scripted(lines.draft, len(ids)),
        "target": Scripted(lines.target, len(ids)),
    }

    limit = sum(len(step.committed) for step in table.steps)
    world = Virtual(models, latency)
    world.begin((BOS,), sampler=Sampler(), coins=Coins(), limit=limit)
    METHODS[method](world, gamma=gamma)
    trace = world.end(method=method, gamma=gamma, prompt=[BOS])

    committed = []
    for commit in trace.commits:
        committed.append(tuple(vocabulary[token] for token in commit.tokens))
    return ReplayedSteps(
        trace=trace,
        pieces=dict(enumerate(vocabulary)),
        committed=tuple(committed),
        accepted=_accepted_per_commit(trace),
        starts=_step_starts(trace, latency),
    )


def _vocabulary(steps: Sequence[Step]) -> list[str]:
    """The printed tokens by id; id 0 is the empty token, which is also the prompt."""
    tokens: list[str] = []
    for step in steps:
        tokens += [*step.block, *step.draft, *step.committed]
    return ["", *dict.fromkeys(tokens)]


def _latency(settings: dict[str, Any]) -> Latency:
    """The table's latency file; without one a draft pass takes 1, a target pass c."""
    if "latency" in settings:
        return load_latency(settings["latency"])
    return Latency.ratio(settings["c"], target=settings["c"])


@dataclass(frozen=True)
class _PrintedLines:
    """The next token of draft and target: text (ids) -> id."""

    draft: dict[tuple[int, ...], int]
    target: dict[tuple[int, ...], int]


def _printed_lines(
    steps: Sequence[Step], ids: dict[str, int], gamma: int
) -> _PrintedLines:
    """The printed outputs of both models.

    A step verifies the previous step's block, whose first token is already committed,
    and drafts the tokens after the block::

        text    a b c
        block       c d e
        draft             f g h

    Printed drafts shorter than gamma are padded with the empty token, which is never
    tested.
    """
    lines = _PrintedLines({}, {})
    text: tuple[int, ...] = (BOS,)
    for step in steps:
        before_draft = text
        if step.block:
            block = [ids[token] for token in step.block]
            block += [BOS] * (gamma - len(block))
            before_draft = (*text[:-1], *block)

        for token in step.draft:
            lines.draft[before_draft] = ids[token]
            before_draft = (*before_draft, ids[token])
        for token in step.committed:
            lines.target[text] = ids[token]
            text = (*text, ids[token])
    return lines


def _accepted_per_commit(trace: Trace) -> tuple[int, ...]:
    """Accepted drafts per commit; tested drafts match committed tokens one to one."""
    tested = []
    for event in trace.operations:
        if event.is_drafting:
            tested += [outcome for outcome in event.outcome if outcome != "discarded"]

    counts = []
    first = 0
    for commit in trace.commits:
        last = first + len(commit.tokens)
        counts.append(tested[first:last].count("accepted"))
        first = last
    return tuple(counts)


def _step_starts(trace: Trace, latency: Latency) -> tuple[float, ...]:
    """When each step began, in draft passes."""
    first_start: dict[int, float] = {}
    for event in trace.operations:
        earlier = first_start.get(event.round, event.ts)
        first_start[event.round] = min(earlier, event.ts)

    starts = []
    for _, start in sorted(first_start.items()):
        starts.append(round(start / latency.draft(1), 6))
    return tuple(starts)


def add_steps(result: TableResult) -> None:
    """Adds a row per replayed step, by the engine's own step number or start time.

    So a step that the engine takes at a different time than the paper has no printed
    number to compare with.
    """
    table = result.table
    replayed = replay_steps(table)
    result.figure = replayed
    for i, committed in enumerate(replayed.committed):
        row = str(i)
        if table.rows == "start":
            start = replayed.starts[i]
            row = f"T={start:g}t" if start else f"T={start:g}"
        _add_step(result, row, "accepted", replayed.accepted[i])
        note = "committed: " + " ".join(committed)
        _add_step(result, row, "committed", len(committed), note)


def _add_step(
    result: TableResult, row: str, column: str, count: int, note: str = ""
) -> None:
    settings = result.table.settings_of()
    result.add(
        row,
        column,
        "virtual",
        float(count),
        setup=settings.get("latency", f"c={settings.get('c')}"),
        n=1,
        source="printed drafts and answers, replayed",
        note=note,
    )


# -- best draft length -----------------------------------------------------------------
def best_lengths(
    agrees: Sequence[bool], commits: Sequence[Event], gamma: int | None
) -> DraftLengths:
    """The number of drafts that the target would accept at each iteration of a run.

    ``agrees`` marks the positions of the committed text at which draft and target
    choose the same token. An iteration's best length is the length of the run of
    agreements that begins at its first position::

        agrees       y y n y y y y y
        iterations   1 2   3   4        commits of 1, 2, 2 and 3 tokens
        best length  2 1   5   3        the last two end with the output
    """
    disagreements = np.flatnonzero(~np.asarray(agrees))
    ends = np.append(disagreements, len(agrees))
    lengths = [len(commit.tokens) for commit in commits]
    starts = np.cumsum([0, *lengths])[:-1][:MOST_ITERATIONS]

    next_end = np.searchsorted(ends, starts)
    values = tuple(int(value) for value in ends[next_end] - starts)
    complete = int((next_end < len(ends) - 1).sum())
    return DraftLengths(values, gamma, complete)


def virtual_lengths(spec: VirtualSpec) -> DraftLengths:
    """``best_lengths`` for the first request of a virtual cell."""
    gamma = settle(spec).spec.gamma
    assert gamma is None or isinstance(gamma, int)  # it is settled
    method = METHODS[spec.method]
    latency = load_latency(spec.latency)
    world = open_world(ToyCell(method, latency, spec.alpha, spec.tokens))
    world.begin((BOS,), sampler=Sampler(), coins=Coins(), limit=spec.tokens)
    method(world, gamma=gamma)

    output = world.text[1:]
    commits = world.end().commits
    agrees = find_agreements(world, (BOS,), output)
    return best_lengths(agrees, commits, gamma)


def _add_virtual_lengths(result: TableResult) -> None:
    for column in result.table.column_labels:
        spec = _spec(result, "", column)
        add_lengths(
            result,
            column,
            virtual_lengths(spec),
            kind="virtual",
            setup=spec.latency,
            source=f"data/latency/{spec.latency}.toml",
            note=f"alpha {spec.alpha:g}",
        )


def add_lengths(
    result: TableResult,
    column: str,
    lengths: DraftLengths,
    *,
    kind: str,
    setup: str,
    source: str,
    note: str,
) -> None:
    """Adds the curve of best draft lengths in one request: a row per iteration."""
    result.figure = lengths
    for iteration, length in enumerate(lengths.values, 1):
        full_note = f"{note}; the run's window is {lengths.gamma}"
        if iteration > lengths.complete:
            full_note += "; at least, since the output ends there"
        row = str(iteration)
        result.add(
            row,
            column,
            kind,
            Number(float(length), n=1),
            setup=setup,
            n=1,
            source=source,
            note=full_note,
        )


# -- time per phase --------------------------------------------------------------------
def _add_phases(result: TableResult, row: str) -> None:
    """Adds the median time of a drafting phase over that of a verification phase.

    It counts as exact: a phase on the virtual clock takes the latency file's time.
    """
    table = result.table
    for column in table.column_labels:
        if "latency" not in table.settings_of(row, column):
            continue
        spec = _spec(result, row, column)
        trace = example_trace(spec)
        result.figure = trace
        draftings = [e.dur for e in trace.operations if e.is_drafting]
        scorings = [e.dur for e in trace.operations if e.is_scoring]
        ratio = median(draftings) / median(scorings)
        result.add(
            row,
            column,
            "virtual",
            ratio,
            setup=spec.latency,
            n=1,
            source=f"data/latency/{spec.latency}.toml",
            note=f"gamma {spec.gamma}",
        )


def _spec(result: TableResult, row: str, column: str) -> VirtualSpec:
    """The virtual run behind a cell that is read from one trace."""
    table = result.table
    settings = table.settings_of(row, column)
    with naming_cell(table, row, column):
        return VirtualSpec(
            method=settings["method"],
            gamma=settings["gamma"],
            latency=settings["latency"],
            alpha=table.paper.alpha(settings["alpha"]),
            tokens=TOKENS,
            requests=REQUESTS,
        )
