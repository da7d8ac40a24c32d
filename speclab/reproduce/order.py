"""In which order work is done: this page alone decides it.

Work is done in rounds. The first one takes every cell of real processes to one request,
those of the main tables to two, and each later one to twice as many. Before each round
it is asked which claims are open: after the first, only the cells that these ask for
are taken further, so that time goes where it settles something. From the second request
on a round begins with replays, where claims are short of them: as many as its requests
would bring. Then it is asked again what is open. Up to the fourth requests are for all
cells of open claims, since these together tell how much corrections differ, but for
methods about which nothing is open; further ones are for the cells of their open
questions alone.

A claim that needs more than ``REACH`` times the requests of a round waits for a later
one: it would take the time of those that can be settled. The last round is for what is
left of such claims, and after it comes what has no requests left to be timed and is
still short of replays. In the first round comes

    opening       the virtual numbers of the main tables
    main tables   what is measured of them, paper by paper
    scripts       they are few and short
    the rest      what serves most open claims for each second that it takes

and in later ones all that is measured belongs to the rest.

What serves about as many claims stands by kind, virtual numbers first, and then in
turns of the pairs of all papers: what a pair measures stands together, so that its
workers start once. What serves no claim comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from math import floor, inf, log2

from speclab.experiment.spec import Spec, WorkerPool, replays_of

from .batches import FIRST_REQUESTS, Batch
from .open_cells import OpenClaim, OpenClaims

KINDS = ("virtual", "script", "measured", "emulated")

NO_CLAIMS = OpenClaims([])
# From so many measured requests on replays alone may be what is missing. With fewer,
# nearly every claim is short of both: replays took 20 minutes, and settled little.
FEWEST_BEFORE_REPLAYS = 2
# Up to so many requests claims ask for all their cells, not for those of their open
# questions alone: these together tell how much corrections differ.
WHOLE_CLAIMS = 4
REACH = 4  # in a round claims count that need up to so many times its requests


@dataclass(frozen=True)
class Piece:
    """A batch's next requests: those that bring each of its cells to ``requests``.

    ``is_opening``: whether it belongs to the first numbers of a paper's main table.
    """

    batch: Batch
    requests: int
    is_opening: bool = False

    @property
    def next_requests(self) -> int:
        """To how many requests its next step takes the cells: one further, mostly."""
        one_further = self.batch.fewest_requests + 1
        return min(self.requests, max(self.batch.first_requests, one_further))


@dataclass(frozen=True)
class ReplayPiece:
    """Cells, of whatever batch, that get as many replays as so many requests bring.

    ``is_last``: whether no requests are timed after it.
    """

    specs: tuple[Spec, ...]
    requests: int
    is_last: bool = False


class Stage(IntEnum):
    """The parts of a round."""

    OPENING = 0
    MAIN_TABLES = 1
    SCRIPTS = 2
    REST = 3


def pieces_in_order(
    batches: Sequence[Batch],
    in_rounds: bool,
    ask_what_is_open: Callable[[], OpenClaims | None] = lambda: None,
    seconds_of: Callable[[Batch, int], float] = lambda batch, requests: 1.0,
) -> Iterator[Piece | ReplayPiece]:
    """All pieces of some papers, in the order in which they are to be run.

    Without ``in_rounds``, as where there is time for everything, each batch is one
    piece. ``ask_what_is_open`` is asked before each round; None: nobody knows, and all
    cells are taken further. ``seconds_of`` says how long it would take to bring a
    batch's cells to so many requests.
    """
    if not in_rounds:
        for batch in Order(batches).of_a_round():
            yield Piece(batch, batch.most_requests, batch.is_main)
        return

    rounds = Rounds(batches, ask_what_is_open, seconds_of)
    yield from rounds.first()
    for goal, reach in _later_rounds(batches):
        yield from rounds.later(goal, reach)
    yield from rounds.last_replays()


class Rounds:
    """The pieces of one round after the other; arguments as of ``pieces_in_order``."""

    def __init__(
        self,
        batches: Sequence[Batch],
        ask_what_is_open: Callable[[], OpenClaims | None],
        seconds_of: Callable[[Batch, int], float],
    ):
        self._batches = batches
        self._ask_what_is_open = ask_what_is_open
        self._seconds_of = seconds_of
        self._replayed: dict[Spec, int] = {}  # how many prompts of each

    def first(self) -> Iterator[Piece]:
        """Every cell's first requests."""

        def seconds_of_first(batch: Batch) -> float:
            return self._seconds_of(batch, batch.first_requests)

        claims = self._ask_what_is_open() or NO_CLAIMS
        order = Order(self._batches, claims.claims, seconds_of_first)
        for batch in order.of_a_round():
            requests = min(batch.first_requests, batch.most_requests)
            yield Piece(batch, requests, batch.is_main)

    def later(self, goal: int, reach: float) -> Iterator[Piece | ReplayPiece]:
        """Up to ``goal`` requests, of cells of claims that need ``reach`` at most."""
        claims = self._ask(goal, reach)
        if claims is None and reach == inf:
            return  # the round before has taken all cells as far
        replays = None
        if goal > FEWEST_BEFORE_REPLAYS:
            replays = _replays(self._batches, claims, goal, self._replayed)
        if replays is not None:
            yield replays
            claims = self._ask(goal, reach)

        wanted = None if claims is None else claims.specs_to_time
        for batch in self._batches:
            batch.wanted = wanted if batch.is_in_parts else None

        def seconds_of_goal(batch: Batch) -> float:
            return self._seconds_of(batch, goal)

        asked = (claims or NO_CLAIMS).claims
        order = Order(self._batches, asked, seconds_of_goal, is_first_round=False)
        for batch in order.of_a_round():
            has_more = claims is not None or batch.most_requests > goal // 2
            if has_more and goal > batch.first_requests:
                yield Piece(batch, min(goal, batch.most_requests))

    def last_replays(self) -> Iterator[ReplayPiece]:
        """Those that had no time in their round have what is left of it."""
        most = max((batch.most_requests for batch in self._batches), default=0)
        replays = _replays(self._batches, self._ask_what_is_open(), most, {})
        if replays is not None:
            yield replace(replays, is_last=True)

    def _ask(self, goal: int, reach: float) -> OpenClaims | None:
        """What is open, as far as this round is for it."""
        claims = self._ask_what_is_open()
        if claims is None:
            return None
        return claims.whole if goal <= WHOLE_CLAIMS else claims.within(reach)


