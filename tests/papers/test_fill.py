"""Tables filled from rows made by hand, and from numbers of the virtual clock."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, product

import pytest
from helpers.tables import (
    committed,
    lines_of,
    read_ledger,
    rows_of,
    value_of,
    verdicts_of,
)

from speclab.papers import virtual_numbers
from speclab.papers.fill import Known, fill_all, lines_of_others
from speclab.papers.ledger import (
    DEVICE_SECONDS,
    OVER_SAME_DEVICES,
    LedgerLine,
    write_ledger,
)
from speclab.papers.load_papers import load_paper
from speclab.papers.numbers import Number
from speclab.papers.scripts import values_to_measure
from speclab.papers.table_cells import TableCell, cells_to_run
from speclab.papers.table_result import DISTURBED, TableResult
from speclab.papers.virtual_numbers import VirtualNumber
from speclab.runs.rows import Row, Rows

TIMED = ("emulated", "measured")
PLACES = ["place 1", *(f"{2**n} tokens" for n in range(7, 11))]
PLACES += [f"{state}, layer 0" for state in ("h", "q", "k", "v", "Attn output")]
PEARL, PAIR = "PEARL (ours)", "CodeLlama 7&34B"
DUO, FIRST, MEAN = "Llama / DuoDec", "MT-Bench / speedup", "Avg. / speedup"


def cells_of(paper: str, item: str, kind: str, row: str = "") -> list[TableCell]:
    cells = cells_to_run(load_paper(paper).table(item), (kind,))
    return [cell for cell in cells if row in cell.row]


def rows_for(*cells: TableCell, **changes) -> list[Row]:
    """Rows of these cells, with plain decoding on all cores."""
    specs = dict.fromkeys(chain.from_iterable(cell.specs for cell in cells))
    return [row for spec in specs for row in rows_of(spec, **changes)]


def filled(paper: str, item: str, rows=(), kind: str = "measured") -> TableResult:
    known = Known.of_rows(rows)
    return fill_all(load_paper(paper), known, [item], (kind,))[item]


def line_of(result: TableResult, kind: str, row: str, column: str) -> LedgerLine:
    """A cell's line for the table's own metric."""
    metric = result.table.settings_of(row, column)["metric"]
    (line,) = lines_of(result, kind, row=row, column=column, metric=metric)
    return line


# -- every timed cell ------------------------------------------------------------------
@pytest.mark.parametrize("key", ["pearl", "duodecoding", "easyspec", "dsi", "ssd"])
def test_each_machine_gets_its_own_lines_for_every_timed_cell(key, tmp_path):
    paper = load_paper(key)
    fills = paper.facts["fill"]
    items = dict.fromkeys([*fills["measured"], *fills.get("emulated", [])])
    tables = [paper.table(item) for item in items]
    cells = [cell for table in tables for cell in cells_to_run(table, TIMED)]
    asked = [each for table in tables for each in values_to_measure(table)]
    rows, values = [], []
    for name in ("here", "there"):
        rows += rows_for(*cells, machine=name)
        for each, at in product(asked, PLACES):
            values += [value_of(each, at, n, 0.5 + n, machine=name) for n in (0, 1)]

    known = Known(Rows(rows), values)
    lines: list[LedgerLine] = []
    for result in fill_all(paper, known, items, TIMED).values():
        lines += [*result.lines, *lines_of_others(result, known)]
    write_ledger(tmp_path / "ledger.csv", lines)  # raises where two lines share a key
    of_here = sum("@here" in line.setup for line in lines)
    assert of_here == sum("@there" in line.setup for line in lines) > 0
    assert len(read_ledger(tmp_path / "ledger.csv")) == len(lines)


# -- measured cells --------------------------------------------------------------------
def test_a_measured_line_names_its_run_its_machine_and_its_interval():
    cells = cells_of("pearl", "table-1", "measured", PEARL)
    rows = [replace(row, differs=3 if row.prompt else None) for row in rows_for(*cells)]
    result = filled("pearl", "table-1", rows)
    line = line_of(result, "measured", PEARL, PAIR)

    # 4 s of plain decoding over 1.5 s and over 2 s, after the first half second.
    assert line.value == pytest.approx((4 / 1.5 * 4 / 2) ** 0.5)
    assert line.low < line.value < line.high
    assert (line.n, line.unit) == (2, "x")
    assert line.setup == "embedded/codellama-7b-34b@here/float32/1"
    assert line.source == "measured 2026-01-02T03:04:05"
    words = ("gamma 7", "c 3.00", "models dilated", "1 of 2 outputs differ from plain")
    assert all(word in line.note for word in words)

    assert result.cost_ratios[PEARL, PAIR] == 3.0
    assert result.are_stand_ins
    verdicts = verdicts_of(result, "measured")
    assert verdicts["below-c"].value.startswith("2.309")
    assert verdicts["up-to-4.43-over-ar"].holds in ("open", "not judged")
    assert "error measured" in result.frame()[PAIR]


def test_a_speed_up_has_further_lines_over_the_same_devices():
    """Plain decoding takes 3.2 s with threads on both cores, 5 s with its tensors split
    between them, and 4 s on one."""
    (cell, *_) = cells_of("pearl", "table-1", "measured", PEARL)
    by_pair = {"all-cores/threads": 3.7, "all-cores/tensors": 5.5}
    rows = rows_of(cell.spec, (2.1, 2.1))
    for spec in cell.plain_specs:
        seconds = (by_pair[spec.pair],) * 2
        rows += rows_of(spec, seconds, seconds)
    result = filled("pearl", "table-1", rows)

    values = {}
    for line in lines_of(result, "measured", row=cell.row, column=cell.column):
        values[line.metric] = line.value
    assert values["speedup"] == pytest.approx(4 / 1.6)
    assert values[OVER_SAME_DEVICES] == pytest.approx(3.2 / 1.6)
    assert values[DEVICE_SECONDS] == pytest.approx(2 * 1.6 / 8)
    assert result.values["measured"][cell.row, cell.column] == pytest.approx(2.5)
    second = {line.claim: line for line in result.claims_over_same_devices}
    assert second["below-c"].value == "2"
    assert "is-table-6-llama2" not in second  # about the print alone

    without = filled("pearl", "table-1", rows_of(cell.spec))
    assert not lines_of(without, "measured", row=PEARL, metric=OVER_SAME_DEVICES)
    assert line_of(without, "measured", cell.row, cell.column).value


def test_cells_without_rows_are_left_out_and_claims_on_them_are_open():
    cells = cells_of("duodecoding", "table-1", "measured")
    result = filled("duodecoding", "table-1")
    assert result.left_out >= {cell.key for cell in cells}
    assert (DUO, MEAN, "measured") in result.left_out
    verdicts = verdicts_of(result, "measured").values()
    assert {line.holds for line in verdicts} == {"open", "not judged"}
    for line in verdicts:
        assert ("not run yet" in line.note) == (line.holds == "open")
    assert "measured" not in result.values

    failed = Known(Rows([]), errors={cells[0].spec: "out of memory"})
    result = fill_all(load_paper("duodecoding"), failed, ["table-1"])["table-1"]
    assert set(result.errors.values()) == {"out of memory"}
    assert all(name.startswith("table-1, ") for name in result.errors)


def test_a_busy_number_is_marked_and_its_claims_are_not_judged():
    rows = rows_for(*cells_of("duodecoding", "table-1", "measured"))
    first = cells_of("duodecoding", "table-1", "measured", DUO)[0]
    busy = [row for row in rows_for(first, others=0.5) if row.turn]
    quiet = [row for row in rows if row.key != busy[0].key]
    result = filled("duodecoding", "table-1", quiet + busy)
    assert first.column == FIRST
    lines = lines_of(result, "measured", metric="speedup")
    disturbed = {(line.row, line.column) for line in lines if DISTURBED in line.note}
    assert disturbed == {(DUO, FIRST), (DUO, MEAN)}
    holds = {v.holds for v in result.claims if f"{DUO} / {FIRST}" in v.note}
    assert holds == {"not judged"}


# -- derived numbers -------------------------------------------------------------------
def test_a_mean_of_columns_has_their_kind_and_needs_all_of_them():
    cells = cells_of("duodecoding", "table-1", "measured")
    result = filled("duodecoding", "table-1", rows_for(*cells))
    mean = line_of(result, "measured", DUO, MEAN)
    first = line_of(result, "measured", DUO, FIRST)
    assert mean.value == pytest.approx(first.value)
    # Columns of different prompts are independent: the interval is narrower.
    assert first.low < mean.low < mean.value < mean.high < first.high
    assert mean.note.startswith("mean of the other ")

    without_one = [cell for cell in cells if (cell.row, cell.column) != (DUO, FIRST)]
    result = filled("duodecoding", "table-1", rows_for(*without_one))
    assert not lines_of(result, "measured", row=DUO, column=MEAN)
    assert (DUO, MEAN, "measured") in result.left_out


def test_a_quotient_row_is_in_percent_and_missing_without_its_parts():
    of, by = "Llama 2 7b&70b (RC)", "Llama 2 7b&70b"
    quotient = "performance retain (Llama 2 7b&70b)"
    rows = []
    for cell in cells_of("pearl", "table-8", "measured", by):
        seconds = (2.5, 2.5) if cell.row == of else (2.3, 2.3)
        if (cell.row, cell.column) != (by, "Math"):
            rows += rows_of(cell.spec, seconds)
    result = filled("pearl", "table-8", rows)
    line = line_of(result, "measured", quotient, "Writing")
    assert line.value == pytest.approx(100 * (8 / 2.0) / (8 / 1.8))
    assert line.note == f"{of} over {by}"
    assert (quotient, "Math", "measured") in result.left_out


# -- two machines ----------------------------------------------------------------------
def test_one_machine_is_shown_and_the_others_are_listed():
    """It is the reader's own machine, or else the one with the most rows."""
    cells = cells_of("pearl", "table-1", "measured", PEARL)
    rows = rows_for(*cells[:2], seconds=(3.5,), plain=(4.5,))
    rows += rows_for(*cells, machine="there")
    paper = load_paper("pearl")
    for own, shown, other, few in (
        (None, "there", "here", 2),
        ("here", "here", "there", len(cells)),
        ("elsewhere", "there", "here", 2),
    ):
        known = Known(Rows(rows), machine=own)
        result = fill_all(paper, known, ["table-1"])["table-1"]
        assert result.machine == shown
        setups = {li.setup for li in lines_of(result, "measured") if li.metric}
        assert all(f"@{shown}/" in setup for setup in setups)
        others = lines_of_others(result, known)
        listed = [li for li in others if (li.metric, li.row) == ("speedup", PEARL)]
        assert len(listed) == few
        assert all(f"@{other}/" in line.setup for line in listed)


