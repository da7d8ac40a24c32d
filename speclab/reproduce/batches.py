"""What is to be run for some papers, in batches of cells that are run together.

A batch is the virtual cells of a table, its emulated cells, or the measured cells of
one pair, task and length of output, which share plain decoding. The script of a table
is a batch, too. A batch of real processes is run in pieces, some requests at a time.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from speclab.experiment.limits import Limits
from speclab.experiment.run_cells import stored
from speclab.experiment.spec import Profile, Spec, WorkerPool
from speclab.papers import scripts
from speclab.papers.paper_schema import Paper, Table
from speclab.papers.table_cells import TableCell
from speclab.papers.table_result import TableResult
from speclib.errors import SpeclibError

# Requests of a cell in the first round. How much corrections differ is told by the main
# tables' cells, which have two: without these, one request of another cell settles
# nothing.
FIRST_REQUESTS = 1
FIRST_OF_MAIN_TABLES = 2
PARTS = 2  # of a virtual cell: see ``Limits``


@dataclass(frozen=True)
class ScriptOfItem:
    """The script of a table, which computes numbers without running cells."""

    table: Table
    profile: Profile
    kinds: tuple[str, ...]

    def is_stored(self) -> bool:
        """Whether the cache has all that it computes."""
        return scripts.is_stored(self.table, self.profile, self.kinds)

    def compute(self) -> None:
        """Computes what the cache lacks; raises what went wrong."""
        result = TableResult(self.table, self.profile)
        scripts.add_scripted_numbers(result, self.kinds)
        if result.errors:
            raise SpeclibError("; ".join(result.errors.values()))


@dataclass(eq=False)  # a batch is itself alone
class Batch:
    """Cells that are run together, and how far they are.

    name     for people
    kind     of its cells, or "script"
    paper    the key of the paper
    is_main  whether it belongs to the paper's main table
    script   that of the table, where it is one; then there are no cells
    pool     the worker processes that stay open between its pieces; None: it keeps none
    wanted   cells of which more than the first requests are wanted; None: all
    """

    name: str
    kind: str
    paper: str
    is_main: bool = False
    specs: list[Spec] = field(default_factory=list)
    script: ScriptOfItem | None = None
    pool: WorkerPool | None = None
    wanted: Container[Spec] | None = None
    _done: dict[Spec, int] = field(default_factory=dict, init=False)  # requests
    _is_computed: bool = field(default=False, init=False)  # a script

    @property
    def alike(self) -> str:
        """What it shares its pace with: the pair it is decoded by, or the paper."""
        if self.script is not None:
            return self.name
        return self.paper if self.pool is None else name_of_pool(self.pool)

    @property
    def is_in_parts(self) -> bool:
        """Whether it can be done in parts; else it is done as a whole."""
        return self.script is None

    @property
    def first_requests(self) -> int:
        """To how many requests the first round takes its cells."""
        if self.is_main and self.is_timed:
            return FIRST_OF_MAIN_TABLES
        return FIRST_REQUESTS

    @property
    def is_timed(self) -> bool:
        """Whether its numbers are read off a clock."""
        return self.kind in ("emulated", "measured")

    @property
    def most_requests(self) -> int:
        """Requests of the cell that asks for most; of virtual cells, their parts."""
        if not self.is_timed:
            return 1 if self.script is not None else PARTS
        return max(spec.requests for spec in self.specs)

    @property
    def is_done(self) -> bool:
        """Whether nothing is missing that can be had."""
        return self.units_to(self.most_requests) == 0

    @property
    def fewest_requests(self) -> int:
        """How many requests the cell has that lacks most, of those that lack any.

        Where none lacks any, as many as are wanted.
        """
        fewest = self.most_requests
        for spec in self.specs:
            done = self._done.get(spec, 0)
            if done < spec.requests:
                fewest = min(fewest, done)
        return fewest

    def units_to(self, requests: int) -> int:
        """How much work it is to bring its cells to so many requests, 0 if none.

        It is counted in tokens that are decoded; a script counts 1. Measured cells are
        decoded plainly once for all.
        """
        if self.script is not None:
            return 0 if self._is_computed else 1

        tokens = 0
        most_tokens = 0  # of the cell that lacks most
        for spec in self.specs_to(requests):
            missing = spec.tokens * self._missing_requests(spec, requests)
            most_tokens = max(most_tokens, missing)
            tokens += missing
        return tokens + most_tokens if self.kind == "measured" else tokens

    def specs_to(self, requests: int) -> list[Spec]:
        """The cells that are to be brought to so many requests."""
        if self.wanted is None or requests <= self.first_requests:
            return self.specs
        return [spec for spec in self.specs if spec in self.wanted]

    @property
    def units_of_a_request(self) -> int:
        """How much work one request of every cell is."""
        tokens = [spec.tokens for spec in self.specs]
        return sum(tokens) + (max(tokens) if self.kind == "measured" else 0)

    def _missing_requests(self, spec: Spec, requests: int) -> int:
        """What a cell lacks of so many requests."""
        wanted = Limits(requests).requests_of(spec)
        return max(0, wanted - self._done.get(spec, 0))

    def count_done(self, failed: Iterable[Spec] = ()) -> None:
        """Finds out how far its cells are; of those that failed no more can be had."""
        if self.script is not None:
            self._is_computed = self.script.is_stored()
        failed = set(failed)
        for spec in self.specs:
            is_over = spec in failed
            self._done[spec] = spec.requests if is_over else _requests_done(spec)


def _requests_done(spec: Spec) -> int:
    try:
        result = stored(spec)
    except Exception:  # running it will say why
        return 0
    return 0 if result is None else len(result.stats)


def scripts_of(
    paper: Paper, profile: Profile, kinds: tuple[str, ...], main_item: str = ""
) -> list[Batch]:
    """The scripts of a paper's tables."""
    batches = []
    for item, table in paper.tables.items():
        if scripts.script_of(table, kinds) is not None:
            batch = Batch(
                name=f"script {paper.key} {item}",
                kind="script",
                paper=paper.key,
                is_main=item == main_item,
                script=ScriptOfItem(table, profile, kinds),
            )
            batches.append(batch)
    return batches


