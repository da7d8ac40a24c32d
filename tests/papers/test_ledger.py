"""The ledger as a file: it round-trips, and its errors name what is wrong."""

from __future__ import annotations

import csv
from math import isfinite

import pytest
from helpers.tables import committed, read_ledger

from speclab.papers.ledger import (
    KEY,
    LedgerLine,
    VerdictLine,
    read_claims,
    write_claims,
    write_ledger,
)
from speclab.papers.load_papers import load_paper
from speclab.papers.paper_schema import KINDS
from speclib import paths
from speclib.errors import SpeclibError

LINE = LedgerLine("pearl", "table-1", "r", "c", "speedup", "x", "paper", "", 1.0)


# -- what is written -------------------------------------------------------------------
def test_the_ledger_round_trips_with_its_columns(tmp_path):
    lines = [line for result in committed("pearl").values() for line in result.lines]
    assert {line.kind for line in lines} == {"paper", "virtual"}
    path = tmp_path / "ledger.csv"
    write_ledger(path, lines)
    with open(path, newline="") as file:
        columns = "paper item row column metric unit kind setup value low high n"
        assert next(csv.reader(file)) == [*columns.split(), "source", "note"]

    back = read_ledger(path)
    assert [line[:KEY] for line in back] == [line[:KEY] for line in lines]
    written = [line.value for line in lines if line.value is not None]
    read = [line.value for line in back if line.value is not None]
    assert read == pytest.approx(written, rel=1e-5)
    for line in lines:
        assert bool(line.setup) == (line.kind == "virtual")
        if line.low is not None:
            assert line.low <= line.value <= line.high


def test_a_ledger_refuses_two_numbers_for_one_key(tmp_path):
    with pytest.raises(SpeclibError, match="two ledger lines share the key"):
        write_ledger(tmp_path / "ledger.csv", [LINE, LINE._replace(value=2.0)])


def test_claims_round_trip_and_are_empty_without_a_file(tmp_path):
    path = tmp_path / "claims.csv"
    assert read_claims(path) == []
    line = VerdictLine("pearl", "table-1", "x", "paper", "yes", "1", "1", "a, b")
    write_claims(path, [line])
    assert read_claims(path) == [line]
    path.write_text("a,b\n1,2\n")
    with pytest.raises(SpeclibError, match=r"claims\.csv has other columns than"):
        read_claims(path)


def test_every_line_of_the_committed_ledger_is_plausible():
    """Each line belongs to an existing table, and its interval is in order."""
    path = paths.CHECKOUT / "reports" / "ledger.csv"
    if not path.exists():
        pytest.skip("no ledger yet: make reproduce")
    for line in read_ledger(path):
        assert line.item in load_paper(line.paper).tables
        assert line.kind in KINDS
        assert line.n is None or line.n > 0
        assert line.value is None or isfinite(line.value)
        assert (line.low is None) == (line.high is None)
        assert line.low is None or line.low <= line.high
