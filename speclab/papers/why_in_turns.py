"""Why a measured gain differs from the printed one, if draft and target take turns.

For tables that print the seconds of drafting, of verification and in total, such as
EasySpec's Table 2. A round takes the sum of its parts. We replace these one at a time
by the values measured here (see ``CAUSES``). The cost ratio comes from speculative
decoding on the same prompts, whose draft passes are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from speclab.runs.rows import CellRuns, key_of
from speclab.runs.spec import ToySpec
from speclab.traces.counts import Counts
from speclab.traces.reconcile import Cause, Reconciled
from speclab.virtual.settle import outcomes_of, toy_cell
from speclab.virtual.toy_requests import run_requests
from speclib.data.latency import Latency, load_latency
from speclib.errors import BadValue
from speclib.trace.metrics import ratio, total

from .fill import Known
from .paper_schema import Table
from .table_cells import TableCell
from .table_result import Key
from .virtual_numbers import keys_of

SHORT_TEXTS = 200  # simulated texts as short as the measured ones
BY_TURNS = "speculative"  # the method in which one model rests while the other works


class Predicted(NamedTuple):
    """A row's predicted cells, their speed-up, and the seconds of passes behind them.

    ``plain`` is plain decoding, ``own`` the whole method, ``drafting`` and
    ``verification`` its parts; all three are runs of ``spec``. ``pass_seconds`` is the
    time of a target pass on a single device, ``latency`` has the method's own passes.
    """

    plain: TableCell
    own: TableCell
    drafting: TableCell
    verification: TableCell
    spec: ToySpec
    speedup: float
    pass_seconds: float
    latency: Latency


class Measured(NamedTuple):
    """The sums over a row's measured requests.

    ``plain`` is plain decoding on a single device, ``parallel`` the same on the
    method's devices. ``exact`` is an exact draft pass in seconds, and ``tokens`` the
    limit of a text.
    """

    plain: Counts
    parallel: Counts
    own: Counts
    exact: float
    tokens: int

    @property
    def pass_seconds(self) -> float:
        """Seconds of a target pass on a single device."""
        return self.plain.per_step(self.plain.step_target)

    @property
    def speedup(self) -> float:
        """The wall-clock speed-up over plain decoding on a single device."""
        own, plain = self.own, self.plain
        return plain.per_100(plain.step_seconds) / own.per_100(own.step_seconds)


@dataclass(frozen=True)
class Round:
    """A round's parts, in target passes on a single device.

    ``target`` is a target pass over one token, ``longer`` how many times as long the
    pass over the drafts takes.
    """

    draft: float
    target: float
    longer: float
    tokens: float
    messages: float = 0.0

    @property
    def speedup(self) -> float:
        """The speed-up over plain decoding, which writes a token per pass."""
        return self.tokens / (self.draft + self.target * self.longer + self.messages)


def why_in_turns(
    table: Table, row: str, cells: Mapping[Key, TableCell], known: Known
) -> Reconciled:
    """The causes of a row's gain, which is ``main.of`` over ``main.by``, in seconds.

    Raises BadValue if a number is missing.
    """
    predicted = _predicted(table, row, cells, known)
    measured = _measured(table, row, cells, known)
    outcome = total(outcomes_of(predicted.spec))
    causes = [*_from_print(table, predicted, outcome)]
    causes.append(Cause("predicted", predicted.speedup))
    (_, start), *changed = _rounds(predicted, outcome, measured)
    for name, speedup in changed:
        causes.append(Cause(name, predicted.speedup * speedup / start))
    causes.append(Cause("not explained", measured.speedup))
    return Reconciled(predicted.spec.method, tuple(causes))


def runs_by_turns(
    measured: TableCell, cells: Mapping[Key, TableCell], known: Known
) -> CellRuns | None:
    """Speculative decoding on the same prompts by the same pair; None if not run."""
    plain = key_of(measured.spec.plain_decoding)
    for cell in cells.values():
        has_same_prompts = key_of(cell.spec.plain_decoding) == plain
        if cell.spec.method == BY_TURNS and has_same_prompts:
            return known.rows.of(cell.spec, known.machine_of(cells.values()))
    return None


def draft_pass(run: Counts, gamma: int | None) -> float:
    """Seconds per draft pass, not counting the passes of each text's first window."""
    return ratio(run.step_draft, run.draft_runs - (gamma or 0) * run.requests)


def not_run(table: Table, row: str, column: str) -> BadValue:
    """The error for a cell without the numbers that its causes need."""
    return BadValue(
        f"{table.item}, {row!r}, {column!r}: it, or speculative decoding on the same "
        f"prompts, was not run: `PAPER={table.paper.key} make reproduce`"
    )


