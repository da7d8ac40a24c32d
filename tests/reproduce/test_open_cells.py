"""Only cells that an open claim asks for are measured further."""

from __future__ import annotations

import pytest

from speclab.experiment.spec import FULL, CellResult, Replays, Spec
from speclab.papers.load_papers import load_paper
from speclab.papers.table_cells import cells_to_run
from speclab.papers.table_result import AskedCells, TableResult
from speclab.reproduce.open_cells import (
    open_claims_of,
    open_specs_of,
    specs_of_open_claims,
)
from speclib.trace.metrics import Stats

KIND = "measured"


def wanted(item: str, *places: tuple[str, str]) -> dict[tuple[str, str], Spec]:
    """The specs that are wanted of a table of which claims ask for ``places``."""
    table = load_paper("pearl").table(item)
    cells = cells_to_run(table, FULL, (KIND,))
    result = TableResult(table, FULL)
    keys = {(row, column, KIND) for row, column in places}
    result.open_claims_ask = [[AskedCells(keys)]]
    specs = open_specs_of(result, cells)
    return {cell.key[:2]: cell.spec for cell in cells if cell.spec in specs}


def test_of_a_table_without_an_open_claim_nothing_is_wanted():
    assert not wanted("table-2")


def test_an_open_claim_wants_the_cells_that_it_asks_for():
    place = "PEARL (ours)", "Thai"
    assert set(wanted("table-2", place)) == {place}


def test_a_mean_wants_all_that_it_is_the_mean_of():
    of_row = wanted("table-2", ("PEARL (ours)", "Avg."))
    assert {row for row, _ in of_row} == {"PEARL (ours)"}
    assert len(of_row) == 11


def test_a_quotient_wants_both_of_its_rows():
    table = load_paper("pearl").table("table-8")
    row = next(row for row in table.row if "quotient_of" in table.row[row])
    rows = table.row[row]["quotient_of"]
    column = table.column_labels[0]
    assert set(wanted("table-8", (row, column))) == {(each, column) for each in rows}


def test_the_mean_of_quotients_wants_all_of_both_rows():
    table = load_paper("pearl").table("table-8")
    row = next(row for row in table.row if "quotient_of" in table.row[row])
    mean = next(column for column in table.column if "mean_of" in table.column[column])
    columns = set(table.column_labels) - {mean}
    both = {
        (each, column) for each in table.row[row]["quotient_of"] for column in columns
    }
    assert set(wanted("table-8", (row, mean))) == both


def test_of_several_ways_the_first_counts_of_which_there_is_something_to_run():
    """All requests of the nearest are timed, and of the next all replays are made."""
    table = load_paper("pearl").table("table-2")
    cells = {cell.key: cell for cell in cells_to_run(table, FULL, (KIND,))}
    near, next_one, far = (("PEARL (ours)", c, KIND) for c in table.column_labels[:3])
    ways = [AskedCells({near}), AskedCells(set(), {next_one}), AskedCells({far}, {far})]
    result = TableResult(table, FULL)
    result.open_claims_ask = [ways]

    def asked_of() -> tuple[set[Spec], set[Spec]]:
        claims = open_claims_of(result, cells.values())
        return set(claims.specs_to_time), set(claims.specs_to_replay)

    specs = {key: set(cells[key].specs) for key in (near, next_one, far)}
    assert asked_of() == (specs[near], set())
    for spec in specs[near]:
        result.cell_results[(spec.name, "", KIND)] = done(spec, spec.requests, 4)
    assert asked_of() == (set(), specs[next_one])
    for spec in specs[next_one]:
        result.cell_results[(spec.name, "", KIND)] = done(spec, 2, 96)
    assert asked_of() == (specs[far], specs[far])
    for spec in specs[far]:
        result.cell_results[(spec.name, "", KIND)] = done(spec, spec.requests, 96)
    assert asked_of() == (set(), set())


def done(spec: Spec, requests: int, replays: int) -> CellResult:
    """A cell of which so many requests are timed, and so many prompts replayed."""
    return CellResult(
        spec=spec,
        stats=[Stats()] * requests,
        baseline=[Stats()] * requests,
        gamma=None,
        c=3.0,
        machine="here",
        replays=Replays(
            stats=[Stats()] * replays,
            baseline=[Stats()] * replays,
            sequence_choices=[[]] * replays,
            prompts_in_task=96,
        ),
    )


def test_a_cell_is_wanted_with_the_plain_decoding_on_all_cores_that_it_is_taken_over():
    table = load_paper("pearl").table("table-1")
    cells = cells_to_run(table, FULL, (KIND,))
    cell = next(cell for cell in cells if cell.plain_specs)
    result = TableResult(table, FULL)
    result.open_claims_ask = [[AskedCells({cell.key})]]
    assert set(cell.plain_specs) < open_specs_of(result, cells)


@pytest.mark.parametrize("kind", ["virtual", "paper"])
def test_an_open_claim_about_another_kind_wants_nothing_measured(kind):
    table = load_paper("pearl").table("table-1")
    result = TableResult(table, FULL)
    keys = {("PEARL (ours)", "Llama2 7&70B", kind)}
    result.open_claims_ask = [[AskedCells(keys)]]
    assert not open_specs_of(result, cells_to_run(table, FULL, (KIND,)))


def test_a_claim_of_which_nothing_was_run_is_open_and_wants_its_cells(own_cache):
    paper = load_paper("easyspec")
    claims = specs_of_open_claims([paper], FULL, (KIND,), {})
    assert claims.timed
    assert not claims.replayed
    specs = claims.specs_to_time
    assert {spec.kind for spec in specs} == {KIND}
    of_figure_4 = cells_to_run(paper.table("figure-4"), FULL, (KIND,))
    assert {cell.spec for cell in of_figure_4} & specs
