"""The second number of a speed-up in a table: over the same devices, and their time."""

from __future__ import annotations

from collections.abc import Iterable

from speclab.experiment.spec import CellResult, Spec

from . import same_devices
from .devices import reserved_devices
from .estimates import Estimate, average
from .ledger import DEVICE_SECONDS, OVER_SAME_DEVICES
from .notes import setup_of
from .table_cells import TableCell
from .table_result import TableResult, is_disturbed
from .two_phase import Peers


def add_second_number(
    result: TableResult,
    cell: TableCell,
    cell_results: dict[Spec, CellResult],
    peers: Peers,
) -> None:
    """A speed-up over the best plain decoding on the same devices, and their time."""
    key = cell.key
    if key not in result.cell_results or not same_devices.is_speedup(cell.stat):
        return
    cell_result = result.cell_results[key]
    plain = _quiet_results(cell.plain_specs, cell_results)
    has_all_plain = len(plain) == len(cell.plain_specs)
    is_alone = cell.kind == "measured" and reserved_devices(cell_result) == 1
    if not has_all_plain and not is_alone:
        result.lacks_plain.add(key)  # the best of some would be too slow a best
        return
    second = same_devices.second_number(cell.stat, cell_result, plain, peers)
    if second is None:
        return

    result.over_same_devices[key] = second.estimate
    if cell.spec.method == "autoregressive":
        result.over_same_devices[key] = Estimate(1.0)  # what claims compare with
    source = f"{cell.kind} {cell_result.created}"
    if cell.kind == "virtual":
        source = f"data/latency/{cell.spec.latency}.toml, data/hardware"
    result.add(
        *cell.key,
        second.estimate,
        metric=OVER_SAME_DEVICES,
        setup=setup_of(cell.spec, cell_result),
        n=len(cell_result.stats),
        source=source,
        note=second.note,
        show=False,
    )
    device_seconds = same_devices.read_statistic(
        DEVICE_SECONDS, cell_result, peers=peers
    )
    result.add(
        *cell.key,
        device_seconds,
        metric=DEVICE_SECONDS,
        unit="s",
        setup=setup_of(cell.spec, cell_result),
        n=len(cell_result.stats),
        source=source,
        note=f"devices reserved, busy or not: {second.devices}",
        show=False,
    )


def _quiet_results(
    specs: Iterable[Spec], cell_results: dict[Spec, CellResult]
) -> list[CellResult]:
    """The results of cells beside which no other program kept the machine busy."""
    results = []
    for spec in specs:
        cell_result = cell_results.get(spec)
        if cell_result is not None and not is_disturbed(cell_result):
            results.append(cell_result)
    return results


def add_failed_plain(
    result: TableResult, cell: TableCell, errors: dict[Spec, Exception]
) -> None:
    """Says why plain decoding on all cores failed, once for all cells that need it."""
    for spec in cell.plain_specs:
        if spec in errors:
            result.errors[f"{result.table.item}: {spec.name}"] = str(errors[spec])


def add_mean_of_second_numbers(
    result: TableResult, row: str, column: str, kind: str, cells: int
) -> None:
    """Adds the mean of a row's second numbers, if each of its ``cells`` has one."""
    seconds = []
    for other in result.table.column_labels:
        estimate = result.over_same_devices.get((row, other, kind))
        if estimate is not None:
            seconds.append(estimate)
    if len(seconds) < cells:
        return
    mean = average(seconds)
    result.over_same_devices[row, column, kind] = mean
    result.add(
        row,
        column,
        kind,
        mean,
        metric=OVER_SAME_DEVICES,
        setup=result.setup_of_row(row, kind),
        note=f"mean of the other {cells} columns",
        show=False,
    )
