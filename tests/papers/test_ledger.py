"""The ledger as a file: it comes back as written, and says what is wrong with it."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from speclab.papers.ledger import (
    KEY,
    LedgerLine,
    VerdictLine,
    merge,
    read_claims,
    read_ledger,
    write_claims,
    write_ledger,
)
from speclab.reproduce import publish
from speclib import paths
from speclib.errors import SpeclibError

COLUMNS = [
    "paper",
    "item",
    "row",
    "column",
    "metric",
    "unit",
    "kind",
    "setup",
    "value",
    "low",
    "high",
    "n",
    "source",
    "note",
]

ROW = LedgerLine("pearl", "table-1", "r", "c", "speedup", "x", "paper", "", 1.0)


# -- what is written -------------------------------------------------------------------
def test_the_ledger_comes_back_as_written_with_its_columns(pearl_results, tmp_path):
    rows = []
    for result in pearl_results.values():
        rows += result.lines
    path = tmp_path / "ledger.csv"
    write_ledger(path, rows)
    with open(path, newline="") as file:
        assert next(csv.reader(file)) == COLUMNS

    back = read_ledger(path)
    assert [row[:KEY] for row in back] == [row[:KEY] for row in rows]
    for written, read in zip(rows, back, strict=True):
        assert (written.value is None) == (read.value is None)
        if written.value is not None:
            assert math.isclose(written.value, read.value, rel_tol=1e-5)


def test_a_ledger_refuses_two_numbers_for_one_key_and_foreign_columns(tmp_path):
    with pytest.raises(SpeclibError, match="two ledger lines share the key"):
        write_ledger(tmp_path / "ledger.csv", [ROW, ROW._replace(value=2.0)])
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SpeclibError, match=r"other\.csv is no ledger.*a, b"):
        read_ledger(tmp_path / "other.csv")


def test_merging_keeps_ours_and_adds_other_machines():
    ours = ROW._replace(kind="measured", setup="p@here/f/1")
    with_our_key = ours._replace(value=9.0)
    of_another_machine = ours._replace(setup="p@there/f/1")
    merged = merge([ours], [with_our_key, of_another_machine])
    assert merged == [ours, of_another_machine]


def test_claims_come_back_as_written_and_are_none_without_a_file(tmp_path):
    path = tmp_path / "claims.csv"
    assert read_claims(path) == []
    row = VerdictLine("pearl", "table-1", "x", "paper", "yes", "1", "1", "a, b")
    write_claims(path, [row])
    assert read_claims(path) == [row]


# -- what is damaged -------------------------------------------------------------------
@pytest.fixture
def lines(tmp_path) -> list[str]:
    """The lines of a good ledger: its columns and two rows."""
    write_ledger(tmp_path / "good.csv", [ROW, ROW._replace(row="s", note="a, b")])
    return (tmp_path / "good.csv").read_text().splitlines()


def error_of(read, path: Path, content: str | bytes) -> str:
    """What reading a file with this content says, in one line."""
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(content)
    with pytest.raises(SpeclibError) as error:
        read(path)
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 1000
    assert str(path) in message
    return message


@pytest.mark.parametrize(
    "line, old, new, says",
    [
        (1, "r,c", '"r,c', "after line 1: ',' expected after '\"'"),
        (2, '"a, b"', '"a, b', "after line 2: unexpected end of data"),
    ],
)
def test_a_quote_that_is_not_closed_is_named_with_its_line(
    lines, tmp_path, line, old, new, says
):
    assert old in lines[line]
    lines[line] = lines[line].replace(old, new, 1)
    message = error_of(read_ledger, tmp_path / "ledger.csv", "\n".join(lines))
    assert f"{says}: a quote is not closed" in message
    assert "restore it" in message


def test_a_field_of_200_kb_is_named_with_its_line(lines, tmp_path):
    lines[2] = lines[2].replace("a, b", "x" * 200_000)
    message = error_of(read_ledger, tmp_path / "ledger.csv", "\n".join(lines))
    assert "after line 2: field larger than field limit" in message
    assert "restore it" in message


@pytest.mark.parametrize(
    "old, new, says",
    [
        (",1,", ",fast,", "could not convert string to float: 'fast'"),
        (",1,", ",nan,", "'nan' is no finite number"),
        (",1,", ",inf,", "'inf' is no finite number"),
        (",1,,,,", ",1,,,1.5,", "invalid literal for int()"),
        (",1,", ",1,,", "15 values, expected 14"),
        (",1,", ",", "13 values, expected 14"),
    ],
)
def test_a_row_that_does_not_fit_the_columns_is_named_with_its_line(
    lines, tmp_path, old, new, says
):
    assert old in lines[1]
    lines[1] = lines[1].replace(old, new, 1)
    message = error_of(read_ledger, tmp_path / "ledger.csv", "\n".join(lines))
    assert "line 2" in message
    assert says in message


IMPOSSIBLE = [
    ({"n": -5}, "n is -5: a number rests on 1 request or more"),
    ({"n": 0}, "n is 0"),
    ({"low": 9.0, "high": 1.0}, "low is 9, which is above high, 1"),
    ({"low": 9.0}, "low is given and high is not"),
    ({"kind": "guessed"}, "unknown kind 'guessed'; known: paper, virtual"),
    ({"kind": ""}, "unknown kind ''"),
    ({"paper": "perl"}, "unknown paper 'perl'; known: pearl. Did you mean 'pearl'"),
    ({"item": "table-77"}, "unknown item 'table-77' of 'pearl'; known: table-1"),
]


@pytest.mark.parametrize("changed, says", IMPOSSIBLE)
def test_a_row_that_says_what_cannot_be_is_named_with_its_line(tmp_path, changed, says):
    items = {"pearl": ["table-1", "table-2"]}
    write_ledger(tmp_path / "bad.csv", [ROW, ROW._replace(row="s", **changed)])
    with pytest.raises(SpeclibError) as error:
        read_ledger(tmp_path / "bad.csv", items)
    assert f"bad.csv, line 3: {says}" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_committed_ledger_says_only_what_can_be():
    """Each of its rows is of a table that there is, with an interval in order."""
    path = paths.CHECKOUT / "reports" / "ledger.csv"
    if not path.exists():
        pytest.skip("no ledger yet: make reproduce")
    assert read_ledger(path, publish.items_by_paper())


def test_nothing_of_a_ledger_with_an_impossible_row_is_merged(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path / "reports")
    theirs = ROW._replace(kind="measured", setup="p@there/f/1")
    odd = theirs._replace(row="s", n=-5)
    write_ledger(tmp_path / "theirs.csv", [theirs, odd])
    with pytest.raises(SpeclibError, match="line 3: n is -5"):
        publish.merge_ledger(tmp_path / "theirs.csv")
    assert not (tmp_path / "reports").exists()


def test_a_ledger_in_another_encoding_or_empty_is_named(lines, tmp_path):
    text = "\n".join(lines)
    path = tmp_path / "ledger.csv"
    assert "not UTF-8" in error_of(read_ledger, path, text.encode("utf-16"))
    assert "is no ledger" in error_of(read_ledger, path, "")
    assert "is no ledger" in error_of(read_ledger, path, "x" * 100_000)


def test_a_claims_file_with_other_columns_is_named(tmp_path):
    path = tmp_path / "claims.csv"
    message = error_of(read_claims, path, "paper,item,verdict\npearl,table-1,yes\n")
    assert "is no list of claims: its columns are paper, item, verdict" in message
    assert "expected paper, item, claim, kind, holds, value, expected, note" in message
    header = ",".join(VerdictLine._fields)
    assert "7 values, expected 8" in error_of(
        read_claims, path, f"{header}\na,b,c,d,e,f,g\n"
    )
