"""Defines the order of the measurements, which go on until the deadline:

    1  PEARL's main table: eight prompts per cell
    2  the other papers' main tables: four prompts per cell
    3  the rest of the main tables: emulated cells next to measured ones, and plain
       decoding on all cores
    4  every other table: one prompt per cell
    5  values that do not come from running a method
    6  all tables: two prompts, four, eight, and so on up to the number a cell requests

With ``quick``, only the first two are measured, with three prompts and one prompt per
cell. Starting a pair's workers and choosing its windows takes as long as ten runs, so
the first steps include several prompts. A cell in several tables is measured once. A
run that has a row is not repeated, so a second call continues where the first one
ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from speclab.measure.measure import Step
from speclab.papers import same_devices
from speclab.papers.paper_schema import Paper
from speclab.papers.scripts import values_to_measure
from speclab.papers.table_cells import PROMPTS, cells_to_run
from speclab.runs.spec import EmulatedSpec, MeasuredSpec, Spec
from speclab.runs.values import ValuesStep

TIMED_KINDS = ("measured", "emulated")
FIRST = "pearl"  # the paper whose main table comes first


def steps(papers: Sequence[Paper], quick: bool = False) -> Iterator[Step | ValuesStep]:
    """The steps listed at the top of this module, for these papers."""
    first = [spec for p in papers if p.key == FIRST for spec in main_specs(p)]
    others = [spec for p in papers if p.key != FIRST for spec in main_specs(p)]
    yield from _to(_specs_measured_first(first), 3 if quick else 8)
    yield from _to(_specs_measured_first(others), 1 if quick else 4)
    if quick:
        return
    yield from _to([*first, *others], 1)
    every = [*first, *others, *(s for p in papers for s in specs_of(p, p.tables))]
    yield from _to(every, 1)
    for paper in papers:
        for table in paper.tables.values():
            yield from values_to_measure(table)
    prompts = 2
    while prompts <= PROMPTS:
        yield from _to(every, prompts)
        prompts *= 2


def _specs_measured_first(specs: Sequence[Spec]) -> list[Spec]:
    """The measured cells, except plain decoding on all of a pair's cores.

    DSI's tables have no measured cells, so emulated cells are included instead.
    """
    measured = [spec for spec in specs if isinstance(spec, MeasuredSpec)]
    emulated = [spec for spec in specs if isinstance(spec, EmulatedSpec)]
    return [
        *(s for s in measured if not s.pair.startswith(same_devices.ALL_CORES)),
        *(s for s in emulated if s.latency.startswith("dsi/")),
    ]


def _to(specs: Sequence[Spec], prompts: int) -> Iterator[Step]:
    """Steps that run each cell on ``prompts`` prompts, or on all that it requests."""
    by_prompts: dict[int, list[Spec]] = {}
    for spec in specs:
        by_prompts.setdefault(min(prompts, spec.requests), []).append(spec)
    for count, alike in sorted(by_prompts.items()):
        yield Step(tuple(dict.fromkeys(alike)), count)


def main_specs(paper: Paper) -> list[Spec]:
    """The timed cells of a paper's main table."""
    item = str(paper.facts.get("first_table", ""))
    return specs_of(paper, [item] if item in paper.tables else [])


def specs_of(paper: Paper, items: Iterable[str]) -> list[Spec]:
    """The timed cells of the given tables, and plain decoding on all cores."""
    specs: list[Spec] = []
    for item in items:
        for cell in cells_to_run(paper.table(item), TIMED_KINDS):
            specs += cell.specs
    return list(dict.fromkeys(specs))
