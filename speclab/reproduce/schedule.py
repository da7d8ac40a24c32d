"""Work done in order, until a deadline if there is one.

Work is cut into pieces, and ``order`` says in which order they come. A piece of which
not even a request of each cell would end before the deadline, by what its like took the
last time, is left out. One that takes longer is stopped at the deadline, and its
finished requests are stored. What other programs disturbed is run again at the end, as
far as there is time.

With nodes of a cluster, measured pieces that follow each other are run there, each
pair's on one node. The other kinds are run here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import groupby

from speclab.experiment.limits import Limits
from speclab.experiment.on_nodes import Nodes
from speclab.experiment.run_cells import Runner
from speclab.experiment.spec import Spec

from .batches import Batch, ScriptOfItem
from .measuring_on_nodes import MeasuringOnNodes
from .open_cells import OpenClaims
from .order import Piece, ReplayPiece, pieces_in_order
from .pace import Pace

# Of the time that is left, replays may take so much before requests are timed again:
# a claim mostly lacks both.
SHARE_OF_REPLAYS = 0.5


class Schedule:
    """Does the work of some papers.

    ``deadline`` is on ``clock``; without one a batch is done completely before the next
    one begins. ``on_main_table(paper)`` is called when what a paper begins with, the
    first numbers of its main table, has been run. ``ask_what_is_open``: see ``order``.
    """

    def __init__(
        self,
        batches: Sequence[Batch],
        runner: Runner,
        pace: Pace,
        deadline: float | None,
        on_main_table: Callable[[str], None],
        nodes: Nodes | None = None,
        clock: Callable[[], float] = time.monotonic,
        ask_what_is_open: Callable[[], OpenClaims | None] = lambda: None,
    ):
        self.batches = batches
        self.runner = runner
        self.pace = pace
        self.deadline = deadline
        self.clock = clock
        self.script_errors: dict[str, str] = {}  # why by name of the script
        self._on_main_table = on_main_table
        self._ask_what_is_open = ask_what_is_open
        self._on_nodes: MeasuringOnNodes | None = None
        if nodes is not None:  # of a cluster, which measure in place of this machine
            self._on_nodes = MeasuringOnNodes(nodes, runner, pace, self.describe_rest)
        for batch in batches:
            batch.count_done()
        openings = [piece for piece in self._known_pieces() if piece.is_opening]
        self._openings_left = Counter(piece.batch.paper for piece in openings)

    def run(self) -> None:
        """Runs piece after piece, and then again what other programs disturbed."""
        pieces_to_run = pieces_in_order(
            self.batches,
            self._in_rounds,
            self._ask_in_time,
            self._seconds_to,
        )
        for is_for_nodes, pieces in groupby(pieces_to_run, self._is_for_nodes):
            if is_for_nodes:
                self._run_on_nodes(list(pieces))
            else:
                self._run_here(pieces)
        self.repeat_disturbed()

    def _ask_in_time(self) -> OpenClaims | None:
        """What is open; None once the time is over, when nothing more is begun."""
        return self._ask_what_is_open() if self._fits(0) else None

    @property
    def _in_rounds(self) -> bool:
        return self.deadline is not None

    def _known_pieces(self) -> Iterator[Piece]:
        """All pieces in their order, as far as it is known now; no replays are."""
        for piece in pieces_in_order(self.batches, self._in_rounds):
            if isinstance(piece, Piece):
                yield piece

    def _run_here(self, pieces: Iterable[Piece | ReplayPiece]) -> None:
        """Runs pieces one after the other, those that fit."""
        for piece in pieces:
            if isinstance(piece, ReplayPiece):
                self._replay(piece)
                continue
            units = piece.batch.units_to(piece.next_requests)
            if units > 0 and self._fits(self._expected_seconds(piece.batch, units)):
                self._run_piece(piece)
            self._count_opening(piece)

    def _count_opening(self, piece: Piece) -> None:
        """Tells of a paper's main table when its opening has come to an end."""
        if not piece.is_opening:
            return
        paper = piece.batch.paper
        self._openings_left[paper] -= 1
        if self._openings_left[paper] == 0:
            self._on_main_table(paper)

    # -- one piece ---------------------------------------------------------------------
    def _run_piece(self, piece: Piece) -> None:
        """Brings the cells of a batch to so many requests, and notes what it took."""
        batch = piece.batch
        self.runner.bar.rename(f"{batch.name}, {self.describe_rest()}")
        units_before = batch.units_to(piece.requests)
        failures_before = len(self.runner.errors)

        started = self.clock()
        if batch.script is not None:
            self._compute(batch, batch.script)
        else:
            specs = batch.specs_to(piece.requests)
            self.runner.run(specs, self._limits(piece))
        seconds = self.clock() - started

        batch.count_done(self.runner.errors)
        units = units_before - batch.units_to(piece.requests)
        has_failed = len(self.runner.errors) > failures_before
        if units > 0 and not has_failed:
            self.pace.note(batch.kind, batch.alike, units, seconds=seconds)

    def _replay(self, piece: ReplayPiece) -> None:
        """Replays prompts of some cells, in a share of the time that is left."""
        self.runner.bar.rename(f"replays, {self.describe_rest()}")
        until = self.deadline
        if until is not None and not piece.is_last:
            now = self.clock()
            until = now + SHARE_OF_REPLAYS * (until - now)
        self.runner.replay(piece.specs, Limits(piece.requests, deadline=until))

    def _limits(self, piece: Piece) -> Limits:
        """A piece that takes longer than expected ends at the deadline."""
        return Limits(piece.requests, deadline=self.deadline, end=self.deadline)

    def _compute(self, batch: Batch, script: ScriptOfItem) -> None:
        """Runs the script of a table; one that fails leaves all others standing."""
        try:
            script.compute()
        except Exception as error:
            self.script_errors[batch.name] = str(error)

    # -- on nodes of a cluster ---------------------------------------------------------
    def _is_for_nodes(self, piece: Piece | ReplayPiece) -> bool:
        """Whether a cluster's nodes run a piece, not this machine."""
        if self._on_nodes is None:
            return False
        return isinstance(piece, ReplayPiece) or piece.batch.kind == "measured"

    def _run_on_nodes(self, pieces: Sequence[Piece | ReplayPiece]) -> None:
        """Has nodes run pieces that are measured, several at a time.

        A node replays what it has measured, as it does so, and no more.
        """
        assert self._on_nodes is not None, "there are nodes"
        measured = [piece for piece in pieces if isinstance(piece, Piece)]
        self._on_nodes.run(measured, self.deadline)
        for piece in measured:
            self._count_opening(piece)

    # -- again -------------------------------------------------------------------------
    def repeat_disturbed(self) -> None:
        """Runs again what other programs disturbed, as far as there is time."""
        batches = [batch for batch in self.batches if batch.is_timed]
        pieces = [Piece(batch, batch.most_requests) for batch in batches]
        if self._on_nodes is not None:
            measured = [piece for piece in pieces if self._is_for_nodes(piece)]
            self._on_nodes.run(measured, self.deadline, again=True)
            if self._on_nodes.are_all_lost:
                self.script_errors["nodes of the cluster"] = (
                    "all are lost; finished cells are stored, run again to go on"
                )
        for piece in pieces:
            if not self._is_for_nodes(piece):
                self._repeat_disturbed_here(piece.batch)

    def _repeat_disturbed_here(self, batch: Batch) -> None:
        """The same of one batch; a request begins only if it can end in time."""
        units = batch.units_of_a_request
        seconds = self._expected_seconds(batch, units)
        if not self._fits(seconds):
            return
        self.runner.bar.rename(f"{batch.name}, what other programs disturbed")
        last_start = None if self.deadline is None else self.deadline - seconds
        limits = Limits(deadline=last_start, end=self.deadline)
        self.runner.repeat_disturbed(batch.specs, limits)

    # -- time --------------------------------------------------------------------------
    def _fits(self, seconds: float) -> bool:
        """Whether what takes so long would end before the deadline."""
        return self.deadline is None or self.clock() + seconds <= self.deadline

    def _expected_seconds(self, batch: Batch, units: int) -> float:
        """How long so much work of a batch takes."""
        return self.pace.expect(batch.kind, batch.alike, units)

    def _seconds_to(self, batch: Batch, requests: int) -> float:
        """How long it takes to bring a batch's cells to so many requests."""
        return self._expected_seconds(batch, batch.units_to(requests))

    def seconds_missing(self) -> float:
        """How long everything would take that is missing."""
        seconds = 0.0
        for batch in self.batches:
            units = batch.units_to(batch.most_requests)
            seconds += self._expected_seconds(batch, units)
        return seconds

    def seconds_of_open(self, wanted: Container[Spec]) -> float:
        """How long it would take to do all requests of the ``wanted`` cells."""
        for batch in self.batches:
            if batch.is_in_parts:
                batch.wanted = wanted
        return self.seconds_missing()

    def least_seconds(self) -> float:
        """How long the shortest piece takes that is missing; 0 where nothing is."""
        seconds = []
        for piece in self._known_pieces():
            units = piece.batch.units_to(piece.next_requests)
            if units > 0:
                seconds.append(self._expected_seconds(piece.batch, units))
        return min(seconds, default=0.0)

    def describe_rest(self) -> str:
        """How much longer it will take, for people."""
        seconds = self.seconds_missing()
        if self.deadline is not None:
            seconds = min(seconds, self.deadline - self.clock())
        return f"about {describe_seconds(seconds)} left"


def describe_seconds(seconds: float) -> str:
    """A duration for people: in seconds below two minutes, else in minutes."""
    if seconds < 120:
        return f"{max(0, round(seconds))} s"
    return f"{round(seconds / 60)} min"