# -- what is known ---------------------------------------------------------------------
def _predicted(
    table: Table, row: str, cells: Mapping[Key, TableCell], known: Known
) -> Predicted:
    plain, own = (cells.get((row, column, "virtual")) for column in _columns(table))
    numbers = [known.virtual.get(keys_of(cell)[0]) for cell in (plain, own) if cell]
    speeds = [number.number.value for number in numbers if number]
    if plain is None or own is None or len(speeds) < 2:
        raise not_run(table, row, _columns(table)[1])
    assert isinstance(plain.spec, ToySpec)
    assert isinstance(own.spec, ToySpec)
    own_row = [cell for cell in cells.values() if cell.row == row]  # rows share specs
    parts = {cell.stat: cell for cell in own_row if cell.spec == own.spec}
    return Predicted(
        plain,
        own,
        parts["draft_seconds"],
        parts["verify_seconds"],
        spec=own.spec,
        speedup=speeds[0] / speeds[1],
        pass_seconds=load_latency(plain.spec.latency).target(1),
        latency=load_latency(own.spec.latency),
    )


def _measured(
    table: Table, row: str, cells: Mapping[Key, TableCell], known: Known
) -> Measured:
    machine = known.machine_of(cells.values())
    plain, own = (cells.get((row, column, "measured")) for column in _columns(table))
    if plain is None or own is None:
        raise not_run(table, row, _columns(table)[1])
    of, by = (known.rows.of(cell.spec, machine) for cell in (plain, own))
    exact = runs_by_turns(own, cells, known)
    if of is None or by is None or exact is None:
        raise not_run(table, row, own.column)
    seconds = draft_pass(total(exact.stats), exact.gamma)
    plain_alone, parallel, own_sums = map(total, (of.stats, by.baseline, by.stats))
    return Measured(plain_alone, parallel, own_sums, seconds, by.spec.tokens)


def _columns(table: Table) -> tuple[str, str]:
    """The columns of plain decoding and of the method."""
    assert table.main is not None
    return str(table.main.of), str(table.main.by)


# -- cause by cause --------------------------------------------------------------------
def _from_print(table: Table, predicted: Predicted, outcome: Counts) -> Iterator[Cause]:
    """The causes between the printed and the predicted gain; none if not printed."""
    printed = [table.printed(cell.row, cell.column) for cell in predicted[:4]]
    if None in printed:
        return
    plain, seconds, drafting, verification = (number or 0 for number in printed)
    yield Cause("printed", plain / seconds)
    seconds = drafting + verification
    yield Cause("its own tables", plain / seconds)
    plain = 100 * predicted.pass_seconds
    yield Cause("plain decoding", plain / seconds)
    seconds += outcome.per_100(outcome.step_draft) - drafting
    yield Cause("drafting", plain / seconds)
    verified = outcome.step_target + outcome.step_verify
    seconds += outcome.per_100(verified) - verification
    yield Cause("verification", plain / seconds)
    yield Cause("unexplained by its tables", predicted.speedup)


def _rounds(
    predicted: Predicted, outcome: Counts, here: Measured
) -> Iterator[tuple[str, float]]:
    """The speed-up after each cause, with all earlier causes included."""
    yield "predicted", _simulated_round(predicted, outcome).speedup
    toys = toy_cell(predicted.spec.changed(tokens=here.tokens))
    round_ = _simulated_round(predicted, total(run_requests(toys, SHORT_TEXTS)))
    yield "short texts", round_.speedup

    parallel = here.parallel.per_step(here.parallel.step_target)
    round_ = replace(round_, target=parallel / here.pass_seconds)
    yield "tensor parallelism", round_.speedup

    exact = here.exact / here.pass_seconds
    longer = exact / (predicted.latency.draft(1) / predicted.pass_seconds)
    round_ = replace(round_, draft=round_.draft * longer)
    yield "cost ratio", round_.speedup

    own = here.own
    draft = own.per_step(own.step_draft) / here.pass_seconds
    round_ = replace(round_, draft=draft)
    yield "approximate passes", round_.speedup

    round_ = replace(round_, tokens=_tokens_a_round(own))
    yield "acceptance", round_.speedup

    round_ = replace(round_, longer=own.per_step(own.step_target) / parallel)
    yield "longer passes", round_.speedup

    round_ = replace(round_, messages=own.communication / here.pass_seconds)
    plain_pass = here.pass_seconds + here.plain.communication
    yield "messages", round_.speedup * plain_pass / here.pass_seconds


def _simulated_round(predicted: Predicted, outcome: Counts) -> Round:
    target = predicted.latency.target(1)
    return Round(
        draft=outcome.per_step(outcome.step_draft) / predicted.pass_seconds,
        target=target / predicted.pass_seconds,
        longer=outcome.per_step(outcome.step_target) / target,
        tokens=_tokens_a_round(outcome),
    )


def _tokens_a_round(run: Counts) -> float:
    return run.per_step(run.tokens - run.first_tokens)
