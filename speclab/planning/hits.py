"""How often is a plan's first choice the fastest?  `python -m speclab.planning.hits`

For every pair and task a plan is made, and more methods are measured than a plan would.
The first choice, that of the virtual clock, wins if none of them is faster, by the
values alone: near ties count as lost. What it loses where it does not win is how much
slower it is; the fastest of several is a little too fast, so the loss is a little too
large. A row of ``reports/plan.csv`` per machine, pair and task; what is there already
is left alone, so it may be stopped and run again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import NamedTuple, get_type_hints

from speclab.progress import Progress
from speclib import machine, paths
from speclib.atomic_files import write_atomically

from .plan import Plan, plan

PAIRS = (
    "embedded/llama-7b-70b",
    "embedded/codellama-7b-34b",
    "embedded/codellama-7b-70b",
    "embedded/deepseek-1.3b-33b",
    "embedded/deepseek-6.7b-33b",
    "embedded/llama3.1-8b-70b",
    "ladder/good",
    "ladder/poor",
)
TASKS = ("humaneval", "gsm8k", "roleplay")
PROMPTS, TOKENS, CHECKED = 4, 64, 5
PATH = paths.REPORTS / "plan.csv"


class Hit(NamedTuple):
    """What became of one plan.

    ``virtual`` and ``measured`` are speed-ups of the first choice over plain decoding;
    ``low`` and ``high`` the 95 % interval of the latter. ``best`` is the measured
    speed-up of the ``fastest``.
    """

    pair: str
    task: str
    machine: str
    prompts: int
    c: float
    first_choice: str
    virtual: float
    measured: float
    low: float
    high: float
    fastest: str
    best: float

    @property
    def wins(self) -> bool:
        """Whether the first choice was the fastest."""
        return self.first_choice == self.fastest

    @property
    def is_near(self) -> bool:
        """Whether the fastest is within the 95 % interval of the first choice."""
        return self.best <= self.high

    @property
    def loss(self) -> float:
        """The share by which the first choice is slower than the fastest."""
        return 1 - self.measured / self.best


def hit_of(made: Plan) -> Hit:
    """What is stored of a plan."""
    first = made.speedup(made.first_choice)
    return Hit(
        pair=made.pair,
        task=made.task,
        machine=machine.name(),
        prompts=made.measured.prompts,
        c=made.cost_ratio.value,
        first_choice=made.first_choice.name,
        virtual=made.virtual[made.first_choice],
        measured=first.value,
        low=first.interval.low,
        high=first.interval.high,
        fastest=made.choice.name,
        best=made.speedup(made.choice).value,
    )


def read_hits(path: Path) -> list[Hit]:
    """The rows of a file that ``write_hits`` wrote; none where there is no file."""
    if not path.is_file():
        return []
    type_of = get_type_hints(Hit)
    hits = []
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            values = {name: type_of[name](text) for name, text in row.items()}
            hits.append(Hit(**values))
    return hits


def write_hits(path: Path, hits: Iterable[Hit]) -> None:
    """A row per plan."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Hit._fields)
    for hit in hits:
        rounded = [f"{value:.4g}" if type(value) is float else value for value in hit]
        writer.writerow(rounded)
    write_atomically(path, text.getvalue())


class Record(NamedTuple):
    """What became of all plans for a task.

    ``won``: how often the first choice was the fastest. ``near``: how often it was not,
    but the fastest was within its 95 % interval. ``mean_loss``, ``largest_loss``: by
    which share it was slower than the fastest.
    """

    task: str
    plans: int
    won: int
    near: int
    mean_loss: float
    largest_loss: float


def records(hits: list[Hit]) -> list[Record]:
    """A record for each task, and the last one for all; none without hits."""
    found = []
    for task in dict.fromkeys(hit.task for hit in hits):
        found.append(_record(task, [hit for hit in hits if hit.task == task]))
    if hits:
        found.append(_record("all", hits))
    return found


def _record(task: str, hits: list[Hit]) -> Record:
    losses = [hit.loss for hit in hits]
    return Record(
        task=task,
        plans=len(hits),
        won=sum(hit.wins for hit in hits),
        near=sum(hit.is_near for hit in hits if not hit.wins),
        mean_loss=sum(losses) / len(losses),
        largest_loss=max(losses),
    )


def describe(record: Record) -> str:
    """It in words."""
    return (
        f"{record.task}: the first choice was the fastest of {CHECKED} in {record.won} "
        f"of {record.plans} plans. In {record.near} of the others the fastest was "
        f"within the first choice's 95 % interval. It was {record.mean_loss:.1%} "
        f"slower than the fastest in the mean, and {record.largest_loss:.1%} at most."
    )


def main() -> None:
    """Makes the plans that are missing."""
    hits = read_hits(PATH)
    known = {(hit.pair, hit.task) for hit in hits if hit.machine == machine.name()}
    missing = [work for work in product(PAIRS, TASKS) if work not in known]
    with Progress("plans", total=len(missing)) as bar:
        for pair, task in missing:
            made = plan(
                pair, task=task, prompts=PROMPTS, max_new_tokens=TOKENS, check=CHECKED
            )
            hits.append(hit_of(made))
            write_hits(PATH, hits)
            bar.step(f"{pair}, {task}: {made.summary()}")
    for record in records(hits):
        print(describe(record))


if __name__ == "__main__":
    main()
