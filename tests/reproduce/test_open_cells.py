"""Only cells that an open claim asks for are measured further."""

from __future__ import annotations

import pytest

from speclab.experiment.spec import FULL, Spec
from speclab.papers.load_papers import load_paper
from speclab.papers.table_cells import cells_to_run
from speclab.papers.table_result import NotSettled, TableResult, Way
from speclab.reproduce.open_cells import (
    open_claims_of,
    open_specs_of,
    specs_of_open_claims,
)

KIND = "measured"


def wanted(item: str, *places: tuple[str, str]) -> dict[tuple[str, str], Spec]:
    """The specs that are wanted of a table of which claims ask for ``places``."""
    table = load_paper("pearl").table(item)
    cells = cells_to_run(table, FULL, (KIND,))
    result = TableResult(table, FULL)
    keys = {(row, column, KIND) for row, column in places}
    result.not_settled = [NotSettled(keys, [Way(keys)])]
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


def test_a_claim_says_what_each_way_to_settle_it_asks_for_and_all_that_it_is_about():
    table = load_paper("pearl").table("table-2")
    cells = {cell.key: cell for cell in cells_to_run(table, FULL, (KIND,))}
    near, far, settled = (("PEARL (ours)", c, KIND) for c in table.column_labels[:3])
    ways = [Way({near}, requests=5), Way(set(), {far}, requests=50)]
    result = TableResult(table, FULL)
    result.not_settled = [NotSettled({near, far, settled}, ways)]
    claims = open_claims_of(result, cells.values())

    specs = {key: set(cells[key].specs) for key in (near, far, settled)}
    assert claims.specs_to_time == claims.within(5).specs_to_time == specs[near]
    assert claims.specs_to_replay == specs[far]
    assert not claims.within(5).specs_to_replay
    assert not claims.within(4).claims
    assert claims.whole.specs_to_time == specs[near] | specs[far] | specs[settled]
    assert claims.whole.specs_to_replay == specs[far]


def test_a_method_about_which_nothing_is_open_is_not_timed_for_its_spread():
    """A claim about PEARL and Ouroboros is open in PEARL's Thai alone. PEARL's other
    languages tell how much its corrections differ, and Ouroboros tells nothing."""
    table = load_paper("pearl").table("table-2")
    cells = {cell.key: cell for cell in cells_to_run(table, FULL, (KIND,))}
    thai, german = (("PEARL (ours)", column, KIND) for column in ("Thai", "German"))
    ouroboros = ("Ouroboros", "Thai", KIND)
    result = TableResult(table, FULL)
    result.not_settled = [NotSettled({thai, german, ouroboros}, [Way({thai})])]
    whole = open_claims_of(result, cells.values()).whole
    assert whole.specs_to_time == {*cells[thai].specs, *cells[german].specs}


def test_a_cell_is_wanted_with_the_plain_decoding_on_all_cores_that_it_is_taken_over():
    table = load_paper("pearl").table("table-1")
    cells = cells_to_run(table, FULL, (KIND,))
    cell = next(cell for cell in cells if cell.plain_specs)
    result = TableResult(table, FULL)
    result.not_settled = [NotSettled({cell.key}, [Way({cell.key})])]
    assert set(cell.plain_specs) < open_specs_of(result, cells)


@pytest.mark.parametrize("kind", ["virtual", "paper"])
def test_an_open_claim_about_another_kind_wants_nothing_measured(kind):
    table = load_paper("pearl").table("table-1")
    result = TableResult(table, FULL)
    keys = {("PEARL (ours)", "Llama2 7&70B", kind)}
    result.not_settled = [NotSettled(keys, [Way(keys)])]
    assert not open_specs_of(result, cells_to_run(table, FULL, (KIND,)))


def test_a_claim_of_which_nothing_was_run_is_open_and_wants_its_cells(own_cache):
    paper = load_paper("easyspec")
    claims = specs_of_open_claims([paper], FULL, (KIND,), {})
    assert claims.claims
    assert not claims.specs_to_replay
    specs = claims.specs_to_time
    assert {spec.kind for spec in specs} == {KIND}
    of_figure_4 = cells_to_run(paper.table("figure-4"), FULL, (KIND,))
    assert {cell.spec for cell in of_figure_4} & specs
