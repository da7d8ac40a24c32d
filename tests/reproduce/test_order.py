"""The order of measurements: main tables first, and at the end everything."""

from __future__ import annotations

from speclab.measure.measure import Step
from speclab.papers.load_papers import load_paper
from speclab.papers.table_cells import cells_to_run
from speclab.reproduce.order import steps
from speclab.reproduce.reproduce import choose_papers
from speclab.runs.values import ValuesStep

TIMED = ("measured", "emulated")


def specs_of_table(key: str, item: str) -> set:
    cells = cells_to_run(load_paper(key).table(item), TIMED)
    return {spec for cell in cells for spec in cell.specs}


def test_the_papers_come_in_their_order_and_pearls_main_table_first():
    papers = choose_papers()
    assert [paper.key for paper in papers][:4] == [
        "pearl",
        "easyspec",
        "duodecoding",
        "dsi",
    ]
    first, *_ = steps(papers)
    assert isinstance(first, Step)
    measured = {
        spec
        for spec in specs_of_table("pearl", "table-1")
        if spec.kind == "measured" and not spec.pair.startswith("all-cores/")
    }
    assert set(first.specs) == measured
    assert first.prompts == 8
    assert len({spec.pair for spec in measured}) == 6


def test_a_quick_run_has_only_the_main_tables():
    prompts: dict = {}
    for step in steps(choose_papers(), quick=True):
        assert isinstance(step, Step)
        for spec in step.specs:
            prompts[spec] = max(step.prompts, prompts.get(spec, 0))
    assert set(prompts.values()) == {3, 1}
    pearl = {spec for spec in prompts if prompts[spec] == 3}
    assert pearl <= specs_of_table("pearl", "table-1")
    others = [
        specs_of_table("duodecoding", "table-1"),
        specs_of_table("easyspec", "table-2"),
        specs_of_table("dsi", "table-1"),
    ]
    rest = set(prompts) - pearl
    assert rest < set.union(*others)
    assert all(rest & table for table in others)


def test_at_the_end_every_timed_cell_has_all_the_prompts_that_it_asks_for():
    papers = choose_papers()
    last: dict = {}
    values = set()
    for step in steps(papers):
        if isinstance(step, ValuesStep):
            values.add(step.what)
            continue
        for spec in step.specs:
            assert step.prompts >= last.get(spec, 0) or step.prompts >= 1
            last[spec] = max(step.prompts, last.get(spec, 0))
    for paper in papers:
        for table in paper.tables.values():
            for cell in cells_to_run(table, TIMED):
                for spec in cell.specs:
                    assert last[spec] == spec.requests
    assert values == {"layer similarity", "cache transport", "acceptance by place"}
