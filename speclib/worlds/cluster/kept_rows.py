"""How rows of a large vocabulary come from a device to the controller: hardly ever.

A device keeps its rows, and sends with its reply what a test needs of them (see
``core.far_rows``). A whole row is fetched where that is not enough, as after a
rejection; then it comes through Ray's object store. Each question says which rows
nobody refers to any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import ray
from ray.exceptions import GetTimeoutError, RayError

from speclib.core.far_rows import FarRow, FarRows, RowFacts
from speclib.core.sampling import CoinTosser, Row, Rows
from speclib.operations.operation import Operation, Raw, Request
from speclib.operations.row_facts import facts_of_rows
from speclib.worlds.devices import DeviceLost

# What is smaller goes with the reply.
SMALLEST_ROW = 100 * 1024  # bytes


# -- on the device ---------------------------------------------------------------------
class KeptRows:
    """The rows of past operations, by the operations' numbers."""

    def __init__(self) -> None:
        self._rows: dict[int, Rows] = {}

    def drop_all_but(self, needed: Sequence[int]) -> None:
        """Forgets the rows of all operations but the ``needed`` ones."""
        self._rows = {n: rows for n, rows in self._rows.items() if n in needed}

    def keep(
        self, number: int, raw: Raw, operation: Operation, request: Request
    ) -> Rows | list[RowFacts]:
        """Keeps large rows, and gives what is to be said of them; small ones as they
        are."""
        rows = raw.rows
        if not operation.gives_distributions or not len(rows):
            return rows
        if rows[0].nbytes < SMALLEST_ROW:
            return rows
        self._rows[number] = rows
        return facts_of_rows(operation, raw, request)

    def read(self, number: int, places: Sequence[int]) -> Rows:
        """Some of the rows of an operation."""
        return self._rows[number][list(places)]


# -- on the controller -----------------------------------------------------------------
class Batch:
    """The rows of one operation. While somebody refers to it, the device keeps them.

    ``ask``: asks the device for the rows at some places; gives Ray's reference.
    """

    def __init__(self, device: str, ask: Callable[[list[int]], Any]):
        self.device = device
        self.ask = ask


class Reference(NamedTuple):
    """The row at a ``place`` of a batch."""

    batch: Batch
    place: int


class FarStore:
    """The rows that devices keep.

    ``timeout``: seconds in which a row has to come.
    """

    def __init__(self, timeout: float):
        self.timeout = timeout

    def far_rows(
        self, facts: Sequence[RowFacts], batch: Batch, coins: CoinTosser
    ) -> Rows:
        """What stands for the rows of a batch."""
        rows = []
        for place, of_row in enumerate(facts):
            rows.append(FarRow(of_row, coins, self, Reference(batch, place)))
        return cast(Rows, FarRows(rows, facts[0].vocab))

    def fetch(self, references: Sequence[Reference]) -> list[Row]:
        """The rows, in the order of ``references``.

        Each batch is asked once for all that is wanted of it, and all of them at the
        same time.

        Raises DeviceLost where a device that has one is gone, and where they do not
        come in time.
        """
        places_of_batch: dict[Batch, list[int]] = {}
        for reference in references:
            places_of_batch.setdefault(reference.batch, []).append(reference.place)
        devices = " and ".join(sorted({repr(b.device) for b in places_of_batch}))
        if not ray.is_initialized():  # asked all the same, it would start a cluster
            raise DeviceLost(
                f"the cluster was left, and with it a distribution of {devices}"
            )

        answer_of_batch = {b: b.ask(places) for b, places in places_of_batch.items()}
        row_of_reference: dict[Reference, Row] = {}
        for batch, answer in answer_of_batch.items():
            rows = self._receive(answer, batch.device)
            for place, row in zip(places_of_batch[batch], rows, strict=True):
                # A copy, since what Ray gives may not be written to.
                row_of_reference[Reference(batch, place)] = np.array(row)
        return [row_of_reference[reference] for reference in references]

    def _receive(self, answer: Any, device: str) -> Rows:
        """The rows that a device was asked for."""
        try:
            rows: Rows = ray.get(answer, timeout=self.timeout)
        except GetTimeoutError:
            raise DeviceLost(
                f"a distribution of device {device!r} did not come in "
                f"{self.timeout:g} s. Slow network: give a larger timeout"
            ) from None
        except RayError as error:
            raise DeviceLost(
                f"device {device!r} was lost, and with it a distribution that it had "
                f"not sent: {type(error).__name__}"
            ) from None
        return rows
