"""Numbers of earlier runs: which of them stand in for cells that were left out."""

from __future__ import annotations

from speclab.papers.earlier import earlier_numbers
from speclab.papers.ledger import LedgerLine
from speclab.papers.load_papers import load_paper

ROW, COLUMN = "PEARL (ours)", "CodeLlama 7&34B"


def ledger_line(**changes) -> LedgerLine:
    row = LedgerLine(
        paper="pearl",
        item="table-1",
        row=ROW,
        column=COLUMN,
        metric="speedup",
        unit="x",
        kind="virtual",
        setup="pearl/codellama-7-34",
        value=2.5,
    )
    return row._replace(**changes)


def test_only_what_was_left_out_and_has_a_number_is_taken():
    table = load_paper("pearl").table("table-1")
    good = ledger_line()
    rows = [
        ledger_line(item="table-2"),
        ledger_line(value=None),
        ledger_line(metric="speedup_e2e", value=1.0),
        ledger_line(kind="measured"),
        good,
    ]
    left_out = {(ROW, COLUMN, "virtual"), (ROW, COLUMN, "emulated")}
    assert earlier_numbers(table, left_out, rows) == {(ROW, COLUMN, "virtual"): good}
