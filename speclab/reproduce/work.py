"""What is to be run for some papers, in pieces that a budget of time can choose from.

A piece of work is a set of cells that are run together: the virtual cells of an item,
its emulated cells, or the measured cells of one pair, task and length of output, which
share plain decoding. The script of an item is a piece, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

from speclab.experiment.run_cells import stored
from speclab.experiment.spec import Profile, Spec, WorkerPool
from speclab.papers import scripts
from speclab.papers.schema import Paper, Table
from speclab.papers.table_cells import TableCell
from speclab.papers.table_result import TableResult
from speclib.errors import SpeclibError

from .costs import Costs

# A first look at a cell takes so many requests: fewer have no interval.
FIRST_REQUESTS = 2

# What a token of a cell took on two cores with the embedded models, many cells at a
# time, where it was measured.
SECONDS_PER_TOKEN = {"virtual": 1e-4, "emulated": 0.02, "measured": 0.04}


@dataclass(frozen=True)
class ScriptOfItem:
    """The script of a table, which computes numbers without running cells."""

    table: Table
    profile: Profile
    kinds: tuple[str, ...]

    @property
    def numbers(self) -> int:
        """How many numbers it gives, about."""
        return len(self.table.row_labels) * len(self.table.column_labels)

    def is_stored(self) -> bool:
        """Whether the cache has all that it computes."""
        return scripts.is_stored(self.table, self.profile, self.kinds)

    def compute(self) -> None:
        """Computes what the cache lacks; raises what went wrong."""
        result = TableResult(self.table, self.profile)
        scripts.add_scripted_numbers(result, self.kinds)
        if result.errors:
            raise SpeclibError("; ".join(result.errors.values()))


@dataclass(eq=False)  # a work is itself alone
class Work:
    """Cells that are run together, and how far they are.

    name    what its cost is known by
    script  the item, where it is an item's script; then there are no cells
    pool    the worker processes that stay open between its steps; None if it keeps none
    done    requests that every one of its cells has, or all that it asks for
    wanted  requests of the cell that asks for most
    missing how many of its cells have nothing yet
    """

    name: str
    kind: str
    specs: list[Spec] = field(default_factory=list)
    script: ScriptOfItem | None = None
    pool: WorkerPool | None = None
    done: int = 0
    wanted: int = 1
    missing: int = 0

    @property
    def is_done(self) -> bool:
        return self.done >= self.wanted

    @property
    def has_requests(self) -> bool:
        """Whether it can be done request by request; else it is done as a whole."""
        return self.kind in ("emulated", "measured")

    @property
    def next_requests(self) -> int:
        """To how many requests a cell the next step takes it."""
        if not self.has_requests:
            return self.wanted
        return min(self.wanted, max(FIRST_REQUESTS, self.done + 1))

    def steps_to(self, requests: int) -> float:
        """How many times its cost it takes to bring its cells to so many requests.

        Cells that are done request by request cost so much for each; virtual ones and
        a script are done as a whole, of which a share may be there already.
        """
        if self.has_requests:
            return requests - self.done
        if self.script is not None:
            return 1.0
        return self.missing / len(self.specs)

    def guess(self) -> float | None:
        """Seconds of a request of its cells, or of all of it, before it was ever seen.

        None where the number of cells and tokens says nothing.
        """
        if self.kind not in SECONDS_PER_TOKEN:
            return None
        tokens = 0
        for spec in self.specs:
            tokens += spec.tokens * (1 if self.has_requests else spec.requests)
        return SECONDS_PER_TOKEN[self.kind] * tokens

    def gain(self) -> float:
        """What its next step gives: how many numbers, and how much narrower they get.

        A number that was missing counts 1. One that has n requests and gets another
        counts by how much its interval narrows, 1 - sqrt(n / (n + 1)).
        """
        if self.script is not None:
            return float(self.script.numbers)
        if self.done == 0:
            return float(len(self.specs))
        narrower = 1 - sqrt(self.done / (self.done + 1))
        return len(self.specs) * narrower

    def count_done(self, failed: Iterable[Spec] = ()) -> None:
        """Finds out how far its cells are; those that failed don't count."""
        if self.script is not None:
            self.done = int(self.script.is_stored())
            return

        failed = set(failed)
        counts = []
        self.missing = 0
        for spec in self.specs:
            if spec not in failed:
                done = _requests_done(spec)
                self.missing += done == 0
                counts.append(self.wanted if done >= spec.requests else done)
        if self.has_requests:
            self.done = min(counts, default=self.wanted)
        else:
            self.done = int(all(counts))