def _later_rounds(batches: Sequence[Batch]) -> Iterator[tuple[int, float]]:
    """To how many requests each takes the cells, of claims that need at most so many.

    The last one is for those that need more.
    """
    most = max((batch.most_requests for batch in batches), default=0)
    goal = FIRST_REQUESTS
    while goal < most:
        goal *= 2
        yield goal, REACH * goal
    yield goal, inf


def _replays(
    batches: Sequence[Batch],
    claims: OpenClaims | None,
    requests: int,
    replayed: dict[Spec, int],
) -> ReplayPiece | None:
    """Replays of measured cells that claims are short of, as of so many ``requests``.

    They are one piece, since cells of equal prompts are replayed together, whatever
    batch they belong to. Notes in ``replayed`` how many prompts each cell has then.
    """
    if claims is None:
        return None
    prompts, wanted = replays_of(requests), claims.specs_to_replay
    measured = [batch for batch in batches if batch.kind == "measured"]
    to_replay = []
    for batch in measured:
        short = [spec for spec in batch.specs if spec in wanted]
        to_replay += [spec for spec in short if replayed.get(spec, 0) < prompts]
    if not to_replay:
        return None
    replayed.update(dict.fromkeys(to_replay, prompts))
    return ReplayPiece(tuple(to_replay), requests)