# -- emulated cells --------------------------------------------------------------------
def test_an_emulated_line_names_latency_machine_and_overruns():
    cells = cells_of("pearl", "table-1", "emulated", "Speculative")
    rows = rows_for(*cells, how="fastest of the windows 5 to 9", overruns=1)
    result = filled("pearl", "table-1", rows, "emulated")
    line = line_of(result, "emulated", "Speculative Decoding", "Llama2 7&70B")
    assert line.setup == "pearl/llama2-7-70@here"
    assert line.value == pytest.approx((4 / 1.5 * 4 / 2) ** 0.5)
    words = ("gamma 7", "fastest of the windows 5 to 9", "overruns 1.0%", "alpha 0.9")
    assert all(word in line.note for word in words)
    assert "error emulated" in result.frame()["Llama2 7&70B"]

    result = filled("pearl", "table-1", rows_for(*cells, overruns=2), "emulated")
    line = line_of(result, "emulated", "Speculative Decoding", "Llama2 7&70B")
    assert line.value is line.low is None
    assert "not reported: the machine is too slow" in line.note
    assert "emulated" not in result.values


# -- the virtual clock, and the print --------------------------------------------------
def test_a_virtual_line_has_its_committed_number_and_its_distance_from_print():
    """4.43 is printed; without each of three parts it is 4.0, 4.2 and 4.1."""
    cells = cells_of("pearl", "table-1", "virtual", PEARL)
    (cell,) = (cell for cell in cells if cell.column == "Llama2 7&70B")
    printed = load_paper("pearl").printed("table-1", cell.row, cell.column)
    parts = {f"part {n}": x for n, x in enumerate((3.9, 4.0, 4.1))}
    number = VirtualNumber(Number(4.0, parts, n=3), 5, 5.6, "fastest of 4", {})
    keys = virtual_numbers.keys_of(cell)
    known = Known(Rows([]), virtual=dict.fromkeys(keys, number))
    result = fill_all(load_paper("pearl"), known, ["table-1"])["table-1"]
    line = line_of(result, "virtual", cell.row, cell.column)
    assert (line.value, line.n, line.setup) == (4.0, 3, "pearl/llama2-7-70")
    assert line.low < 4.0 < line.high
    assert f"{100 * (4.0 / printed - 1):+.1f} % against print" in line.note
    assert "gamma 5; fastest of 4" in line.note
    assert result.error(cell.row, cell.column) == pytest.approx(4.0 / printed - 1)

    half = Known(Rows([]), virtual={keys[0]: number})  # its device-seconds lack
    result = fill_all(load_paper("pearl"), half, ["table-1"])["table-1"]
    assert cell.key in result.left_out


