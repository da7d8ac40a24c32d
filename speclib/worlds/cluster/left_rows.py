"""How rows of a large vocabulary come from a device to the controller: hardly ever.

A device leaves each row in its node's part of Ray's object store, and sends what a test
needs of it with its reply (see ``core.far_rows``). A whole row is fetched where that is
not enough, as after a rejection. Ray drops a row once nobody refers to it any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import ray
from ray.exceptions import GetTimeoutError, RayError

from speclib.core.far_rows import FarRow, FarRows, RowFacts
from speclib.core.sampling import CoinTosser, Row, Rows
from speclib.operations.operation import Operation, Raw, Request
from speclib.operations.row_facts import facts_of_rows
from speclib.worlds.devices import DeviceLost

# What is smaller, Ray sends with the reply anyway.
SMALLEST_ROW = 100 * 1024  # bytes


class LeftRow(NamedTuple):
    """A row in the object store, and what is said of it."""

    reference: Any
    facts: RowFacts


def leave(raw: Raw, operation: Operation, request: Request) -> Rows | list[LeftRow]:
    """Leaves large rows in the object store, each by itself; on the device."""
    rows = raw.rows
    if not operation.gives_distributions or not len(rows):
        return rows
    if rows[0].nbytes < SMALLEST_ROW:
        return rows
    facts = facts_of_rows(operation, raw, request)
    references = [ray.put(row) for row in rows]
    return list(map(LeftRow, references, facts))


class Reference(NamedTuple):
    """Ray's reference to a row, and the device that left it."""

    of_ray: Any
    device: str


class ObjectStore:
    """Ray's, as the controller sees it.

    ``timeout``: seconds in which a row has to come.
    """

    def __init__(self, timeout: float):
        self.timeout = timeout

    def far_rows(self, left: Sequence[LeftRow], coins: CoinTosser, device: str) -> Rows:
        """What stands for the rows that ``device`` has left."""
        rows = []
        for row in left:
            reference = Reference(row.reference, device)
            rows.append(FarRow(row.facts, coins, self, reference))
        return cast(Rows, FarRows(rows, left[0].facts.vocab))

    def fetch(self, references: Sequence[Reference]) -> list[Row]:
        """Copies of the rows, since what Ray gives may not be written to.

        Raises DeviceLost where a device that left one is gone, and where they do not
        come in time.
        """
        devices = " and ".join(sorted({f"{r.device!r}" for r in references}))
        if not ray.is_initialized():  # asked all the same, it would start a cluster
            raise DeviceLost(
                f"the cluster was left, and with it a distribution of {devices}"
            )
        try:
            fetched = ray.get([r.of_ray for r in references], timeout=self.timeout)
        except GetTimeoutError:
            raise DeviceLost(
                f"distributions of {devices} did not come in {self.timeout:g} s. Slow "
                "network: give a larger timeout"
            ) from None
        except RayError as error:
            raise DeviceLost(
                f"device {self._lost_among(references)!r} was lost, and with it a "
                f"distribution that it had left on its node: {type(error).__name__}"
            ) from None
        return [np.array(row) for row in fetched]

    def _lost_among(self, references: Sequence[Reference]) -> str:
        """Which device's row cannot be had."""
        for reference in references:
            try:
                ray.get(reference.of_ray, timeout=self.timeout)
            except RayError:
                return reference.device
        return references[0].device