class Order:
    """The order of some batches in a round.

    Papers stand as their batches do, and so do the pairs of a paper in its main table.
    ``claims`` are those that are open, each by the cells that it asks for.
    ``seconds_of``: how long a batch takes in this round, as it is known when its part
    of the round begins; 0 if it has nothing to do.
    """

    def __init__(
        self,
        batches: Sequence[Batch],
        claims: Sequence[OpenClaim] = (),
        seconds_of: Callable[[Batch], float] = lambda batch: 1.0,
        is_first_round: bool = True,
    ):
        self._batches = batches
        self._claims = claims
        self._seconds_of = seconds_of
        self._is_first_round = is_first_round
        self._papers = list(dict.fromkeys(batch.paper for batch in batches))
        self._turns = _turns(batches)

    def of_a_round(self) -> Iterator[Batch]:
        """Each batch once."""
        for stage in Stage:
            own = [batch for batch in self._batches if self.stage(batch) is stage]
            if stage is Stage.REST:
                yield from self._by_worth(own)
            else:
                yield from sorted(own, key=self._rank)

    def stage(self, batch: Batch) -> Stage:
        """The part of a round to which a batch belongs."""
        if batch.kind == "script":
            return Stage.SCRIPTS
        if batch.is_main and batch.kind == "virtual":
            return Stage.OPENING
        if batch.is_main and batch.kind == "measured" and self._is_first_round:
            return Stage.MAIN_TABLES
        return Stage.REST

    def _rank(self, batch: Batch) -> tuple[int, int, int]:
        """What a batch is sorted by: its paper, kind and pair."""
        return (
            self._papers.index(batch.paper),
            KINDS.index(batch.kind),
            self._turn(batch),
        )

    def _turn(self, batch: Batch) -> int:
        return 0 if batch.pool is None else self._turns[batch.pool]

    def _by_worth(self, batches: Sequence[Batch]) -> list[Batch]:
        """Those first that serve most claims in a second.

        What serves about as many stands by kind and pair, since a pair that comes again
        has its workers started again.
        """
        worth = self._worth(batches)

        def rank(batch: Batch) -> tuple[float, ...]:
            paper, kind, turn = self._rank(batch)
            return -_power_of_four(worth[batch]), kind, turn, paper

        return sorted(batches, key=rank)

    def _worth(self, batches: Sequence[Batch]) -> dict[Batch, float]:
        """How many open claims a second of each batch serves.

        A claim is served by all that it lacks, so each of its seconds serves one in so
        many of it.
        """
        batch_of = {spec: batch for batch in batches for spec in batch.specs}
        seconds = {batch: self._seconds_of(batch) for batch in batches}
        worth = dict.fromkeys(batches, 0.0)
        for claim in self._claims:
            asked = {batch_of[spec] for spec in claim.to_time if spec in batch_of}
            missing = [batch for batch in asked if seconds[batch]]
            for batch in missing:
                worth[batch] += 1 / sum(seconds[other] for other in missing)
        return worth


def _power_of_four(value: float) -> float:
    """The power of four at or below ``value``; 0 for 0."""
    return 4.0 ** floor(log2(value) / 2) if value else 0.0


def _turns(batches: Sequence[Batch]) -> dict[WorkerPool, int]:
    """The turn of each pair: the first of every paper, then the second of each."""
    pools_of: dict[str, list[WorkerPool]] = {}
    seen: set[WorkerPool] = set()
    for batch in batches:
        if batch.pool is not None and batch.pool not in seen:
            seen.add(batch.pool)
            pools_of.setdefault(batch.paper, []).append(batch.pool)

    longest = max(map(len, pools_of.values()), default=0)
    in_turns = []
    for number in range(longest):
        for pools in pools_of.values():
            in_turns += pools[number : number + 1]
    return {pool: turn for turn, pool in enumerate(in_turns)}
