"""The machines whose cells count here: this one, and in a cluster its nodes, too.

A measured cell is stored under a key that names the machine (see ``cache_keys``). Where
nodes of a cluster have measured, a table shows their cells beside its own; so what
tells these machines apart is stored in the cache.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from speclib import machine, paths
from speclib.atomic_files import write_atomically

IN_CLUSTER = "SPECLIB_WORLD"  # this variable is "cluster" while nodes measure

Environment = tuple[tuple[str, str], ...]  # as of ``machine.environment``


@contextmanager
def of_cluster(is_measuring: bool) -> Iterator[None]:
    """In this block, and in processes that it starts, the nodes' cells count, too.

    Only where a cluster ``is_measuring``.
    """
    before = os.environ.get(IN_CLUSTER)
    if is_measuring:
        os.environ[IN_CLUSTER] = "cluster"
    try:
        yield
    finally:
        os.environ.pop(IN_CLUSTER, None)
        if before is not None:
            os.environ[IN_CLUSTER] = before


def known_environments() -> list[Environment]:
    """This machine's; in a cluster also those of the nodes that have measured."""
    found = [machine.environment()]
    if os.environ.get(IN_CLUSTER) == "cluster":
        found += [other for other in _others() if other not in found]
    return found


def remember(environment: Environment) -> None:
    """Cells that were measured there count here from now on."""
    others = _others()
    if environment not in others:
        text = json.dumps([*others, environment], indent=1)
        write_atomically(paths.CACHE / "environments.json", text)


def _others() -> list[Environment]:
    try:
        text = (paths.CACHE / "environments.json").read_text("utf-8")
        listed = json.loads(text)
        return [tuple((name, value) for name, value in other) for other in listed]
    except (OSError, ValueError, TypeError):
        return []
