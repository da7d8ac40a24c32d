"""Which cells are to be measured or replayed further: those that open claims ask for.

A claim is open where the interval of its numbers does not settle it. Measuring what no
claim needs any more would take time from what one does, and so would measuring where
only more replays can help.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from speclab.experiment.spec import MOST_REPLAYS, CellResult, Profile, Spec
from speclab.papers.fill import cells_of, collect_all
from speclab.papers.paper_schema import Paper, Table
from speclab.papers.table_cells import TableCell
from speclab.papers.table_result import Key, TableResult


class Asked(NamedTuple):
    """The cells that one open claim asks for.

    ``requests``: about so many timed ones of each would settle it, once enough are
    replayed; infinity: more than can be counted.
    """

    specs: AbstractSet[Spec]
    requests: float = 0


class OpenClaims(NamedTuple):
    """What open claims ask for.

    timed     what each asks for that more timed requests may settle
    replayed  what each asks for that needs more replays
    """

    timed: Sequence[Asked]
    replayed: Sequence[Asked] = ()

    def within(self, requests: float) -> OpenClaims:
        """Those that so many timed requests of each cell may settle."""
        return OpenClaims(
            [asked for asked in self.timed if asked.requests <= requests],
            [asked for asked in self.replayed if asked.requests <= requests],
        )

    @property
    def specs_to_time(self) -> AbstractSet[Spec]:
        """All cells of which claims ask for more timed requests."""
        return _all_specs(self.timed)

    @property
    def specs_to_replay(self) -> AbstractSet[Spec]:
        """All cells of which claims ask for more replays."""
        return _all_specs(self.replayed)


def _all_specs(claims: Iterable[Asked]) -> AbstractSet[Spec]:
    specs: set[Spec] = set()
    for asked in claims:
        specs |= asked.specs
    return specs


def specs_of_open_claims(
    papers: Iterable[Paper],
    profile: Profile,
    kinds: Iterable[str],
    errors: Mapping[Spec, Exception],
) -> OpenClaims:
    """The cells that open claims ask for, with what they are compared with.

    ``kinds``: of the cells. ``errors``: of those that failed. Runs nothing.
    """
    kinds = tuple(kinds)
    timed: list[Asked] = []
    replayed: list[Asked] = []
    for paper in papers:
        results = collect_all(paper, profile, errors, kinds=kinds)
        for item, cells in cells_of(paper, profile, kinds=kinds).items():
            of_table = open_claims_of(results[item], cells)
            timed += of_table.timed
            replayed += of_table.replayed
    return OpenClaims(timed, replayed)


def open_claims_of(result: TableResult, cells: Iterable[TableCell]) -> OpenClaims:
    """The same of one table; ``cells`` are its own."""
    specs_at: dict[Key, list[Spec]] = defaultdict(list)
    for cell in cells:
        specs_at[cell.key] += cell.specs

    def specs_of(keys: Iterable[Key]) -> set[Spec]:
        specs: set[Spec] = set()
        for key in keys:
            for source in _sources(result.table, key):
                specs.update(specs_at[source])
        return specs

    done = {cell.spec: cell for cell in result.cell_results.values()}
    timed, replayed = [], []
    for ways in result.open_claims_ask:
        for way in ways:
            to_time, to_replay = specs_of(way.timed), specs_of(way.replayed)
            if not _is_run_to_the_end(to_time, to_replay, done):
                break
        else:
            continue  # nothing that it asks for can be had
        if to_time:
            timed.append(Asked(to_time, way.requests))
        if to_replay:
            replayed.append(Asked(to_replay, way.requests))
    return OpenClaims(timed, replayed)


def _is_run_to_the_end(
    to_time: AbstractSet[Spec],
    to_replay: AbstractSet[Spec],
    done: Mapping[Spec, CellResult],
) -> bool:
    """Whether all requests of these cells are run that there may be."""

    def is_timed(spec: Spec) -> bool:
        return spec in done and len(done[spec].stats) >= spec.requests

    def is_replayed(spec: Spec) -> bool:
        replays = done[spec].replays if spec in done else None
        if replays is None:
            return False
        most = replays.prompts_in_task or MOST_REPLAYS
        return len(replays.stats) >= min(MOST_REPLAYS, most)

    are_timed = all(is_timed(spec) for spec in to_time)
    return are_timed and all(is_replayed(spec) for spec in to_replay)


def open_specs_of(result: TableResult, cells: Iterable[TableCell]) -> AbstractSet[Spec]:
    """What would have to be timed further for the open claims of one table."""
    return open_claims_of(result, cells).specs_to_time


def _sources(table: Table, place: Key) -> Iterator[Key]:
    """The place itself, and those of the numbers that it may be computed from."""
    row, column, kind = place
    yield place
    if _is_mean(table, column):
        for other in table.column_labels:
            if not _is_mean(table, other):
                yield from _sources(table, (row, other, kind))
        return
    quotient_of = table.row.get(row, {}).get("quotient_of")
    if isinstance(quotient_of, tuple):
        for other_row in quotient_of:
            yield str(other_row), column, kind


def _is_mean(table: Table, column: str) -> bool:
    return bool(table.column.get(column, {}).get("mean_of"))
