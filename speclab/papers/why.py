"""Why a measured speed-up differs from the printed one, cause by cause.

    print(why("pearl", "table-1", "PEARL (ours)", "CodeLlama 7&34B"))

The virtual clock predicts the number from the paper's own inputs. We replace these one
at a time by the values in the measured cell's rows (see ``CAUSES``). This needs only
the sums of a run, which its row contains. The times of passes made while the other
model is idle come from the rows of speculative decoding on the same prompts. For a
table that prints the seconds of drafting and verification, see ``why_in_turns``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from speclab.runs.rows import CellRuns
from speclab.runs.spec import ToySpec, VirtualSpec
from speclab.traces.counts import Counts
from speclab.traces.reconcile import Cause, Reconciled
from speclab.virtual.settle import outcomes_of, settle, toy_cell
from speclab.virtual.toy_requests import ToyCell, run_requests
from speclib.arguments import checked
from speclib.data.latency import Curve, Latency, load_latency
from speclib.errors import BadValue
from speclib.methods import takes_gamma
from speclib.trace.metrics import total

from .causes import CONTRADICTIONS
from .fill import Known
from .load_papers import load_paper
from .paper_schema import Table
from .statistics import number_of
from .table_cells import TableCell, cells_to_run
from .virtual_numbers import keys_of
from .why_in_turns import (
    BY_TURNS,
    SHORT_TEXTS,
    draft_pass,
    not_run,
    runs_by_turns,
    why_in_turns,
)


@checked
def why(
    paper: str, item: str, row: str, column: str, *, known: Known | None = None
) -> Reconciled:
    """Explains a cell's measured number step by step, starting from the printed one.

    known  the sources of numbers; None: everything published, and all runs made here

    Raises SpeclibError for an unknown paper or table, and BadValue for a cell that is
    not a speed-up over plain decoding, or that lacks a prediction or a measurement.
    """
    known = known or Known.here()
    table = load_paper(paper).table(item)
    cells = {cell.key: cell for cell in cells_to_run(table)}
    if table.main is not None and column == table.main.by:
        return why_in_turns(table, row, cells, known)
    virtual, measured = (cells.get((row, column, k)) for k in ("virtual", "measured"))
    if virtual is None or measured is None or not _is_speedup(virtual):
        raise BadValue(
            f"{item}, {row!r}, {column!r} is not a predicted and measured speed-up of "
            "a method with a window: give the row and the column of one"
        )
    prediction = known.virtual.get(keys_of(virtual)[0])
    runs = known.rows.of(measured.spec, known.machine_of(cells.values()))
    by_turns = runs_by_turns(measured, cells, known)
    if prediction is None or runs is None or by_turns is None:
        raise not_run(table, row, column)

    causes = [*_from_print(table, row, column, prediction.number.value)]
    asked = settle(virtual.spec.changed(gamma=prediction.gamma)).spec
    (_, start), *changed = _speedups(asked, runs, by_turns)
    for name, speedup in changed:
        causes.append(Cause(name, prediction.number.value * speedup / start))
    causes.append(Cause("not explained", number_of("speedup", runs).value))
    return Reconciled(virtual.spec.method, tuple(causes))


def _is_speedup(cell: TableCell) -> bool:
    """Whether the cell is a speed-up over plain decoding, by a method with a window."""
    spec = cell.spec
    is_over_plain = isinstance(spec, VirtualSpec) and spec.over is None
    return cell.stat == "speedup" and is_over_plain and takes_gamma(spec.method)


def _from_print(
    table: Table, row: str, column: str, predicted: float
) -> Iterator[Cause]:
    """The causes between print and prediction, from the paper's own numbers."""
    printed = table.printed(row, column)
    if printed is not None:
        yield Cause("printed", printed)
        for erratum in table.errata:
            is_other = erratum.kind in CONTRADICTIONS and not erratum.beside
            computed = erratum.computed
            if computed is not None and is_other and (row, column) in erratum.cells:
                yield Cause("its own tables", computed)
        yield Cause("unexplained by its tables", predicted)
    yield Cause("predicted", predicted)


# -- from the prediction to the measurement --------------------------------------------
def _speedups(
    asked: ToySpec, runs: CellRuns, alone: CellRuns
) -> Iterator[tuple[str, float]]:
    """The virtual speed-up after each cause, with all earlier causes included.

    asked  the predicted cell, which is the starting point
    alone  speculative decoding on the same prompts
    """
    own, plain, by_turns = map(total, (runs.stats, runs.baseline, alone.stats))
    target = load_latency(asked.latency).target(1)
    outcome = total(outcomes_of(asked))
    yield "predicted", target * _speed(outcome)
    if runs.gamma != asked.gamma:
        asked = asked.changed(gamma=runs.gamma)
        outcome = total(outcomes_of(asked))
    yield "window", target * _speed(outcome)
    toys = toy_cell(asked.changed(tokens=runs.spec.tokens))
    yield "short texts", target * _speed(_run(toys))

    draft = draft_pass(by_turns, alone.gamma or 0)
    target = plain.per_step(plain.step_target)
    toys = replace(toys, latency=_latency(draft, target))
    yield "cost ratio", target * _speed(_run(toys))

    toys, tokens = replace(toys, alpha=own.acceptance_rate), _tokens_a_round(own)
    yield "acceptance", target * _speed(_run(toys), tokens)

    fed = 1 + round(by_turns.drafted_per_round)
    longer = {fed: by_turns.per_step(by_turns.step_target)}
    run = _run(replace(toys, latency=_latency(draft, target, longer)))
    yield "longer passes", target * _speed(run, tokens)

    seconds = run.per_step(run.step_seconds)
    if runs.spec.method != BY_TURNS:
        draft = draft_pass(own, runs.gamma or 0)
        slower = own.per_step(own.step_target) / run.per_step(run.step_target)
        longer = {fed: slower * longer[fed]}
        run = _run(replace(toys, latency=_latency(draft, slower * target, longer)))
        yield "both at work", target * _speed(run, tokens)

        seconds = own.per_step(own.step_busy)
        yield "uneven passes", target * tokens / seconds

    seconds += own.communication
    yield "messages", (target + plain.communication) * tokens / seconds


def _run(toys: ToyCell) -> Counts:
    """The total counts of these toy models over short texts."""
    return total(run_requests(toys, SHORT_TEXTS))


def _speed(run: Counts, tokens: float = 0) -> float:
    """Tokens per second in the rounds after the first.

    tokens  committed per round; 0: as many as in the run
    """
    return (tokens or _tokens_a_round(run)) / run.per_step(run.step_seconds)


def _tokens_a_round(run: Counts) -> float:
    return run.per_step(run.tokens - run.first_tokens)


def _latency(
    draft: float, target: float, longer: Mapping[int, float] = MappingProxyType({})
) -> Latency:
    """Seconds per pass; ``longer`` has the target's seconds by number of tokens fed."""
    points = sorted({1: target, **longer}.items())
    return Latency(Curve(((1, draft),)), Curve(tuple(points)))