def _requests_done(spec: Spec) -> int:
    try:
        result = stored(spec)
    except Exception:  # running it will say why
        return 0
    return 0 if result is None else len(result.stats)


def scripts_of(paper: Paper, profile: Profile, kinds: tuple[str, ...]) -> list[Work]:
    """The scripts of a paper's items."""
    works = []
    for item, table in paper.tables.items():
        if scripts.script_of(table, kinds) is not None:
            script = ScriptOfItem(table, profile, kinds)
            works.append(
                Work(
                    f"script {paper.key} {profile.name} {item}", "script", script=script
                )
            )
    return works


def works_of(cells: Mapping[str, Sequence[TableCell]], label: str) -> list[Work]:
    """The work behind cells by item, each cell in the first item that needs it.

    ``label`` tells it from other work in the names that costs are known by.
    """
    works: dict[str, Work] = {}
    seen: set[Spec] = set()
    for item, own_cells in cells.items():
        for spec in _all_specs(own_cells):
            if spec not in seen:
                seen.add(spec)
                work = _work_of(spec, works, label, item)
                work.specs.append(spec)
                if work.has_requests:
                    work.wanted = max(work.wanted, spec.requests)
    return list(works.values())


def _all_specs(cells: Sequence[TableCell]) -> list[Spec]:
    """What cells run, and then what they are compared with."""
    specs = [cell.spec for cell in cells]
    for cell in cells:
        specs += cell.plain_specs
    return specs


def _work_of(spec: Spec, works: dict[str, Work], label: str, item: str) -> Work:
    """The work that a cell belongs to, made where there is none yet."""
    if spec.kind != "measured":
        name = f"{spec.kind} {label} {item}"
        return works.setdefault(name, Work(name, spec.kind))
    words = ["measured", name_of_pool(spec.worker_pool), spec.task, spec.tokens]
    if spec.length:
        words += ["length", spec.length]
    if spec.temperature:
        words += ["temperature", f"{spec.temperature:g}"]
    if spec.ignore_eos:
        words += ["past the end"]
    name = " ".join(str(word) for word in (*words, "of", label))
    return works.setdefault(name, Work(name, spec.kind, pool=spec.worker_pool))


def headline_item(
    facts: Mapping[str, object], cells: Mapping[str, Sequence[TableCell]]
) -> str:
    """The item by which a paper is known: that of its facts, else its fullest one."""
    named = facts.get("first_table")
    if isinstance(named, str) and cells.get(named):
        return named
    return max(cells, key=lambda item: len({cell.kind for cell in cells[item]}))


def name_of_pool(pool: WorkerPool) -> str:
    """A pair and how its workers are started, for people and for costs."""
    return f"{pool.pair} {pool.dtype} {pool.servers} {pool.cancel}"


def cost_of_step(work: Work, costs: Costs, has_workers: bool) -> float:
    """Seconds of a work's next step; the start of its workers, unless it has them."""
    # What is done may be done once more, because it was disturbed.
    steps = 1.0 if work.is_done else work.steps_to(work.next_requests)
    seconds = costs.seconds(work.name, work.guess()) * steps
    if work.pool is not None and not has_workers:
        seconds += costs.seconds(f"start {name_of_pool(work.pool)}")
    return max(seconds, 0.001)
