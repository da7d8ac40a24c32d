"""The committed numbers of the virtual clock are complete and can be recomputed."""

from __future__ import annotations

from collections import defaultdict
from math import isnan

import pytest
from helpers.specs import virtual_spec
from helpers.tables import assert_filled_as_the_paper_says, counts

from speclab.papers import virtual_numbers
from speclab.papers.load_papers import load_paper
from speclab.papers.statistics import number_of
from speclab.papers.table_cells import TableCell, cells_to_run
from speclab.runs.rows import CellRuns
from speclab.runs.spec import Spec
from speclab.virtual.cells import run, run_all
from speclib.errors import BadValue

PAPERS = ("pearl", "duodecoding", "easyspec", "dsi", "nanopearl", "ssd", "amusd")
SAMPLE = [
    ("pearl", "table-11", "Codellama 7B&70B", "Draft Model (SD)"),
    ("duodecoding", "table-1", "Llama / SpS", "Trans / speedup"),
    ("dsi", "table-1", "Phi3-14B / Phi3-4B / HumanEval", "Speedup DSI vs. SI"),
]


def virtual_cells(paper: str, *items: str) -> list[TableCell]:
    tables = load_paper(paper).tables
    return [
        cell
        for item in items or tables
        for cell in cells_to_run(tables[item], ("virtual",))
    ]


# -- what is committed -----------------------------------------------------------------
@pytest.mark.parametrize("paper", PAPERS)
def test_no_paper_lacks_a_number(paper):
    assert_filled_as_the_paper_says(paper)


def assert_committed(cell: TableCell, runs: CellRuns) -> None:
    for key, texts in virtual_numbers.texts_of(cell, runs).items():
        stored, computed = virtual_numbers.read_texts()[key], dict(texts)
        for column in ("value", "c", "without"):
            ours, theirs = computed.pop(column), stored.pop(column)
            of_file = [float(text) for text in theirs.split()]
            again = [float(text) for text in ours.split()]
            assert again == pytest.approx(of_file, rel=1e-6, nan_ok=True), key
        assert computed == stored


@pytest.mark.parametrize("paper, item, row, column", SAMPLE)
def test_a_committed_number_is_what_its_cell_computes(paper, item, row, column):
    (cell,) = (c for c in virtual_cells(paper, item) if c[:2] == (row, column))
    assert_committed(cell, run(cell.spec))


@pytest.mark.thorough
def test_every_committed_number_is_what_its_cell_computes():
    cells: dict[Spec, list[TableCell]] = defaultdict(list)
    for paper in PAPERS:
        for cell in virtual_cells(paper):
            cells[cell.spec].append(cell)
    keys = {
        k for same in cells.values() for c in same for k in virtual_numbers.keys_of(c)
    }
    assert virtual_numbers.read_texts().keys() == keys  # and there is no other
    for spec, runs in run_all(cells):
        assert not isinstance(runs, str), runs
        for cell in cells[spec]:
            assert_committed(cell, runs)


# -- the file --------------------------------------------------------------------------
@pytest.fixture
def own_file(tmp_path, monkeypatch):
    """A file with the two lines of a cell of three requests."""
    monkeypatch.setattr(virtual_numbers, "file", lambda: tmp_path / "virtual.csv")
    virtual_numbers.write(virtual_numbers.texts_of(CELL, RUNS).values())
    return tmp_path / "virtual.csv"


SPEC = virtual_spec(gamma="best", settings=(("post_verify", (True, False)),))
CELL = TableCell("row", "column", "virtual", SPEC, "speedup")
RUNS = CellRuns(
    spec=SPEC,
    stats=[counts(2.5), counts(1.5), counts(3.5)],
    baseline=[counts(4.5)] * 3,
    labels=["toys/0", "toys/1", "toys/2"],
    gamma=3,
    c=2.66,
    how="fastest of the windows 1 to 6",
    settings={"post_verify": False},
)


def test_a_number_survives_writing_and_reading(own_file):
    stored = virtual_numbers.read()
    assert stored.keys() == set(virtual_numbers.keys_of(CELL))
    found = stored[virtual_numbers.keys_of(CELL)[0]]
    expected = number_of("speedup", RUNS)
    assert found.number.value == pytest.approx(expected.value)
    assert found.number.interval == pytest.approx(expected.interval)
    assert found.number.n == 3
    assert (found.gamma, found.c, found.how) == (3, 2.66, RUNS.how)
    assert found.settings == {"post_verify": "False"}


def test_scaled_counts_have_their_own_line():
    scaled = CELL._replace(stat="draft_runs", scaled_tokens=900)
    (key,) = virtual_numbers.keys_of(scaled)
    assert key[1] == "draft_runs@900"
    texts = virtual_numbers.texts_of(scaled, RUNS)[key]
    assert float(texts["value"]) == pytest.approx(24 / 27 * 900)
    assert key not in virtual_numbers.keys_of(CELL._replace(stat="draft_runs"))


def test_an_undefined_number_is_stored_as_undefined(own_file):
    runs = CellRuns(SPEC, [counts(2.5, rejected=0)] * 2, [], ["a", "b"], 3, 2.66)
    runs.baseline = runs.stats
    cell = CELL._replace(stat="run_length")
    virtual_numbers.write(virtual_numbers.texts_of(cell, runs).values())
    (number,) = virtual_numbers.read().values()
    assert isnan(number.number.value)


@pytest.mark.parametrize(
    "old, new, says",
    [
        (",3,", ",many,", "line 2: invalid literal for int"),
        ("cell,stat", "cell,statistic", "has other columns than cell, stat, value"),
    ],
)
def test_a_damaged_line_is_named_with_what_to_do(own_file, old, new, says):
    text = own_file.read_text()
    assert old in text
    own_file.write_text(text.replace(old, new, 1) + "\n")
    with pytest.raises(BadValue, match=f"virtual.csv.*{says}.*recompute it with"):
        virtual_numbers.read()


def test_a_line_that_was_cut_off_is_named(own_file):
    whole = own_file.read_text()
    own_file.write_text(whole[: whole.rindex("fastest of")])
    with pytest.raises(BadValue, match="virtual.csv, line 3: it is cut off"):
        virtual_numbers.read()


def test_without_the_file_there_are_no_numbers(own_file):
    own_file.unlink()
    assert virtual_numbers.read() == virtual_numbers.read_texts() == {}
