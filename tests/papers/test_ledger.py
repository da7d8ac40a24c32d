"""The ledger as a file: it comes back as written, and says what is wrong with it."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.tables import committed

from speclab.papers.ledger import (
    KEY,
    LedgerLine,
    VerdictLine,
    read_claims,
    read_ledger,
    write_claims,
    write_ledger,
)
from speclab.reproduce import publish
from speclib import paths
from speclib.errors import SpeclibError

LINE = LedgerLine("pearl", "table-1", "r", "c", "speedup", "x", "paper", "", 1.0)


# -- what is written -------------------------------------------------------------------
def test_the_ledger_comes_back_as_written_with_its_columns(tmp_path):
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


def test_a_ledger_refuses_two_numbers_for_one_key_and_foreign_columns(tmp_path):
    with pytest.raises(SpeclibError, match="two ledger lines share the key"):
        write_ledger(tmp_path / "ledger.csv", [LINE, LINE._replace(value=2.0)])
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SpeclibError, match=r"other\.csv is no ledger.*a, b"):
        read_ledger(tmp_path / "other.csv")


def test_claims_come_back_as_written_and_are_none_without_a_file(tmp_path):
    path = tmp_path / "claims.csv"
    assert read_claims(path) == []
    line = VerdictLine("pearl", "table-1", "x", "paper", "yes", "1", "1", "a, b")
    write_claims(path, [line])
    assert read_claims(path) == [line]


def test_the_committed_ledger_says_only_what_can_be():
    """Each of its lines is of a table that there is, with an interval in order."""
    path = paths.CHECKOUT / "reports" / "ledger.csv"
    if not path.exists():
        pytest.skip("no ledger yet: make reproduce")
    assert read_ledger(path, publish.items_by_paper())


# -- what is damaged -------------------------------------------------------------------
@dataclass
class Damaged:
    """A good ledger of two lines, to be damaged."""

    path: Path

    def __post_init__(self) -> None:
        write_ledger(self.path, [LINE, LINE._replace(row="s", note="a, b")])
        self.lines = self.path.read_text().splitlines()

    def error(self, line: int, old: str, new: str) -> str:
        """What reading says of the ledger with ``new`` for ``old`` in a line."""
        assert old in self.lines[line]
        self.lines[line] = self.lines[line].replace(old, new, 1)
        return error_of(read_ledger, self.path, "\n".join(self.lines))


@pytest.fixture
def ledger(tmp_path) -> Damaged:
    return Damaged(tmp_path / "ledger.csv")


def error_of(read, path: Path, content: str | bytes) -> str:
    """What reading a file with this content says, in one line."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
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
        (2, "a, b", "x" * 200_000, "after line 2: field larger than field limit"),
        (1, ",1,", ",fast,", "line 2: could not convert string to float: 'fast'"),
        (1, ",1,", ",nan,", "line 2: 'nan' is no finite number"),
        (1, ",1,", ",inf,", "line 2: 'inf' is no finite number"),
        (1, ",1,,,,", ",1,,,1.5,", "line 2: invalid literal for int()"),
        (1, ",1,", ",1,,", "line 2: 15 values, expected 14"),
        (1, ",1,", ",", "line 2: 13 values, expected 14"),
    ],
)
def test_a_damaged_line_is_named_with_what_to_do(ledger, line, old, new, says):
    message = ledger.error(line, old, new)
    assert says in message
    assert "restore it" in message


IMPOSSIBLE = [
    ({"n": -5}, "n is -5: a number rests on 1 request or more"),
    ({"low": 9.0, "high": 1.0}, "low is 9, which is above high, 1"),
    ({"low": 9.0}, "low is given and high is not"),
    ({"kind": "guessed"}, "unknown kind 'guessed'; known: paper, virtual"),
    ({"kind": ""}, "unknown kind ''"),
    ({"paper": "perl"}, "unknown paper 'perl'; known: pearl. Did you mean 'pearl'"),
    ({"item": "table-77"}, "unknown item 'table-77' of 'pearl'; known: table-1"),
]


@pytest.mark.parametrize("changed, says", IMPOSSIBLE)
def test_a_line_that_says_what_cannot_be_is_named(tmp_path, changed, says):
    items = {"pearl": ["table-1", "table-2"]}
    write_ledger(tmp_path / "bad.csv", [LINE, LINE._replace(row="s", **changed)])
    with pytest.raises(SpeclibError) as error:
        read_ledger(tmp_path / "bad.csv", items)
    assert f"bad.csv, line 3: {says}" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_in_another_encoding_empty_or_with_other_columns_is_named(ledger):
    utf_16 = "\n".join(ledger.lines).encode("utf-16")
    assert "not UTF-8" in error_of(read_ledger, ledger.path, utf_16)
    assert "is no ledger" in error_of(read_ledger, ledger.path, "")
    assert "is no ledger" in error_of(read_ledger, ledger.path, "x" * 100_000)

    message = error_of(read_claims, ledger.path, "paper,item,verdict\npearl,t,yes\n")
    assert "is no list of claims: its columns are paper, item, verdict" in message
    assert "expected paper, item, claim, kind, holds, value, expected, note" in message
    seven = f"{','.join(VerdictLine._fields)}\na,b,c,d,e,f,g\n"
    assert "7 values, expected 8" in error_of(read_claims, ledger.path, seven)
