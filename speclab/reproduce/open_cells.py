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

from speclab.experiment.spec import Profile, Spec
from speclab.papers.fill import cells_of, collect_all
from speclab.papers.paper_schema import Paper, Table
from speclab.papers.table_cells import TableCell
from speclab.papers.table_result import Key, TableResult, Way


class OpenClaim(NamedTuple):
    """A claim that is not settled: all cells that it is about, and what would do."""

    specs: AbstractSet[Spec]
    ways: Sequence[Way[Spec]]

    @property
    def to_time(self) -> AbstractSet[Spec]:
        """The cells of which some way asks for more timed requests."""
        return _union(way.to_time for way in self.ways)


class OpenClaims(NamedTuple):
    """All claims that are not settled."""

    claims: Sequence[OpenClaim]

    def within(self, requests: float) -> OpenClaims:
        """Those that so many timed requests of each cell may settle, and how."""
        near = []
        for claim in self.claims:
            ways = [way for way in claim.ways if way.requests <= requests]
            if ways:
                near.append(claim._replace(ways=ways))
        return OpenClaims(near)

    @property
    def whole(self) -> OpenClaims:
        """The same, as if each claim asked for more timed requests of all its cells.

        But for those of methods that no open question asks for: these cells tell how
        much corrections of their own method differ.
        """
        asked = {(spec.kind, spec.method) for spec in self.specs_to_time}
        whole = []
        for claim in self.claims:
            to_time = {s for s in claim.specs if (s.kind, s.method) in asked}
            to_replay = _union(way.to_replay for way in claim.ways)
            whole.append(claim._replace(ways=[Way(to_time, to_replay)]))
        return OpenClaims(whole)

    @property
    def specs_to_time(self) -> AbstractSet[Spec]:
        """All cells of which claims ask for more timed requests."""
        return _union(claim.to_time for claim in self.claims)

    @property
    def specs_to_replay(self) -> AbstractSet[Spec]:
        """All cells of which claims ask for more replays."""
        return _union(way.to_replay for claim in self.claims for way in claim.ways)


def _union(sets: Iterable[AbstractSet[Spec]]) -> AbstractSet[Spec]:
    specs: set[Spec] = set()
    for each in sets:
        specs |= each
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
    claims: list[OpenClaim] = []
    for paper in papers:
        results = collect_all(paper, profile, errors, kinds=kinds)
        for item, cells in cells_of(paper, profile, kinds=kinds).items():
            claims += open_claims_of(results[item], cells).claims
    return OpenClaims(claims)


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

    claims = []
    for claim in result.not_settled:
        ways = []
        for way in claim.ways:
            to_time, to_replay = specs_of(way.to_time), specs_of(way.to_replay)
            ways.append(Way(to_time, to_replay, way.requests))
        claims.append(OpenClaim(specs_of(claim.keys), ways))
    return OpenClaims(claims)


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
