"""Open claims that ask for some cells, made up."""

from __future__ import annotations

from collections.abc import Iterable

from speclab.experiment.spec import Spec
from speclab.papers.table_result import Way
from speclab.reproduce.open_cells import OpenClaim


def claim_on(
    specs: Iterable[Spec], replayed: Iterable[Spec] = (), requests: float = 0
) -> OpenClaim:
    """A claim about these cells that asks for more timed requests of all of them.

    ``replayed``: cells that it is short of replays of. ``requests``: as of ``Way``.
    """
    cells = frozenset(specs)
    return OpenClaim(cells, [Way(cells, frozenset(replayed), requests)])