def batches_of(
    paper: str, cells: Mapping[str, Sequence[TableCell]], main_item: str
) -> list[Batch]:
    """The batches of a paper's cells by table, those of its main table first.

    Every cell is in one batch: that of the main table, or the first table that has it.
    """
    batches: dict[tuple[str, bool], Batch] = {}
    seen: set[Spec] = set()
    for item in sorted(cells, key=lambda item: item != main_item):
        for spec in _all_specs(cells[item]):
            if spec in seen:
                continue
            seen.add(spec)
            is_main = item == main_item
            name = _batch_name(spec, paper, item)
            pool = spec.worker_pool if spec.kind == "measured" else None
            new = Batch(name, spec.kind, paper, is_main, pool=pool)
            batches.setdefault((name, is_main), new).specs.append(spec)
    return list(batches.values())


def _all_specs(cells: Sequence[TableCell]) -> list[Spec]:
    """What cells run, and then what they are compared with."""
    specs = [cell.spec for cell in cells]
    for cell in cells:
        specs += cell.plain_specs
    return specs


def _batch_name(spec: Spec, paper: str, item: str) -> str:
    """The name of the batch that a cell of a table belongs to."""
    if spec.kind != "measured":
        return f"{spec.kind} {paper} {item}"
    words = ["measured", name_of_pool(spec.worker_pool), spec.task, spec.tokens]
    if spec.length:
        words += ["length", spec.length]
    if spec.temperature:
        words += ["temperature", f"{spec.temperature:g}"]
    if spec.ignore_eos:
        words += ["past the end"]
    return " ".join(str(word) for word in (*words, "of", paper))


def main_item(
    facts: Mapping[str, object], cells: Mapping[str, Sequence[TableCell]]
) -> str:
    """The table by which a paper is known: that of its facts, else its fullest one."""
    named = facts.get("first_table")
    if isinstance(named, str) and cells.get(named):
        return named
    return max(cells, key=lambda item: len({cell.kind for cell in cells[item]}))


def name_of_pool(pool: WorkerPool) -> str:
    """A pair and how its workers are started."""
    return f"{pool.pair} {pool.dtype} {pool.servers} {pool.cancel}"