def test_printed_lines_show_errata_and_lost_or_absent_numbers():
    result = filled("pearl", "table-1")
    above = line_of(result, "paper", PEARL, "DeepSeek 1.3&33B")
    assert above.note.startswith("ceiling: ")
    assert (above.setup, above.low) == ("", None)
    assert above.source == "arXiv:2408.11850"
    absent = {(li.row, li.value) for li in result.lines if li.note == "not printed"}
    assert absent == {("Ouroboros", None), ("Lookahead Decoding", None)}
    (lost,) = lines_of(filled("pearl", "figure-2a"), "paper", note="lost")
    assert (lost.row, lost.value) == ("bars", None)
    in_brackets = lines_of(filled("easyspec", "table-2"), "paper", metric="speedup")
    assert len(in_brackets) == 100


def test_the_frame_has_rows_as_printed_and_a_column_per_kind():
    result = committed("pearl")["table-4"]
    frame = result.frame()
    assert list(frame.index) == list(result.table.row_labels)
    columns = frame["CodeLlama 7B&34B"].columns
    assert list(columns) == ["paper", "virtual", "error"]
    cell = frame.loc["PEARL", "CodeLlama 7B&34B"]
    assert cell["paper"] == 2.35
    assert cell["error"] == pytest.approx(cell["virtual"] / 2.35 - 1)
