"""Numbers of earlier runs, for cells that this one has not reached.

They come from the ledger, from this machine or another, and are shown as what they are:
they are not among a table's values, no claim is judged on them, and no chart draws
them.
"""

from __future__ import annotations

from collections.abc import Iterable

from .ledger import LedgerRow
from .schema import Table


def earlier_numbers(
    table: Table,
    left_out: Iterable[tuple[str, str, str]],
    ledger: Iterable[LedgerRow],
    machine_name: str,
) -> dict[tuple[str, str, str], LedgerRow]:
    """By (row, column, kind) of cells that were left out, their row in the ledger.

    Of several machines' rows this machine's is taken, else the one with most requests.
    """
    wanted = set(left_out)
    found: dict[tuple[str, str, str], LedgerRow] = {}
    for row in ledger:
        place = row.row, row.column, row.kind
        if row.item != table.item or row.value is None or place not in wanted:
            continue
        if row.metric != table.settings_of(row.row, row.column)["metric"]:
            continue  # the second number of a cell, such as its speed with prefill

        if place not in found or _rank(row, machine_name) > _rank(
            found[place], machine_name
        ):
            found[place] = row
    return found


def _rank(row: LedgerRow, machine_name: str) -> tuple[bool, int]:
    """The higher the better: this machine's numbers first, then by requests."""
    return machine_name in row.setup, row.n or 0


def origin(row: LedgerRow) -> str:
    """Where and when an earlier number was made, for people."""
    _, at_sign, place = row.setup.partition("@")
    machine_name = place.split("/")[0] if at_sign else "any machine"
    words = row.source.split()
    day = words[1] if at_sign and len(words) > 1 else ""
    return f"{machine_name}, {day}" if day else machine_name
